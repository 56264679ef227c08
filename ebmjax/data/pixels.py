"""Converts inputs of any type and range to the forms that a Dataset holds.

An image gives the same result as integers and as floats, because the range depends on
the values and never on their type.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from ebmjax.errors import DataError

Range = tuple[float, float]
_BLOCK = 4096  # rows at a time, so that a mapped array is never wholly in memory


def blocks(x: np.ndarray) -> Iterator[np.ndarray]:
  """Yields x [N, ...] in blocks of rows."""
  for start in range(0, len(x), _BLOCK):
    yield x[start : start + _BLOCK]


def check_shape(x: np.ndarray, name: str) -> np.ndarray:
  """Checks x and returns it as images [N, H, W] or [N, H, W, 3], or rows [N, F]."""
  if x.dtype.kind not in "buif":
    raise DataError(f"{name} holds values of type {x.dtype}: give integers or floats.")
  if x.ndim == 4 and x.shape[3] == 1:
    x = x.reshape(x.shape[:3])
  if x.ndim not in (2, 3) and not (x.ndim == 4 and x.shape[3] == 3):
    raise DataError(
      f"{name} has shape {x.shape}: give images [N, H, W], [N, H, W, 1] or [N, H, W, "
      "3] with the channels last, or rows [N, F]."
    )
  if not x.size:
    raise DataError(f"{name} of shape {x.shape} is empty: give at least one row.")
  return x


def to_rows(x: np.ndarray, name: str) -> np.ndarray:
  """Converts rows [N, F] to float32; raises if a value is not finite."""
  with np.errstate(over="ignore"):  # what overflows becomes infinite and is refused
    rows = x if x.dtype == np.float32 else x.astype(np.float32)
  _extent([rows], name)
  return rows


def to_images(
  parts: Sequence[np.ndarray], given: Sequence[float], name: str
) -> tuple[list[np.ndarray], Range, str]:
  """Converts the parts of a set to images; also returns their range and a phrase on it.

  Images are uint8 if that is lossless, and float32 from 0 to 1 otherwise. `given` is
  the range (low, high), or () for the one of 0 to 1 and 0 to 255 that fits.
  """
  extent = _extent(parts, name)
  low, high = _choose_range(extent, given, name)
  if all(_exact(x, (low, high)) for x in parts):
    images = [convert(x, (low, high), np.dtype(np.uint8)) for x in parts]
  else:
    images = [convert(x, (low, high), np.dtype(np.float32)) for x in parts]
  phrase = f"pixels from {low:g} to {high:g} scaled to 0..1"
  if extent[1] < (low + high) / 2:
    phrase += f" (none exceeds {extent[1]:g})"
  return images, (low, high), phrase


def convert(x: np.ndarray, scale: Range, dtype: np.dtype) -> np.ndarray:
  """Converts images of a range to uint8, or to float32 from 0 to 1.

  It also converts images to predict like the training images.
  """
  if x.dtype == dtype == np.uint8 and scale == (0.0, 255.0):
    return x
  result = np.empty(x.shape, dtype)
  for start, block in zip(range(0, len(x), _BLOCK), blocks(x), strict=True):
    levels = _levels(block, scale)
    if not (levels.min() >= 0 and levels.max() <= 255.001):  # NaN is refused, too
      raise DataError(
        f"some pixels are not within {scale[0]:g} to {scale[1]:g}, the range of the "
        "training images: give images of the same range."
      )
    stored = np.rint(levels) if dtype == np.uint8 else levels / 255
    result[start : start + len(block)] = stored
  return result


def _extent(parts: Sequence[np.ndarray], name: str) -> Range:
  """Returns the smallest and the largest value of all parts."""
  found = [(block.min(), block.max()) for x in parts for block in blocks(x)]
  low, high = float(np.min(found)), float(np.max(found))
  if not np.isfinite(low) or not np.isfinite(high):
    raise DataError(
      f"{name} holds values that are NaN or infinite as float32: replace them by "
      "finite numbers."
    )
  return low, high


def _choose_range(extent: Range, given: Sequence[float], name: str) -> Range:
  """Returns the given range, or the usual one that contains all values."""
  low, high = extent
  if len(given):
    if len(given) != 2 or not given[0] < given[1]:
      raise DataError(
        f"config.data.range={tuple(given)} is not a valid range: give (low, high) "
        "with low < high, such as (0, 16)."
      )
    if low < given[0] or high > given[1]:
      raise DataError(
        f"{name} holds pixels from {low:g} to {high:g}, but config.data.range is "
        f"({given[0]:g}, {given[1]:g}): give a range that contains all of them."
      )
    return float(given[0]), float(given[1])
  for top in (1.0, 255.0):
    if low >= 0 and high <= top:
      return 0.0, top
  raise DataError(
    f"{name} holds pixels from {low:g} to {high:g}, neither within 0 to 1 nor within 0 "
    "to 255: give the values of black and white as config.data.range=(low, high)."
  )


def _levels(block: np.ndarray, scale: Range) -> np.ndarray:
  """Scales pixels to float64 from 0 to 255."""
  low, high = scale
  return (block.astype(np.float64) - low) * (255 / (high - low))


def _exact(x: np.ndarray, scale: Range) -> bool:
  """Returns whether all pixels are whole levels, up to the rounding of their type."""
  if x.dtype.kind != "f" and scale == (0.0, 255.0):
    return True
  epsilon = np.finfo(x.dtype if x.dtype.kind == "f" else np.float64).eps
  for block in blocks(x):
    levels = _levels(block, scale)
    if np.abs(levels - np.rint(levels)).max() > 255 * float(epsilon):
      return False
  return True
