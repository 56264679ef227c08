"""One seed's stream as tables, and several seeds' stacked."""

from typing import Any, NamedTuple

import numpy as np

from ebmjax.streams.schedules import (
  boundary_aware_schedule,
  boundary_free_schedule,
  check_batch,
  joint_schedule,
)
from ebmjax.streams.tasks import TaskSet, class_groups, make_tasks


class Stream(NamedTuple):
  """All that a run needs to know about its data, per seed; `stack` adds an axis [R]."""

  rows: np.ndarray  # [S, B] int32, rows of the training images
  tasks: np.ndarray  # [S, B] int8, the task of each row
  horizon: np.ndarray  # [S] int32, the batch's latest task: classes up to it are seen
  labels: np.ndarray  # [T, G] int32, raw class -> label
  permutation: np.ndarray  # [T, P] int32, P = 0 where unpermuted
  classes: np.ndarray  # [T, C] bool, the labels of each task
  train_rows: np.ndarray  # [T, M] int32, all training rows of a task; -1 is padding
  test_rows: np.ndarray  # [T, M'] int32, all test rows of a task; -1 is padding


def build(
  spec: Any,
  train_y: np.ndarray,
  test_y: np.ndarray,
  *,
  seed: int,
  shape: tuple[int, ...] = (28, 28),
) -> Stream:
  """Returns the stream of `seed`; train_y [N] and test_y [M] are raw classes.

  `shape` is that of an image or row, which permuted tasks need.
  """
  num_raw = int(train_y.max()) + 1
  tasks = make_tasks(spec, num_raw=num_raw, seed=seed, shape=shape)
  train_rows = _rows_of_tasks(tasks, train_y)
  iterations = _iterations(spec, np.bincount(train_y))
  positions, task_of_row = _SCHEDULES[spec.setting](
    [len(rows) for rows in train_rows],
    iterations=iterations,
    batch_size=spec.batch_size,
    rng=np.random.default_rng([seed, 2]),
  )
  rows = np.empty(positions.shape, np.int32)
  for task, members in enumerate(train_rows):
    in_task = task_of_row == task
    rows[in_task] = members[positions[in_task]]
  return Stream(
    rows=rows,
    tasks=task_of_row.astype(np.int8),
    horizon=_horizon(spec, task_of_row),
    labels=tasks.labels,
    permutation=tasks.permutation,
    classes=tasks.classes,
    train_rows=_pad(train_rows),
    test_rows=_pad(_rows_of_tasks(tasks, test_y)),
  )


def stack(streams: list[Stream]) -> Stream:
  """Returns one stream whose arrays have a leading axis of runs [R].

  With a random class order, the sizes of tasks differ between seeds: tables of rows are
  padded to the longest.
  """
  widest = {
    name: max(getattr(stream, name).shape[1] for stream in streams)
    for name in ("train_rows", "test_rows")
  }
  even = [
    stream._replace(
      **{name: _widen(getattr(stream, name), width) for name, width in widest.items()}
    )
    for stream in streams
  ]
  return Stream(*(np.stack(arrays) for arrays in zip(*even, strict=True)))


def task_ends(stream: Stream) -> list[int]:
  """Returns T step counts: where each task ends (boundary-free: nominally)."""
  steps, num_tasks = stream.rows.shape[-2], stream.labels.shape[-2]
  return [steps * (task + 1) // num_tasks for task in range(num_tasks)]


_SCHEDULES = {
  "boundary_aware": boundary_aware_schedule,
  "boundary_free": boundary_free_schedule,
  "joint": joint_schedule,
}


def _iterations(spec: Any, class_sizes: np.ndarray) -> int:
  """Returns the steps of a task (boundary-free: nominally); class_sizes [G].

  Without boundaries, they are epochs of the smallest task. Its size is taken from the
  fixed order of classes even if the order is random, so that the streams of all seeds
  are equally long.
  """
  if spec.setting != "boundary_free":
    return int(spec.iterations)
  smallest = int(class_sizes.sum())
  if spec.name != "permuted":
    groups = class_groups(spec, len(class_sizes))
    smallest = min(int(class_sizes[group].sum()) for group in groups)
  check_batch(smallest, spec.batch_size)
  return int(spec.epochs_per_task * (smallest // spec.batch_size))


def _horizon(spec: Any, tasks: np.ndarray) -> np.ndarray:
  """Returns [S]: the latest task of each batch; in joint training, the last of all."""
  if spec.setting == "joint":
    return np.full(len(tasks), spec.tasks - 1, np.int32)
  return tasks.max(axis=1).astype(np.int32)


def _rows_of_tasks(tasks: TaskSet, y: np.ndarray) -> list[np.ndarray]:
  """Returns, for each task, the rows whose raw class belongs to it."""
  return [np.flatnonzero(labels[y] >= 0) for labels in tasks.labels]


def _pad(rows: list[np.ndarray]) -> np.ndarray:
  width = max(len(r) for r in rows)
  return np.stack([_widen(r[None], width)[0] for r in rows]).astype(np.int32)


def _widen(table: np.ndarray, width: int) -> np.ndarray:
  """Returns table [T, M] padded with -1 to [T, width]."""
  return np.pad(table, [(0, 0), (0, width - table.shape[1])], constant_values=-1)
