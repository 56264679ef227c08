"""Tasks of a seed: which classes, under which labels, with which order of pixels."""

from typing import Any, NamedTuple

import numpy as np

from ebmjax.errors import ConfigError

_PADDED_SIDE = 32  # permuted MNIST pads 28x28 to 32x32 and permutes all 1024 pixels


class TaskSet(NamedTuple):
  """T tasks over G raw classes of a data set, labelled with C classes of the stream."""

  labels: np.ndarray  # [T, G] int32: raw class -> label; -1 where the task lacks it
  permutation: np.ndarray  # [T, P] int32; P = 0 where pixels stay in place
  classes: np.ndarray  # [T, C] bool: the labels of each task
  names: tuple[str, ...]  # C names, for figures


def make_tasks(spec: Any, *, num_raw: int, seed: int) -> TaskSet:
  """Returns the tasks of one seed; `spec` is config.stream, `num_raw` is G."""
  order_rng, pixel_rng = (
    np.random.default_rng([seed, 0]),
    np.random.default_rng([seed, 1]),
  )
  if spec.name == "permuted":
    labels = np.tile(np.arange(num_raw), (spec.tasks, 1))
    permutation = _permutations(spec, seed, pixel_rng)
  else:
    labels = _split_labels(spec, num_raw, order_rng)
    permutation = np.zeros((spec.tasks, 0), np.int32)
  per_task = int((labels[0] >= 0).sum())
  return _label(spec, labels, permutation, per_task)


def shown_images(spec: Any, images: np.ndarray) -> np.ndarray:
  """Returns images as the stream shows them, before any permutation.

  Grey ones flat, [N, P] uint8, and padded where pixels are permuted; colour ones as
  they are, [N, H, W, 3] uint8.
  """
  if images.ndim == 4:
    if spec.name == "permuted":
      raise ConfigError(
        "config.stream.name='permuted' is for grey images such as mnist; use 'split' "
        "for colour images."
      )
    return images
  if spec.name == "permuted":
    pad = [(_PADDED_SIDE - side) // 2 for side in images.shape[1:3]]
    images = np.pad(images, [(0, 0), (pad[0],) * 2, (pad[1],) * 2])
  return images.reshape(len(images), -1)


def _split_labels(spec: Any, num_raw: int, rng: np.random.Generator) -> np.ndarray:
  """Returns [T, G]: each class's place within its task, -1 elsewhere."""
  if num_raw % spec.tasks:
    raise ConfigError(
      f"config.stream.tasks={spec.tasks} does not divide the data set's {num_raw} "
      "classes; choose a divisor."
    )
  per_task = num_raw // spec.tasks
  order = np.arange(num_raw)
  if spec.class_order == "random":
    order = rng.permutation(num_raw)
  labels = np.full((spec.tasks, num_raw), -1)
  for task, classes in enumerate(order.reshape(spec.tasks, per_task)):
    labels[task, classes] = np.arange(per_task)
  return labels


def _permutations(spec: Any, seed: int, rng: np.random.Generator) -> np.ndarray:
  """Returns [T, P]; the first may be the identity, as `first_permutation` says.

  `released` is the authors' code: the identity for seed 0 only.
  """
  pixels = _PADDED_SIDE**2
  rows = np.stack([rng.permutation(pixels) for _ in range(spec.tasks)])
  first = spec.first_permutation
  if first == "identity" or (first == "released" and seed == 0):
    rows[0] = np.arange(pixels)
  return rows.astype(np.int32)


def _label(
  spec: Any, within: np.ndarray, permutation: np.ndarray, per_task: int
) -> TaskSet:
  """Returns the task set whose labels follow the scenario.

  Domain-incremental tasks share their labels; otherwise task t owns the labels
  t * per_task onwards, so classes are always numbered in the order they come.
  """
  tasks = len(within)
  if spec.scenario == "domain":
    classes = np.ones((tasks, per_task), bool)
    names = tuple(str(label) for label in range(per_task))
    return TaskSet(within.astype(np.int32), permutation, classes, names)
  offset = np.arange(tasks)[:, None] * per_task
  labels = np.where(within >= 0, within + offset, -1).astype(np.int32)
  classes = np.repeat(np.eye(tasks, dtype=bool), per_task, axis=1)
  return TaskSet(labels, permutation, classes, _names(spec, labels))


def _names(spec: Any, labels: np.ndarray) -> tuple[str, ...]:
  """Returns each label's raw class, with the task's number where tasks repeat it.

  A random class order differs between seeds: labels are then named by their place.
  """
  if spec.name != "permuted" and spec.class_order == "random":
    return tuple(f"#{place + 1}" for place in range(labels.max() + 1))
  raw = {int(label): g for row in labels for g, label in enumerate(row) if label >= 0}
  if spec.name != "permuted":
    return tuple(str(raw[label]) for label in sorted(raw))
  per_task = labels.shape[1]
  return tuple(f"{label // per_task + 1}:{raw[label]}" for label in sorted(raw))
