"""Paths as users write them, on the command line, in a configuration or in Python."""

import re
from pathlib import Path

from ebmjax.errors import ConfigError

_ADDRESS = re.compile("([a-z][a-z0-9+.-]+:)/+(?=[^/])")  # Path leaves one slash of two


def expand(path: str | Path) -> Path:
  """Returns a path with ~ as the home; raises where it is on no disk of this machine.

  A shell leaves `~` in --flag=~/x.
  """
  if address := _ADDRESS.match(str(path)):
    raise ConfigError(
      f"{address[1]}//{str(path)[address.end() :]} is no folder of this machine; "
      "mount the bucket, by gcsfuse, mount-s3 or rclone mount, and give the folder "
      "that it is mounted in."
    )
  try:
    return Path(path).expanduser()
  except RuntimeError as error:
    raise ConfigError(
      f"{path} is in the home of an unknown user; give another path."
    ) from error
