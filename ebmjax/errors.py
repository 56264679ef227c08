"""Errors that a user can fix: one sentence with what was found and the remedy.

Every command prints the sentence and ends with the error's exit code.
"""


class UserError(Exception):
  """Base of all errors that are printed as one sentence."""

  exit_code = 1


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
