"""Numbers the classes of labels of any type: integers in any order, or strings."""

from collections.abc import Sequence

import numpy as np

from ebmjax.errors import DataError


def check(y: np.ndarray, count: int, name: str) -> np.ndarray:
  """Checks labels [N] and returns them as integers or strings."""
  if y.ndim != 1:
    raise DataError(
      f"{name} must hold one label per row, but has shape {y.shape}: give an array [N] "
      "of integers or strings."
    )
  if len(y) != count:
    raise DataError(
      f"{name} holds {len(y):,} labels for {count:,} rows of x: label each row."
    )
  if y.dtype.kind == "S":
    y = np.char.decode(y, "utf-8", "replace")
  if y.dtype.kind == "T":  # NumPy's strings of variable length
    y = y.astype(str)
  if y.dtype.kind == "f":
    y = _as_integers(y, name)
  if y.dtype.kind not in "biuU":
    raise DataError(
      f"{name} holds labels of type {y.dtype}: give integers or strings as labels."
    )
  return y.astype(np.int64) if y.dtype.kind == "b" else y


def number(
  train: np.ndarray, test: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None, tuple[int | str, ...]]:
  """Numbers the classes; returns those of all rows, int32, and the label of each class.

  Classes are numbered in the order of their labels; if all strings are integers, they
  are ordered as integers.
  """
  if test is not None and (train.dtype.kind == "U") != (test.dtype.kind == "U"):
    raise DataError(
      "the training labels and the test labels are strings in one and numbers in the "
      "other: give the same labels in both."
    )
  found = np.unique(train)
  classes = found[_order(found)]
  place = np.empty(len(found), np.int32)
  place[_order(found)] = np.arange(len(found))
  train_y = place[np.searchsorted(found, train)]
  if test is None:
    return train_y, None, tuple(classes.tolist())
  _require_known(found, test)
  return train_y, place[np.searchsorted(found, test)], tuple(classes.tolist())


def check_names(
  given: Sequence[str] | None, found: tuple[int | str, ...]
) -> tuple[str, ...]:
  """Returns the given names of the classes, or else their labels."""
  if not given:
    return tuple(str(label) for label in found)
  if len(given) != len(found):
    raise DataError(
      f"class_names has {len(given)} names, but the training labels have {len(found)} "
      "classes: give one name for each class, in the order of the labels."
    )
  return tuple(str(name) for name in given)


def _order(labels: np.ndarray) -> np.ndarray:
  """Returns the order of sorted labels [C]: by value if all strings are integers."""
  if labels.dtype.kind == "U" and all(label.isdecimal() for label in labels):
    return np.argsort([int(label) for label in labels], kind="stable")
  return np.arange(len(labels))


def _as_integers(y: np.ndarray, name: str) -> np.ndarray:
  """Converts float labels whose values are integers."""
  bad = y[~np.isfinite(y) | (y != np.rint(y))]
  if len(bad):
    raise DataError(
      f"{name} holds the label {bad[0]:g}, which is not an integer: give integers or "
      "strings as labels."
    )
  return y.astype(np.int64)


def _require_known(classes: np.ndarray, test: np.ndarray) -> None:
  """Raises if the classes of the test part differ from those of the training part."""
  unknown = np.setdiff1d(test, classes)
  if len(unknown):
    raise DataError(
      f"the test labels have class {str(unknown[0])!r}, which the training labels "
      "never have: add it to the training part, or remove it from the test part."
    )
  missing = np.setdiff1d(classes, test)
  if len(missing):
    raise DataError(
      f"the test labels have none of class {str(missing[0])!r}: add some of each "
      "class, or leave out the test part, so that a share of each class is held out."
    )
