"""Prepares sets as the builders that TFDS ships would: as images, in TFDS' order."""

from pathlib import Path
from typing import Any

import numpy as np

from ebmjax.data import tfds_prepare


def prepare_stock(
  data_dir: Path,
  arrays: dict[str, np.ndarray],
  file_format: str,
  name: str = "mnist",
  num_classes: int = 10,
  names: list[str] | None = None,
  feature: str = "image",
) -> None:
  """Prepares version 3.0.1 of a set under the name that TFDS has for it.

  `names` are those of the classes, and `feature` is that of the images.
  """
  with tfds_prepare.quiet_tfds() as tfds:
    from PIL import Image

    side, _, *channels = arrays["train_x"].shape[1:]

    def describe(self: Any) -> Any:
      image = tfds.features.Image(shape=(side, side, *(channels or [1])))
      count = None if names else num_classes
      label = tfds.features.ClassLabel(num_classes=count, names=names)
      features = tfds.features.FeaturesDict({feature: image, "label": label})
      return tfds.core.DatasetInfo(builder=self, features=features)

    def examples(split: str) -> Any:
      pairs = zip(arrays[f"{split}_x"], arrays[f"{split}_y"], strict=True)
      for i, (x, y) in enumerate(pairs):
        yield i, {feature: Image.fromarray(x), "label": int(y)}

    members = {
      "__module__": __name__,
      "name": name,
      "VERSION": tfds.core.Version("3.0.1"),
      "_info": describe,
      "_split_generators": lambda self, manager: {
        "train": examples("train"),
        "test": examples("test"),
      },
      "_generate_examples": None,
    }
    bases = (tfds.core.GeneratorBasedBuilder,)
    stock = type("Stock", bases, members, skip_registration=True)
    stock(data_dir=str(data_dir), file_format=file_format).download_and_prepare()


def rows(x: np.ndarray, y: np.ndarray) -> list[bytes]:
  """Returns the examples as bytes, sorted."""
  return sorted(
    a.tobytes() + bytes([int(label)]) for a, label in zip(x, y, strict=True)
  )
