"""The arrays of a split, their checksums, and the checks common to all sources."""

import hashlib
import struct
from typing import NamedTuple

import numpy as np

from ebmjax.errors import DataError
from ebmjax.types import Dataset


class Split(NamedTuple):
  """The images and labels of one split, and what error messages call them."""

  x: np.ndarray  # [N, H, W] or [N, H, W, 3] uint8
  y: np.ndarray  # [N] integers
  x_from: str  # "train-images-idx3-ubyte.gz"
  y_from: str  # "train-labels-idx1-ubyte.gz"


class Pins(NamedTuple):
  """The size of an official split and the sha256 sums of its content."""

  size: int  # examples
  x: str  # of the images as an idx file, in the official order; "" if unknown
  y: str  # of the labels as an idx file, in the official order; "" if unknown
  rows: str  # of the (image, label) pairs in any order


def idx_header(shape: tuple[int, ...]) -> bytes:
  """Returns the header of an idx file of unsigned bytes."""
  return struct.pack(f">BBBB{len(shape)}I", 0, 0, 8, len(shape), *shape)


def content_sha256(values: np.ndarray) -> str:
  """Returns the sha256 of values [N, ...], written as an idx file.

  So every source can be compared with the official files: an idx file, an npz and a
  TFDS set with the same arrays have the same sum.
  """
  values = np.ascontiguousarray(values, np.uint8)
  total = hashlib.sha256(idx_header(values.shape))
  total.update(values.data)  # without a copy, which would take 150 MB for CIFAR
  return total.hexdigest()


def rows_sha256(x: np.ndarray, y: np.ndarray) -> str:
  """Returns a sha256 of the pairs of x [N, ...] and y [N], in any order."""
  labels = y.astype(np.uint8)
  rows = zip(x, labels, strict=True)
  sums = sorted(
    hashlib.sha256(row.tobytes() + label.tobytes()).digest() for row, label in rows
  )
  return hashlib.sha256(b"".join(sums)).hexdigest()


def digest(dataset: Dataset) -> str:
  """Returns 16 hex digits that identify the exact arrays of a data set."""
  total = hashlib.sha256()
  for values in (dataset.train_x, dataset.train_y, dataset.test_x, dataset.test_y):
    total.update(f"{values.dtype.str}{values.shape}".encode())
    total.update(
      np.ascontiguousarray(values).data
    )  # without a copy, even of mapped arrays
  return total.hexdigest()[:16]


def check_split(
  split: Split, image_shape: tuple[int, ...], num_classes: int, remedy: str
) -> Split:
  """Checks a split and returns it with int32 labels."""
  x, y, x_from, y_from = split
  if x.dtype != np.uint8 or x.shape[1:] != image_shape:
    raise DataError(
      f"{x_from} must hold images of type uint8 and shape {image_shape}, but holds "
      f"{x.dtype} of shape {x.shape[1:]}: {remedy}."
    )
  if y.ndim != 1 or not np.issubdtype(y.dtype, np.integer):
    raise DataError(
      f"{y_from} must hold one integer per image, but holds {y.dtype} of shape "
      f"{y.shape}: {remedy}."
    )
  if len(x) != len(y):
    raise DataError(
      f"{x_from} holds {len(x)} images, but {y_from} holds {len(y)} labels: {remedy}."
    )
  if not len(x):
    raise DataError(f"{x_from} holds no images: {remedy}.")
  if y.min() < 0 or y.max() >= num_classes:
    raise DataError(
      f"{y_from} must hold labels from 0 to {num_classes - 1}, but holds labels from "
      f"{y.min()} to {y.max()}: {remedy}."
    )
  return split._replace(x=np.ascontiguousarray(x), y=y.astype(np.int32))


def check_pins(split: Split, pins: Pins, ordered: bool, remedy: str) -> None:
  """Raises if a split is not the official one, bit for bit.

  Without `ordered`, or if no sum of the official order is known, the examples may be in
  any order.
  """
  if len(split.x) != pins.size:
    raise DataError(
      f"{split.x_from} must hold {pins.size} examples, but holds {len(split.x)}: "
      f"{remedy}."
    )
  if not ordered or not pins.x:
    same_x = same_y = rows_sha256(split.x, split.y) == pins.rows
  else:
    same_x = content_sha256(split.x) == pins.x
    same_y = content_sha256(split.y) == pins.y
  if not same_x or not same_y:
    damaged = split.y_from if same_x else split.x_from
    raise DataError(
      f"{damaged} has the official size, but its content does not match the official "
      f"checksum, so it is damaged: {remedy}."
    )


def check_classes(dataset: Dataset) -> None:
  """Raises if a class has no training image or no test image.

  Tasks are made of all official classes of the set.
  """
  for part, y in (("training", dataset.train_y), ("test", dataset.test_y)):
    missing = set(range(dataset.num_classes)) - set(np.unique(y).tolist())
    if missing:
      raise DataError(
        f"the {part} images hold none of class {min(missing)}, one of the "
        f"{dataset.num_classes} classes of {dataset.name}: add some of each class."
      )
