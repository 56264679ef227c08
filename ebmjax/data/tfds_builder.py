"""The TFDS builder that prepares a set without TensorFlow.

Importing this module imports TFDS, so import it only where a set is prepared.

The stock builders need TensorFlow to encode images and to unpack archives. This one
stores raw bytes, unpacks with the standard library, and stores the index of every
example, because TFDS shuffles: the official order can be restored and verified.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow_datasets as tfds

from ebmjax.data.arrays import Split, check_split
from ebmjax.data.spec import DatasetSpec


def make_builder(spec: DatasetSpec, folder: Path, files: dict[str, Path]) -> Any:
  """Returns a builder of one data set, which writes <data_dir>/<name>/<version>.

  `files` are its downloads by name.
  """
  # TFDS takes the name and version of a builder from its class.
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
    """Returns the description of the stored examples."""
    features = {
      "image": tfds.features.Tensor(shape=self.dataset.image_shape, dtype=np.uint8),
      "label": tfds.features.ClassLabel(num_classes=self.dataset.num_classes),
      "index": tfds.features.Scalar(np.int64),
    }
    features_dict = tfds.features.FeaturesDict(features)
    return tfds.core.DatasetInfo(builder=self, features=features_dict)

  def _split_generators(self, dl_manager: Any) -> dict[str, Iterator[Any]]:
    """Returns the generators of the examples, after all files are read."""
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
