"""Reads the arrays of an npz file: checked, never unpickled, mapped if large."""

import contextlib
import math
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from ebmjax.data.arrays import Split
from ebmjax.errors import DataError, first_line

_MAPPED = 1 << 28  # bytes; smaller arrays are read, so their file may change later
_CHUNK = 1 << 22
_HEADERS = {
  (1, 0): np.lib.format.read_array_header_1_0,
  (2, 0): np.lib.format.read_array_header_2_0,
}


def read(
  path: Path, keys: Sequence[str] | None, remedy: str, form: str = ""
) -> dict[str, np.ndarray]:
  """Reads the named arrays, which a file must hold; without names, all arrays.

  A large uncompressed array stays on disk and is mapped into memory. `remedy` says what
  to do about a damaged file; `form` describes the arrays that a file may hold, if there
  are alternatives to `keys`.
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
  """Reads a split for each ending: "_train" means x_train and y_train.

  `remedy` and `form` are as in `read`.
  """
  found = read(path, [kind + end for end in endings for kind in "xy"], remedy, form)
  names = [(f"x{ending}", f"y{ending}") for ending in endings]
  return [Split(found[x], found[y], f"{path}[{x}]", f"{path}[{y}]") for x, y in names]


def names(path: Path, remedy: str) -> list[str]:
  """Lists the arrays of a file."""
  with _opened(path, remedy) as archive:
    return [_name(member) for member in archive.infolist()]


@contextlib.contextmanager
def _opened(path: Path, remedy: str) -> Iterator[zipfile.ZipFile]:
  """Yields an archive; errors of reading it become a DataError."""
  try:
    with zipfile.ZipFile(path) as archive:
      yield archive
  except OSError as error:
    raise DataError(f"{path} cannot be read ({error}): {remedy}.") from None
  except DataError:
    raise
  except Exception as error:  # zipfile and NumPy raise many types
    raise DataError(
      f"{path} is a damaged npz ({first_line(error)}): {remedy}."
    ) from None


def _name(member: zipfile.ZipInfo) -> str:
  return member.filename.removesuffix(".npy")


def _read_member(
  path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo
) -> np.ndarray:
  """Reads one array and verifies its checksum."""
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
  """Checks the byte count against the shape before reading."""
  shape, _, dtype = header
  if file.tell() + math.prod(shape) * dtype.itemsize != member.file_size:
    raise ValueError(f"{member.filename} has another size than its array")


def _read_header(file: IO[bytes]) -> tuple[Any, ...] | None:
  """Reads (shape, whether in Fortran order, dtype); None in an unusual format."""
  version = np.lib.format.read_magic(file)
  return _HEADERS[version](file) if version in _HEADERS else None


def _map_member(path: Path, member: zipfile.ZipInfo) -> np.ndarray:
  """Maps the part of the file that holds an uncompressed array, read-only."""
  with path.open("rb") as file:
    file.seek(member.header_offset + 26)  # the lengths of its name and extra field
    lengths = np.frombuffer(file.read(4), "<u2")
    file.seek(int(lengths.sum()), 1)
    header = _read_header(file)
    assert header is not None
    shape, fortran, dtype = header
    order = "F" if fortran else "C"
    return np.memmap(path, dtype, "r", file.tell(), shape, order)  # type: ignore[call-overload]
