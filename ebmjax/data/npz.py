"""Reads arrays of an npz file: checked, never unpickled, and mapped where large."""

import contextlib
import math
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from ebmjax.data.arrays import Split
from ebmjax.errors import DataError, first_line

_MAPPED = 1 << 28  # bytes; smaller arrays are read, so that their file may change
_CHUNK = 1 << 22
_HEADERS = {
  (1, 0): np.lib.format.read_array_header_1_0,
  (2, 0): np.lib.format.read_array_header_2_0,
}


def read(
  path: Path, keys: Sequence[str] | None, remedy: str, form: str = ""
) -> dict[str, np.ndarray]:
  """Returns the named arrays, which a file must hold; without names, all it holds.

  A large array that is stored without compression stays on the disk, mapped into
  memory. `remedy` says what to do about a damaged file, and `form` which arrays a file
  may hold, if others than the named ones would do.
  """
  with _opened(path, remedy) as archive:
    members = {_name(member): member for member in archive.infolist()}
    wanted = list(members) if keys is None else keys
    missing = [key for key in wanted if key not in members]
    if missing:
      raise DataError(
        f"{path} must hold {form or ', '.join(wanted)}, but lacks {', '.join(missing)} "
        f"and holds {', '.join(members) or 'nothing'}: add or rename arrays."
      )
    return {key: _read_member(path, archive, members[key]) for key in wanted}


def read_splits(
  path: Path, endings: Sequence[str], remedy: str, form: str = ""
) -> list[Split]:
  """Returns the splits whose arrays, x and y, have names with these endings.

  The ending "_train" stands for x_train and y_train. `remedy` and `form` are those of
  `read`.
  """
  found = read(path, [kind + end for end in endings for kind in "xy"], remedy, form)
  names = [(f"x{ending}", f"y{ending}") for ending in endings]
  return [Split(found[x], found[y], f"{path}[{x}]", f"{path}[{y}]") for x, y in names]


def names(path: Path, remedy: str) -> list[str]:
  """Returns the names of all arrays of a file."""
  with _opened(path, remedy) as archive:
    return [_name(member) for member in archive.infolist()]


@contextlib.contextmanager
def _opened(path: Path, remedy: str) -> Iterator[zipfile.ZipFile]:
  """Yields an archive, and explains the errors of reading it."""
  try:
    with zipfile.ZipFile(path) as archive:
      yield archive
  except OSError as error:
    raise DataError(f"{path} cannot be read ({error}): {remedy}.") from None
  except DataError:
    raise
  except Exception as error:  # of zipfile and NumPy, of many kinds
    raise DataError(
      f"{path} is a damaged npz ({first_line(error)}): {remedy}."
    ) from None


def _name(member: zipfile.ZipInfo) -> str:
  return member.filename.removesuffix(".npy")


def _read_member(
  path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo
) -> np.ndarray:
  """Returns one array, after its checksum was compared."""
  with archive.open(member) as file:
    header = _read_header(file)
    if header is not None and header[2].hasobject:
      raise DataError(
        f"{path}[{_name(member)}] holds Python objects, which are never unpickled: "
        "save it as an array of numbers or of strings."
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
