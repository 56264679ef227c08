"""Turns failures of the disk under a run into errors that a user can fix."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ebmjax.errors import WorkdirError

CONTINUES = "and the same command continues from the last checkpoint"
ANOTHER = "or give another with --out"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def explain_write_errors(place: Path, then: str = CONTINUES) -> Iterator[None]:
  """Re-raises errors of the disk under `place` as one sentence with the remedy.

  `then` says what happens to the work after that, or what to do instead.
  """
  try:
    yield
  except ConnectionError:  # of a pipe that the output goes to, not of a disk
    raise
  except OSError as error:
    raise WorkdirError(unwritten(place, error, then)) from error


def unwritten(place: Path, error: OSError, then: str = CONTINUES) -> str:
  """Returns the sentence for a `place` that cannot be written."""
  remedy = "make room" if error.errno in _NO_ROOM else "make it writable"
  return f"{place} cannot be written ({error.strerror or error}); {remedy}, {then}."
