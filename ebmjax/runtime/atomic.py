"""Files written whole or not at all, whenever the process dies."""

import os
from pathlib import Path


def write(path: Path, content: bytes | str) -> None:
  """Puts `content` at `path` in one step, so that no reader finds half of it."""
  data = content.encode() if isinstance(content, str) else content
  partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
  try:
    with partial.open("wb") as file:
      file.write(data)
      file.flush()
      os.fsync(file.fileno())
    os.replace(partial, path)
  finally:
    partial.unlink(missing_ok=True)
