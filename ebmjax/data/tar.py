"""Reads files from a tar archive in memory, so no path in it is ever written to."""

import gzip
import posixpath
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ebmjax.data.official import GZIP_MAGIC, REMEDY
from ebmjax.errors import DataError, first_line

_LARGEST_FILE = 1 << 28  # bytes; the largest official file has 155 million
_LARGEST = 1 << 30


class _Bounded:
  """A file that refuses reads beyond the size of any official archive.

  A small compressed file can unpack to more than fits into memory.
  """

  def __init__(self, file: Any) -> None:
    self._file = file
    self.tell = file.tell

  def read(self, size: int) -> bytes:
    if size > _LARGEST_FILE:
      raise ValueError("it holds a file larger than any official one")
    content: bytes = self._file.read(size)
    return content

  def seek(self, place: int) -> None:
    if place > _LARGEST:
      raise ValueError("it is larger than any official one")
    self._file.seek(place)


def read_members(path: Path, names: Iterable[str]) -> dict[str, bytes]:
  """Reads the named files of a plain or compressed archive.

  The folders inside the archive are ignored.
  """
  wanted = set(names)
  contents: dict[str, bytes] = {}
  try:
    with (
      _unpacked(path) as content,
      tarfile.open(fileobj=_Bounded(content), mode="r:") as archive,  # type: ignore[call-overload]
    ):
      for member in archive:
        name = posixpath.basename(member.name)
        file = archive.extractfile(member) if member.isreg() else None
        if file is not None and name in wanted:
          contents[name] = file.read()
  except Exception as error:  # tarfile, gzip and zlib raise many types
    raise DataError(
      f"{path} is a damaged archive ({first_line(error)}): {REMEDY}."
    ) from None
  missing = sorted(wanted - set(contents))
  if missing:
    raise DataError(
      f"{path} must be the official archive, but lacks {', '.join(missing)}: {REMEDY}."
    )
  return contents


def _unpacked(path: Path) -> Any:
  """Opens an archive, which may be compressed by gzip, for reading plain bytes."""
  with path.open("rb") as file:
    packed = file.read(2) == GZIP_MAGIC
  return gzip.open(path) if packed else path.open("rb")
