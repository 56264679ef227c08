"""Builds a Dataset from arrays: images or rows, any labels, any range of pixels."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ebmjax.data import held_out, labels, pixels
from ebmjax.data.arrays import Split
from ebmjax.errors import DataError
from ebmjax.types import Dataset


def from_arrays(
  x_train: Any,
  y_train: Any,
  x_test: Any = None,
  y_test: Any = None,
  *,
  name: str = "own",
  class_names: Sequence[str] | None = None,
  test_share: float = 0.2,
  range: Sequence[float] = (),
) -> Dataset:
  """Makes a data set, which every part of ebmjax accepts, from arrays.

  x: images [N, H, W], [N, H, W, 1] or [N, H, W, 3] of integers or floats, or rows
  [N, F]; y [N]: integers or strings. Without a test part, `test_share` of each class is
  held out, always the same rows. `range` (low, high) gives the values of black and
  white, by default 0 to 1 or 0 to 255, whichever contains all values.

  >>> import numpy as np
  >>> from ebmjax import data
  >>> x, y = np.arange(40).reshape(10, 2, 2), ["cat", "dog"] * 5
  >>> pets = data.from_arrays(x, y, name="pets")
  >>> pets.train_x.shape, pets.test_x.shape, pets.class_names
  ((8, 2, 2), (2, 2, 2), ('cat', 'dog'))
  """
  if (x_test is None) != (y_test is None):
    raise DataError("x_test and y_test belong together: give both of them, or neither.")
  parts = [_as_split(x_train, y_train, "train")]
  if x_test is not None:
    parts.append(_as_split(x_test, y_test, "test"))
  return assemble(
    parts,
    name=name,
    origin="arrays",
    class_names=class_names,
    test_share=test_share,
    value_range=range,
  )


def assemble(
  parts: Sequence[Split],
  *,
  name: str,
  origin: str,
  class_names: Sequence[str] | None,
  test_share: float,
  value_range: Sequence[float],
) -> Dataset:
  """Makes a data set of the training part and, if there is one, the test part."""
  inputs = [pixels.check_shape(part.x, part.x_from) for part in parts]
  raw = [
    labels.check(part.y, len(x), part.y_from)
    for part, x in zip(parts, inputs, strict=True)
  ]
  train_y, test_y, found = labels.number(raw[0], raw[1] if len(raw) > 1 else None)
  names = labels.check_names(class_names, found)
  if len(names) < 2:
    raise DataError(
      f"{parts[0].y_from} has only the class {names[0]!r}: give at least two classes."
    )
  _require_same_shape(inputs, parts)
  inputs, scale, stated = _stored(inputs, value_range, parts)
  if test_y is None:
    held = held_out.share_rows(train_y, test_share, names)
    inputs = [inputs[0][~held], inputs[0][held]]
    train_y, test_y = train_y[~held], train_y[held]
    stated.append(f"{100 * test_share:g} % of each class held out as the test part")
  return Dataset(
    name,
    _source(name, origin, inputs, len(names), stated),
    True,
    *(inputs[0], train_y, inputs[1], test_y),
    num_classes=len(names),
    class_names=names,
    range=scale,
    labels=found,
  )


def _as_split(x: Any, y: Any, part: str) -> Split:
  """Converts the arrays of any library to NumPy."""
  try:
    return Split(np.asarray(x), np.asarray(y), f"x_{part}", f"y_{part}")
  except ValueError as error:  # rows of different lengths
    raise DataError(
      f"x_{part} and y_{part} cannot be converted to arrays ({error}): give all rows "
      "the same shape."
    ) from None


def _require_same_shape(inputs: Sequence[np.ndarray], parts: Sequence[Split]) -> None:
  """Raises if the test inputs have another shape than the training inputs."""
  shapes = [x.shape[1:] for x in inputs]
  if shapes[0] != shapes[-1]:
    raise DataError(
      f"{parts[0].x_from} holds inputs of shape {shapes[0]}, but {parts[-1].x_from} of "
      f"shape {shapes[-1]}: give both parts the same shape."
    )


def _stored(
  inputs: list[np.ndarray], value_range: Sequence[float], parts: Sequence[Split]
) -> tuple[list[np.ndarray], pixels.Range, list[str]]:
  """Returns the inputs as a Dataset holds them, their range and phrases about it."""
  if inputs[0].ndim > 2:
    images, scale, stated = pixels.to_images(inputs, value_range, parts[0].x_from)
    return images, scale, [stated]
  rows = [pixels.to_rows(x, part.x_from) for x, part in zip(inputs, parts, strict=True)]
  return rows, (0.0, 1.0), []


def _source(
  name: str, origin: str, inputs: Sequence[np.ndarray], classes: int, stated: list[str]
) -> str:
  """Returns the description of the data that every output shows."""
  shape = inputs[0].shape[1:]
  kind = f"images of {'x'.join(map(str, shape))}"
  if len(shape) == 1:
    kind = f"rows of {shape[0]:,} features"
  sizes = f"{len(inputs[0]):,} training and {len(inputs[1]):,} test {kind}"
  return ", ".join([f"{name}, {origin}: {sizes} in {classes:,} classes", *stated])
