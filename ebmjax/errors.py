"""Errors that a user can fix: one sentence with what was found and the remedy.

Every command prints the sentence and ends with the error's exit code.
"""

import re
from typing import Any

# Controls, turns of direction, and halves of characters (of names that are no UTF-8).
_OBEYED = re.compile(
  "[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(value: Any) -> Any:
  """Returns a value of JSON whose text no terminal obeys, and every file can hold."""
  if isinstance(value, str):
    return _OBEYED.sub("\ufffd", value)
  if isinstance(value, list):
    return [printable(each) for each in value]
  if isinstance(value, dict):
    return {printable(name): printable(each) for name, each in value.items()}
  return value


def first_line(error: BaseException) -> str:
  """Returns the first line of an error of others, without the dot at its end."""
  return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


class UserError(Exception):
  """Base of all errors that are printed as one sentence."""

  exit_code = 1

  def __str__(self) -> str:
    """Returns the sentence; names of files in it may be anybody's."""
    return str(printable(super().__str__()))


class UsageError(UserError):
  """A command line that cannot be understood: an unknown verb or flag."""

  exit_code = 2


class ConfigError(UserError):
  """A configuration key or value that is not valid."""


class DataError(UserError):
  """A data set that is missing, damaged or not what it should be."""


class WorkdirError(UserError):
  """A workdir that is in use, belongs to another run, or cannot be written."""


class BusyError(WorkdirError):
  """A workdir that another process is running in: try again later."""

  exit_code = 75  # EX_TEMPFAIL of sysexits.h: who started the run can tell it apart


class CheckpointError(UserError):
  """Checkpoints exist, and none of them can be read."""


class DivergenceError(UserError):
  """The loss stopped being a finite number."""
