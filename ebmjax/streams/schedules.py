"""Schedules: which rows of which task each training step shows."""

import numpy as np

from ebmjax.errors import ConfigError


def boundary_aware_schedule(
  sizes: list[int], *, iterations: int, batch_size: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
  """Returns positions [S, B] within the task and tasks [S, B], one task after another.

  Each task runs `iterations` batches; its images are reshuffled at every epoch, and
  the last, partial batch of an epoch is dropped.
  """
  check_batch(min(sizes), batch_size)
  positions = []
  for size in sizes:
    per_epoch = size // batch_size
    epochs = -(-iterations // per_epoch)
    shuffled = [
      rng.permutation(size)[: per_epoch * batch_size].reshape(per_epoch, batch_size)
      for _ in range(epochs)
    ]
    positions.append(np.concatenate(shuffled)[:iterations])
  tasks = np.repeat(np.arange(len(sizes)), iterations)[:, None]
  return np.concatenate(positions), np.repeat(tasks, batch_size, axis=1)


def boundary_free_schedule(
  sizes: list[int], *, iterations: int, batch_size: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
  """Returns positions [S, B] within the row's task and tasks [S, B], cross-faded.

  S = T * iterations. A batch draws its rows' tasks from `task_weights` and, within a
  task, distinct images; rows are ordered by task. Deviation: the paper's appendix fades
  single classes; its released code fades tasks.
  """
  check_batch(min(sizes), batch_size)
  steps = len(sizes) * iterations
  upto = np.cumsum(task_weights(steps, len(sizes)), axis=1)
  upto[:, -1] = 1.0  # rounding must leave no gap below 1
  draws = rng.random((steps, batch_size))
  tasks = np.sort((draws[:, :, None] >= upto[:, None, :]).sum(axis=2), axis=1)
  positions = np.empty((steps, batch_size), np.int64)
  for step, row in enumerate(tasks):
    numbers, counts = np.unique(row, return_counts=True)
    positions[step] = np.concatenate(
      [
        rng.choice(sizes[task], count, replace=False)
        for task, count in zip(numbers, counts, strict=True)
      ]
    )
  return positions, tasks


def joint_schedule(
  sizes: list[int], *, iterations: int, batch_size: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
  """Returns positions [S, B] within the row's task and tasks [S, B], all tasks at once.

  As many steps as with boundaries, T * iterations; all images of all tasks are
  reshuffled together at every epoch. An upper bound for continual learning.
  """
  tasks = np.repeat(np.arange(len(sizes)), sizes)
  positions = np.concatenate([np.arange(size) for size in sizes])
  drawn, _ = boundary_aware_schedule(
    [len(tasks)], iterations=len(sizes) * iterations, batch_size=batch_size, rng=rng
  )
  return positions[drawn], tasks[drawn]


def task_weights(steps: int, num_tasks: int) -> np.ndarray:
  """Returns [S, T]: the probability of each task at each step, rows summing to 1.

  With a period P = S / T, task k is alone in the middle half of its period and fades
  linearly into its neighbours over P / 2 around each nominal boundary; the first task
  is alone at the start, the last at the end (Zeno et al. 2018).
  """
  weights = np.stack([_ramp(steps, num_tasks, k) for k in range(num_tasks)], axis=1)
  return weights / weights.sum(axis=1, keepdims=True)


def _ramp(steps: int, num_tasks: int, task: int) -> np.ndarray:
  """Returns [S]: the trapezium of one task, before normalising."""
  start, full, fade, end = _breakpoints(steps, num_tasks, task)
  i = np.arange(steps)
  up = np.ones(steps) if task == 0 else (i - start) / (full - start)
  down = np.ones(steps) if task == num_tasks - 1 else 1 - (i - fade) / (end - fade)
  inside = (i >= start) & (i < end)
  return np.where(inside, np.where(i < full, up, np.where(i < fade, 1.0, down)), 0.0)


def _breakpoints(steps: int, num_tasks: int, task: int) -> tuple[int, int, int, int]:
  """Returns where a task starts to rise, is alone, starts to fade, and ends."""
  quarter = [int((4 * task + odd) * steps / (4 * num_tasks)) for odd in (-1, 1, 3, 5)]
  return max(quarter[0], 0), quarter[1], quarter[2], min(quarter[3], steps)


def check_batch(size: int, batch_size: int) -> None:
  """Raises ConfigError where the smallest task does not fill a batch."""
  if batch_size > size:
    raise ConfigError(
      f"config.stream.batch_size={batch_size} exceeds the smallest task's {size} "
      f"images; choose at most {size}."
    )
