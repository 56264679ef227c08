"""One process at a time: locks on open files, where the file system has them."""

import fcntl
from pathlib import Path
from typing import IO, Any

from ebmjax.errors import WorkdirError


def take(file: int | IO[Any], place: Path, remedy: str, *, wait: bool = False) -> bool:
  """Returns whether an open file is ours now; False where another process has it.

  With `wait` it is ours at last. Some network disks have no locks: of these `place` is
  named, and what to do about it is `remedy`.
  """
  try:
    fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
  except BlockingIOError:
    return False
  except OSError as error:
    raise WorkdirError(
      f"the disk of {place} has no file locks ({error.strerror}); {remedy}."
    ) from error
  return True
