"""Errors a user can mend: one sentence with what was found and the remedy."""


class UserError(Exception):
  """Base of every error that is printed as one sentence and ends with exit code 1."""


class ConfigError(UserError):
  """A configuration key or value that is not valid."""


class DataError(UserError):
  """A data set that is missing, damaged or not what it should be."""


class WorkdirError(UserError):
  """A workdir that is in use, belongs to another run, or cannot be written."""


class BusyError(WorkdirError):
  """A workdir that another process is running in."""


class CheckpointError(UserError):
  """Checkpoints exist, and none of them can be read."""


class DivergenceError(UserError):
  """The loss stopped being a finite number."""
