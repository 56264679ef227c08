"""What our command lines share: complaints in one sentence, and exit codes."""

import argparse
import sys
from collections.abc import Callable
from typing import NoReturn

from ebmjax.errors import ConfigError, UserError


class Parser(argparse.ArgumentParser):
  """A parser whose complaints are errors of ours, told in one sentence."""

  def error(self, message: str) -> NoReturn:
    raise ConfigError(f"{message}; see --help.")


def answer(name: str, work: Callable[[], int]) -> int:
  """Returns the exit code of `work`, after telling a user's error as `name`'s."""
  try:
    return work()
  except UserError as error:
    print(f"{name}: {error}", file=sys.stderr)
    return 1
  except KeyboardInterrupt:
    print(
      f"{name}: interrupted; the same command goes on from the last checkpoint.",
      file=sys.stderr,
    )
    return 130
