"""Writes files atomically: readers find the old content or the new one, never half."""

import contextlib
import glob
import os
import time
import uuid
from pathlib import Path

_STALE = 3600.0  # seconds after which no writer can still be at work on a file


def write(path: Path, content: bytes | str) -> None:
  """Puts `content` at `path` in one step, and removes what killed writers left there.

  The temporary name is unique across hosts, as two of them may share the folder.
  """
  data = content.encode() if isinstance(content, str) else content
  partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")
  try:
    with partial.open("xb") as file:
      file.write(data)
      file.flush()
      os.fsync(file.fileno())
    os.replace(partial, path)
  finally:
    partial.unlink(missing_ok=True)
  remove_partial(path.parent, glob.escape(path.name), older_than=_STALE)


def remove_partial(folder: Path, name: str = "*", older_than: float = 0.0) -> None:
  """Removes the temporary files of `name`, a glob pattern, that killed writers left.

  Without an age, nobody else may be writing to the folder.
  """
  limit = time.time() - older_than
  for path in folder.glob(f".{name}.*.partial"):
    with contextlib.suppress(OSError):  # another process has removed it, or may not be
      if path.stat().st_mtime <= limit:
        path.unlink()
