"""The tasks of a seed: their classes, labels and orders of pixels."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ebmjax.errors import ConfigError

_MNIST_SHAPE = (28, 28)
_PADDED_SIDE = 32  # permuted MNIST pads 28x28 to 32x32 and permutes all 1024 pixels


class TaskSet(NamedTuple):
  """T tasks over G raw classes of a data set, labelled with C classes of the stream."""

  labels: np.ndarray  # [T, G] int32: raw class -> label; -1 where the task lacks it
  permutation: np.ndarray  # [T, P] int32; P = 0 where pixels stay in place
  classes: np.ndarray  # [T, C] bool: the labels of each task
  names: tuple[str, ...]  # C names, for figures


def make_tasks(
  spec: Any,
  *,
  num_raw: int,
  seed: int,
  shape: tuple[int, ...] = _MNIST_SHAPE,
  class_names: Sequence[str] = (),
) -> TaskSet:
  """Returns the tasks of one seed; `spec` is config.stream, `num_raw` is G.

  `shape` is that of an image or row of the data set, which permuted tasks need, and
  `class_names` are its G names; (): the numbers of the classes.
  """
  order_rng, pixel_rng = (
    np.random.default_rng([seed, 0]),
    np.random.default_rng([seed, 1]),
  )
  if spec.name == "permuted":
    labels = np.tile(np.arange(num_raw), (spec.tasks, 1))
    permutation = _permutations(spec, _pixels(shape), seed, pixel_rng)
  else:
    labels = _split_labels(spec, num_raw, order_rng)
    permutation = np.zeros((spec.tasks, 0), np.int32)
  return _label(spec, labels, permutation, class_names or range(num_raw))


def class_groups(spec: Any, num_raw: int) -> list[np.ndarray]:
  """Returns the raw classes of each split task, in the fixed order of classes.

  They are those of `spec.class_groups`, or all classes distributed evenly: if their
  number is not a multiple of the number of tasks, the first tasks have one more.
  """
  listed = getattr(spec, "class_groups", ())
  if listed:
    return _listed_groups(spec, listed, num_raw)
  if spec.tasks > num_raw:
    raise ConfigError(
      f"config.stream.tasks={spec.tasks} exceeds the data set's {num_raw} classes; "
      f"choose at most {num_raw}."
    )
  return np.array_split(np.arange(num_raw), spec.tasks)


def shown_images(spec: Any, images: Any) -> Any:
  """Returns images of NumPy or JAX as the stream shows them, before any permutation.

  Grey images become rows [N, P]; those of MNIST's size are padded first if pixels are
  permuted. Colour images [N, H, W, 3] and rows [N, F] stay as they are.
  """
  if images.ndim == 4:
    if spec.name == "permuted":
      raise ConfigError(
        "config.stream.name='permuted' is for grey images such as mnist; use 'split' "
        "for colour images."
      )
    return images
  if spec.name == "permuted" and images.shape[1:] == _MNIST_SHAPE:
    pad = (_PADDED_SIDE - _MNIST_SHAPE[0]) // 2
    numpy = images.__array_namespace__()
    images = numpy.pad(images, [(0, 0), (pad, pad), (pad, pad)])
  return images.reshape(images.shape[0], -1)


def _pixels(shape: tuple[int, ...]) -> int:
  """Returns how many pixels of an image or row the stream permutes."""
  return _PADDED_SIDE**2 if shape == _MNIST_SHAPE else math.prod(shape)


def _listed_groups(spec: Any, listed: Any, num_raw: int) -> list[np.ndarray]:
  """Returns the groups of classes that a user has listed, or raises."""
  # "(2)" is the number 2: a group of one class may be written without its comma.
  groups = [g if isinstance(g, (tuple, list)) else (g,) for g in listed]
  found = [label for group in groups for label in group]
  complete = len(found) == num_raw and set(found) == set(range(num_raw))
  if not complete or not all(groups):
    raise ConfigError(
      f"config.stream.class_groups={tuple(map(tuple, groups))} must list each of the "
      f"data set's classes 0 to {num_raw - 1} once, and at least one for each task; "
      "correct the list."
    )
  if len(groups) != spec.tasks:
    raise ConfigError(
      f"config.stream.class_groups lists {len(groups)} tasks, but config.stream.tasks "
      f"is {spec.tasks}; set it to {len(groups)}."
    )
  if spec.class_order == "random":
    raise ConfigError(
      "config.stream.class_order='random' would undo config.stream.class_groups; use "
      "'fixed', or leave class_groups at ()."
    )
  return [np.array(group, int) for group in groups]


def _split_labels(spec: Any, num_raw: int, rng: np.random.Generator) -> np.ndarray:
  """Returns [T, G]: each class's place within its task, -1 elsewhere."""
  groups = class_groups(spec, num_raw)
  order = np.arange(num_raw)
  if spec.class_order == "random":
    order = rng.permutation(num_raw)
  labels = np.full((spec.tasks, num_raw), -1)
  for task, group in enumerate(groups):
    labels[task, order[group]] = np.arange(len(group))
  return labels


def _permutations(
  spec: Any, pixels: int, seed: int, rng: np.random.Generator
) -> np.ndarray:
  """Returns [T, P]; the first may be the identity, as `first_permutation` says.

  `released` is the authors' code: the identity for seed 0 only.
  """
  rows = np.stack([rng.permutation(pixels) for _ in range(spec.tasks)])
  first = spec.first_permutation
  if first == "identity" or (first == "released" and seed == 0):
    rows[0] = np.arange(pixels)
  return rows.astype(np.int32)


def _label(
  spec: Any, within: np.ndarray, permutation: np.ndarray, raw_names: Sequence[Any]
) -> TaskSet:
  """Returns the task set whose labels follow the scenario; within is [T, G].

  Domain-incremental tasks share their labels; otherwise each task owns the labels
  after those of the task before, so classes are numbered in the order they come.
  """
  sizes = (within >= 0).sum(axis=1)
  if spec.scenario == "domain":
    classes = np.arange(sizes.max()) < sizes[:, None]
    names = tuple(str(label) for label in range(sizes.max()))
    return TaskSet(within.astype(np.int32), permutation, classes, names)
  ends = np.cumsum(sizes)[:, None]
  offset = ends - sizes[:, None]
  labels = np.where(within >= 0, within + offset, -1).astype(np.int32)
  number = np.arange(sizes.sum())
  classes = (offset <= number) & (number < ends)
  return TaskSet(labels, permutation, classes, _names(spec, labels, raw_names))


def _names(spec: Any, labels: np.ndarray, raw_names: Sequence[Any]) -> tuple[str, ...]:
  """Returns each label's raw class, with the task's number where tasks repeat it.

  A random class order differs between seeds: labels are then named by their place.
  """
  if spec.name != "permuted" and spec.class_order == "random":
    return tuple(f"#{place + 1}" for place in range(labels.max() + 1))
  owners = {
    int(label): (task, str(raw_names[g]))
    for task, row in enumerate(labels)
    for g, label in enumerate(row)
    if label >= 0
  }
  if spec.name != "permuted":
    return tuple(owners[label][1] for label in sorted(owners))
  return tuple(f"{task + 1}:{name}" for _, (task, name) in sorted(owners.items()))
