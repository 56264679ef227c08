"""Failures of the machine under a run, told as errors that a user can mend."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ebmjax.errors import WorkdirError

GOES_ON = "the same command goes on from the last checkpoint"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def writing(place: Path, then: str = GOES_ON) -> Iterator[None]:
  """Tells in a sentence where the disk refuses what is written to `place`.

  `then` is what becomes of the work when that is mended.
  """
  try:
    yield
  except ConnectionError:  # of a pipe that the output goes to, not of a disk
    raise
  except OSError as error:
    raise WorkdirError(unwritten(place, error, then)) from error


def unwritten(place: Path, error: OSError, then: str = GOES_ON) -> str:
  """Returns the sentence on a `place` that the disk has refused to write."""
  remedy = "make room" if error.errno in _NO_ROOM else "make it writable"
  return f"{place} cannot be written ({error.strerror or error}); {remedy}, and {then}."
