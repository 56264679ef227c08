"""Noise for the capacity study: any number of images, with nothing to download."""

from typing import Annotated

import numpy as np

from ebmjax.data.spec import DatasetSpec
from ebmjax.types import Dataset

_CLASSES = 10


def load(*, images: Annotated[int, "number of images"] = 0) -> Dataset:
  """Returns a set of `images` numbers [N, 1] uint32, all labelled 0.

  The network generates each image from its number (networks.Noise).
  """
  numbers = np.arange(images, dtype=np.uint32)[:, None]
  labels = np.zeros(images, np.int32)
  source = f"noise, {images:,} generated images"
  return Dataset("noise", source, True, numbers, labels, numbers, labels, _CLASSES)


NOISE = DatasetSpec(
  name="noise",
  title="Noise",
  image_shape=(32, 32, 3),
  num_classes=_CLASSES,
  mean=(0.0,),
  std=(1.0,),
  sources=(),
  load=load,
  generated=True,
)
