"""Validation images: training images held out, so that settings are not chosen on test.

They are a part of the data: the same whatever the seed, the method and the settings of
a run, and fewer of them are a subset of more.
"""

import numpy as np

from ebmjax.errors import DataError
from ebmjax.types import Dataset

_SEED = 0


def smallest_class(dataset: Dataset) -> tuple[int, int]:
  """Returns the class with the fewest training images, and how many it has."""
  classes, counts = np.unique(dataset.train_y, return_counts=True)
  at = int(counts.argmin())
  return int(classes[at]), int(counts[at])


def hold_out(dataset: Dataset, per_class: int) -> Dataset:
  """Returns the set with so many training images of each class as its test images.

  The images that stay to be trained on keep their order.
  """
  label, fewest = smallest_class(dataset)
  if per_class >= fewest:
    raise DataError(
      f"config.data.validation is {per_class}, but class {label} of {dataset.name} has "
      f"only {fewest} training images, and some must stay to be trained on: set "
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


def _held_rows(y: np.ndarray, per_class: int) -> np.ndarray:
  """Returns [N] bool: the first `per_class` rows of each class in a fixed shuffle."""
  held = np.zeros(len(y), bool)
  for label in np.unique(y):
    rows = np.flatnonzero(y == label)
    shuffled = np.random.default_rng([_SEED, int(label)]).permutation(rows)
    held[shuffled[:per_class]] = True
  return held
