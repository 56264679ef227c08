"""Errors that a user can fix: one sentence that states the problem and the remedy.

Every command prints the sentence and ends with the error's exit code.
"""

import re
from typing import Any

# Control characters, bidi overrides and lone surrogates (from file names that are not
# UTF-8).
_UNPRINTABLE = re.compile(
  "[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(value: Any) -> Any:
  """Replaces control characters and surrogates in the strings of a JSON value."""
  if isinstance(value, str):
    return _UNPRINTABLE.sub("\ufffd", value)
  if isinstance(value, list):
    return [printable(each) for each in value]
  if isinstance(value, dict):
    return {printable(name): printable(each) for name, each in value.items()}
  return value


def first_line(error: BaseException) -> str:
  """Returns the first line of an exception's message, without its final period."""
  return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


class UserError(Exception):
  """Base of all errors that are printed as one sentence."""

  exit_code = 1

  def __str__(self) -> str:
    """Returns the sentence; file names in it may contain any character."""
    return str(printable(super().__str__()))


class UsageError(UserError):
  """A command line that cannot be understood: an unknown verb or flag."""

  exit_code = 2


class ConfigError(UserError):
  """A configuration key or value that is not valid."""


class DataError(UserError):
  """A data set that is missing, damaged or of the wrong form."""


class WorkdirError(UserError):
  """A workdir that is in use, belongs to another run, or cannot be written."""


class BusyError(WorkdirError):
  """A workdir in which another process is running: try again later."""

  exit_code = 75  # EX_TEMPFAIL of sysexits.h, which schedulers can tell from a failure


class CheckpointError(UserError):
  """Checkpoints exist, but none of them can be read."""


class DivergenceError(UserError):
  """The loss stopped being a finite number."""
