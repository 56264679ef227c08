"""Selects from a loaded set what a configuration asks for: fewer images, random labels.

How much a network can memorise is measured on labels that cannot be inferred from the
images. Nothing can be learned but by heart, so the training images are the test images.
"""

import numpy as np

from ebmjax.errors import DataError
from ebmjax.types import Dataset

_SEED = 0  # of the labels: a part of the data, the same for every seed of a run


def choose(dataset: Dataset, *, images: int, memorise: bool) -> Dataset:
  """Returns what a configuration asks for of a set: fewer images, random labels."""
  chosen = _first(dataset, images) if images else dataset
  if memorise:
    chosen = _memorise(chosen)
  found = len(np.unique(chosen.train_y))
  if chosen is not dataset and found < dataset.num_classes:
    raise DataError(
      f"{len(chosen.train_x)} training images of {dataset.name} have only {found} of "
      f"its {dataset.num_classes} classes: set config.data.images to more."
    )
  return chosen


def _first(dataset: Dataset, images: int) -> Dataset:
  """Returns the set with its first `images` training images, and all to test on."""
  count = len(dataset.train_x)
  if images > count:
    raise DataError(
      f"config.data.images is {images}, but {dataset.name} has {count} training "
      f"images: set config.data.images to at most {count}, or to 0 for all."
    )
  if images == count:
    return dataset
  return dataset._replace(
    source=f"{dataset.source}, the first {images:,} training images",
    full=False,
    train_x=dataset.train_x[:images],
    train_y=dataset.train_y[:images],
  )


def _memorise(dataset: Dataset) -> Dataset:
  """Returns the training images under random labels, to train and to test on.

  An image's label depends on its place alone: more images leave it as it is.
  """
  draw = np.random.default_rng(_SEED).integers
  labels = draw(0, dataset.num_classes, len(dataset.train_x)).astype(np.int32)
  return dataset._replace(
    source=f"{dataset.source}, labels random, tested on the training images",
    train_y=labels,
    test_x=dataset.train_x,
    test_y=labels,
    class_names=(),
  )
