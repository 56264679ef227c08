"""The TFDS builder that prepares a set without TensorFlow.

Importing this module imports TFDS, so import it only to prepare a set.

The stock builders need TensorFlow to encode images and to unpack archives. This one
stores raw bytes and unpacks with the standard library. Because TFDS shuffles, it also
stores the index of every example, so the official order can be restored and verified.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow_datasets as tfds

from ebmjax.data.arrays import Split, check_split
from ebmjax.data.spec import DatasetSpec


def make_builder(spec: DatasetSpec, folder: Path, files: dict[str, Path]) -> Any:
  """Returns a builder that writes a set to `folder`, <data_dir>/<name>/<version>.

  `files` are the downloads by name.
  """
  # TFDS reads a builder's name and version from its class.
  members = {
    "__module__": __name__,
    "name": folder.parent.name,
    "VERSION": tfds.core.Version(folder.name),
    "dataset": spec,
    "files": files,
  }
  builder = type("Builder", (_Builder,), members, skip_registration=True)
  return builder(data_dir=str(folder.parent.parent), file_format="array_record")


class _Builder(tfds.core.GeneratorBasedBuilder, skip_registration=True):  # type: ignore[call-arg]
  """Stores the set of its subclass."""

  dataset: DatasetSpec
  files: dict[str, Path]

  def _info(self) -> Any:
    features = {
      "image": tfds.features.Tensor(shape=self.dataset.image_shape, dtype=np.uint8),
      "label": tfds.features.ClassLabel(num_classes=self.dataset.num_classes),
      "index": tfds.features.Scalar(np.int64),
    }
    features_dict = tfds.features.FeaturesDict(features)
    return tfds.core.DatasetInfo(builder=self, features=features_dict)

  def _split_generators(self, dl_manager: Any) -> dict[str, Iterator[Any]]:
    """Reads all files and returns a generator of examples for each split."""
    train, test = self.dataset.downloaded.read(
      {name.removesuffix(".gz"): path for name, path in self.files.items()}
    )
    return {
      "train": self._generate_examples(train),
      "test": self._generate_examples(test),
    }

  def _generate_examples(self, split: Split) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields the examples of a split with their index as the key."""
    shape, num_classes = self.dataset.image_shape, self.dataset.num_classes
    x, y, *_ = check_split(split, shape, num_classes, "download it again")
    for index in range(len(x)):
      yield index, {"image": x[index], "label": int(y[index]), "index": index}
