"""Changes a loaded set as a configuration asks: fewer images, random labels.

How much a network can memorise is measured on labels that cannot be inferred from the
images. The labels can only be memorised, so the training images are the test images.
"""

import numpy as np

from ebmjax.errors import DataError
from ebmjax.types import Dataset

_SEED = 0  # of the labels, which are part of the data: the same for all seeds of a run


def choose(dataset: Dataset, *, images: int, memorise: bool) -> Dataset:
  """Keeps the first `images` training images (0: all), with random labels or not."""
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
  """Keeps the first `images` training images and all test images."""
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
  """Gives the training images random labels, and also tests on them.

  A label depends only on the image's position, so more images do not change it.
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
