"""Holds out training images: for validation, or as the test part of a set without one.

The choice depends only on the data, not on the seed, the method or the settings of a
run, and a smaller number gives a subset of a larger one.
"""

from collections.abc import Sequence

import numpy as np

from ebmjax.errors import DataError
from ebmjax.types import Dataset

_SEED = 0


def smallest_class(dataset: Dataset) -> tuple[int, int]:
  """Returns the class with the fewest training images, and their number."""
  classes, counts = np.unique(dataset.train_y, return_counts=True)
  at = int(counts.argmin())
  return int(classes[at]), int(counts[at])


def hold_out(dataset: Dataset, per_class: int) -> Dataset:
  """Replaces the test images by `per_class` training images of each class.

  The other training images keep their order.
  """
  label, fewest = smallest_class(dataset)
  name = dataset.class_names[label] if dataset.class_names else label
  if per_class >= fewest:
    raise DataError(
      f"config.data.validation is {per_class}, but class {name} of {dataset.name} has "
      f"only {fewest} training images, and some must be left to train on: set "
      f"config.data.validation to less than {fewest}."
    )
  held = _held_rows(dataset.train_y, per_class)
  return dataset._replace(
    source=f"{dataset.source}, {per_class:,} training images of each class held out "
    "for validation in place of the test images",
    train_x=dataset.train_x[~held],
    train_y=dataset.train_y[~held],
    test_x=dataset.train_x[held],
    test_y=dataset.train_y[held],
  )


def share_rows(y: np.ndarray, share: float, names: Sequence[str]) -> np.ndarray:
  """Returns a mask [N] of a share of each class y [N]: at least one row, never all."""
  if not 0 < share < 1:
    raise DataError(
      f"config.data.test_share={share:g} must lie between 0 and 1, because there is no "
      "test part: set it to a share such as 0.2."
    )
  counts = np.bincount(y)
  if counts.min() < 2:
    raise DataError(
      f"class {names[int(counts.argmin())]!r} has one example only, and a share of "
      "each class is held out for testing: add another one, or give a test part."
    )
  return _held_rows(y, np.clip(np.rint(share * counts).astype(int), 1, counts - 1))


def _held_rows(y: np.ndarray, per_class: int | np.ndarray) -> np.ndarray:
  """Returns a mask [N] of `per_class` (or [C]) random rows of each class."""
  held = np.zeros(len(y), bool)
  counts = np.broadcast_to(per_class, int(y.max()) + 1)
  for label in np.unique(y):
    rows = np.flatnonzero(y == label)
    shuffled = np.random.default_rng([_SEED, int(label)]).permutation(rows)
    held[shuffled[: counts[label]]] = True
  return held
