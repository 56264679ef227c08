"""Reads files out of a tar archive without unpacking it: no path of it is ever used."""

import posixpath
import tarfile
from collections.abc import Iterable
from pathlib import Path

from ebmjax.errors import DataError

_REMEDY = "delete it and download it again"


def read_members(path: Path, names: Iterable[str]) -> dict[str, bytes]:
  """Returns the content of the named files of a plain or packed archive.

  The folder that a file has inside the archive does not matter.
  """
  wanted = set(names)
  contents: dict[str, bytes] = {}
  try:
    with tarfile.open(path) as archive:
      for member in archive:
        name = posixpath.basename(member.name)
        file = archive.extractfile(member) if member.isreg() else None
        if file is not None and name in wanted:
          contents[name] = file.read()
  except Exception as error:  # tarfile, gzip and zlib raise many kinds
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    raise DataError(f"{path} is a damaged archive ({reason}): {_REMEDY}.") from None
  missing = sorted(wanted - set(contents))
  if missing:
    raise DataError(
      f"{path} must be the official archive, but lacks {', '.join(missing)}: {_REMEDY}."
    )
  return contents
