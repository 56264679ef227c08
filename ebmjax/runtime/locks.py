"""Locks open files, so that one process at a time works in a folder."""

import contextlib
import fcntl
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from ebmjax.errors import WorkdirError

_log = logging.getLogger(__name__)


def open_lock(path: Path) -> IO[str]:
  """Opens a file to lock it, and keeps its content. A pipe in its place fails."""
  return open(_open(path), "a")


def _open(path: Path) -> int:
  flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK
  return os.open(path, flags, 0o666)


@contextlib.contextmanager
def exclusive(path: Path, remedy: str) -> Iterator[None]:
  """Holds the lock of a folder, or of a file in it, once no other process does.

  A missing file is made. `remedy` says what to do where the disk has no locks.
  """
  is_folder = path.is_dir()
  folder = path if is_folder else path.parent
  handle = os.open(path, os.O_RDONLY) if is_folder else _open(path)
  try:
    if not try_lock(handle, folder, remedy):
      _log.info("Waiting for another process that is working in %s.", folder)
      try_lock(handle, folder, remedy, wait=True)
    yield
  finally:
    os.close(handle)


def try_lock(
  file: int | IO[Any], place: Path, remedy: str, *, wait: bool = False
) -> bool:
  """Locks an open file; returns False if another process holds the lock.

  With `wait`, blocks until the lock is free. Some network disks have no locks: the
  error then names `place`, and `remedy` says what to do.
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


def lock_folder(folder: Path) -> int | None:
  """Returns a handle that locks a folder while open; None if another process does.

  It locks nothing on network disks that lock files alone.
  """
  handle = os.open(folder, os.O_RDONLY)
  try:
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except BlockingIOError:
    os.close(handle)
    return None
  except OSError:
    pass
  return handle
