"""Paths as users write them, on the command line, in a configuration or in Python."""

import re
from pathlib import Path

from ebmjax.errors import ConfigError

_ADDRESS = re.compile("([a-z][a-z0-9+.-]+:)/+(?=[^/])")  # Path leaves one slash of two


def expand(path: str | Path) -> Path:
  """Returns a path with ~ as the home, which a shell leaves in --flag=~/x.

  Raises where it is on no disk of this machine, or in a folder that cannot be entered.
  """
  if address := _ADDRESS.match(str(path)):
    raise ConfigError(
      f"{address[1]}//{str(path)[address.end() :]} is no folder of this machine; "
      "mount the bucket, by gcsfuse, mount-s3 or rclone mount, and give the folder "
      "that it is mounted in."
    )
  try:
    expanded = Path(path).expanduser()
    expanded.exists()
  except RuntimeError as error:
    raise ConfigError(
      f"{path} is in the home of an unknown user; give another path."
    ) from error
  except OSError as error:
    raise ConfigError(
      f"{path} cannot be looked up ({error.strerror}); give another path."
    ) from error
  return expanded
