"""Reads the idx format of MNIST: a big-endian header, then one byte per value."""

import gzip
import io
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ebmjax.data.arrays import Split
from ebmjax.data.official import GZIP_MAGIC, REMEDY
from ebmjax.data.spec import Layout
from ebmjax.errors import DataError

_LARGEST = 1 << 30  # bytes; a small gzip file can unpack to any size


def unpack(path: Path) -> bytes:
  """Reads a plain or gzip file.

  The first bytes decide which it is, because browsers unpack files but keep names that
  end in .gz.
  """
  try:
    content = path.read_bytes()
    if content.startswith(GZIP_MAGIC):
      with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        content = file.read(_LARGEST)
        if file.read(1):
          raise DataError(f"{path} unpacks to more than 1 GB: {REMEDY}.")
  except EOFError:
    raise DataError(f"{path} is truncated: {REMEDY}.") from None
  except (gzip.BadGzipFile, zlib.error, struct.error) as error:
    raise DataError(f"{path} is a damaged gzip file ({error}): {REMEDY}.") from None
  except OSError as error:
    raise DataError(
      f"{path} cannot be read ({error.strerror or error}): make it a readable file."
    ) from None
  return content


def parse(content: bytes, rank: int, name: str) -> np.ndarray:
  """Parses the uint8 array of `rank` axes in an idx file; refuses incomplete files."""
  header_size = 4 + 4 * rank
  if len(content) < header_size:
    raise DataError(f"{name} is truncated within its header: {REMEDY}.")
  magic = bytes((0, 0, 8, rank))
  if content[:4] != magic:
    raise DataError(
      f"{name} must begin with the idx magic {magic.hex()} (unsigned bytes, {rank} "
      f"axes), but begins with {content[:4].hex()}: {REMEDY}."
    )
  shape = struct.unpack(f">{rank}I", content[4:header_size])
  expected, found = int(np.prod(shape, dtype=object)), len(content) - header_size
  if found != expected:
    problem = "truncated" if found < expected else "too long"
    raise DataError(
      f"{name} is {problem}, it announces {expected} bytes of data and holds {found}: "
      f"{REMEDY}."
    )
  # A copy, because an array over `bytes` is read-only.
  return np.frombuffer(content, np.uint8, offset=header_size).reshape(shape).copy()


def read_set(paths: Mapping[str, Path]) -> tuple[Split, Split]:
  """Reads the four files of an MNIST-like set, given by official name without ".gz"."""
  return _read_split(paths, "train"), _read_split(paths, "t10k")


def _read_split(paths: Mapping[str, Path], prefix: str) -> Split:
  """Reads the images [N, H, W] and labels [N] of one split."""
  x_path = paths[f"{prefix}-images-idx3-ubyte"]
  y_path = paths[f"{prefix}-labels-idx1-ubyte"]
  x = parse(unpack(x_path), 3, str(x_path))
  y = parse(unpack(y_path), 1, str(y_path))
  return Split(x, y, str(x_path), str(y_path))


LAYOUT = Layout(
  kind="idx files",
  names=(
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
  ),
  read=read_set,
)
