"""Reads arrays of an npz file: checked, never unpickled, and mapped where large."""

import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from ebmjax.errors import DataError, first_line

_MAPPED = 1 << 28  # bytes; smaller arrays are read, so that their file may change
_CHUNK = 1 << 22
_HEADERS = {
  (1, 0): np.lib.format.read_array_header_1_0,
  (2, 0): np.lib.format.read_array_header_2_0,
}


def read(path: Path, keys: Sequence[str] | None, remedy: str) -> dict[str, np.ndarray]:
  """Returns those of the named arrays that a file holds; without names, all of them.

  A large array that is stored without compression stays on the disk, mapped into
  memory. `remedy` is what to do about a damaged file.
  """
  try:
    with zipfile.ZipFile(path) as archive:
      members = {m.filename.removesuffix(".npy"): m for m in archive.infolist()}
      return {
        key: _read_member(path, archive, members[key])
        for key in (members if keys is None else keys)
        if key in members
      }
  except OSError as error:
    raise DataError(f"{path} cannot be read ({error}): {remedy}.") from None
  except DataError:
    raise
  except Exception as error:  # of zipfile and NumPy, of many kinds
    raise DataError(
      f"{path} is a damaged npz ({first_line(error)}): {remedy}."
    ) from None


def names(path: Path) -> list[str]:
  """Returns the names of all arrays of a file that `read` has read from."""
  with zipfile.ZipFile(path) as archive:
    return [name.removesuffix(".npy") for name in archive.namelist()]


def _read_member(
  path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo
) -> np.ndarray:
  """Returns one array, after its checksum was compared."""
  with archive.open(member) as file:
    header = _read_header(file)
    if header is not None and header[2].hasobject:
      raise DataError(
        f"{path}[{member.filename.removesuffix('.npy')}] holds Python objects, which "
        "are never unpickled: save it as an array of numbers or of strings."
      )
    if header is not None:
      _require_size(file, member, header)
    mapped = header is not None and member.file_size >= _MAPPED
    if mapped and member.compress_type == zipfile.ZIP_STORED:
      while file.read(_CHUNK):  # zipfile compares the checksum at the end
        pass
      return _map_member(path, member)
  with archive.open(member) as file:
    values = np.lib.format.read_array(file, allow_pickle=False)
    if file.read(1):
      raise ValueError(f"{member.filename} is too long")
    return values


def _require_size(
  file: IO[bytes], member: zipfile.ZipInfo, header: tuple[Any, ...]
) -> None:
  """Refuses an array whose bytes are not as many as its shape says, unread."""
  shape, _, dtype = header
  if file.tell() + math.prod(shape) * dtype.itemsize != member.file_size:
    raise ValueError(f"{member.filename} has another size than its array")


def _read_header(file: IO[bytes]) -> tuple[Any, ...] | None:
  """Returns (shape, whether in Fortran's order, dtype); None in an unusual format."""
  version = np.lib.format.read_magic(file)
  return _HEADERS[version](file) if version in _HEADERS else None


def _map_member(path: Path, member: zipfile.ZipInfo) -> np.ndarray:
  """Returns an uncompressed array as a read-only map of its part of the file."""
  with path.open("rb") as file:
    file.seek(member.header_offset + 26)  # the lengths of its name and extra field
    lengths = np.frombuffer(file.read(4), "<u2")
    file.seek(int(lengths.sum()), 1)
    header = _read_header(file)
    assert header is not None
    shape, fortran, dtype = header
    order = "F" if fortran else "C"
    return np.memmap(path, dtype, "r", file.tell(), shape, order)  # type: ignore[call-overload]
