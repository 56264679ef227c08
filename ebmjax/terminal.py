"""What our command lines share: complaints in one sentence, and exit codes."""

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

from ebmjax.errors import ConfigError, UserError


class Parser(argparse.ArgumentParser):
  """A parser whose complaints are errors of ours, told in one sentence."""

  def error(self, message: str) -> NoReturn:
    raise ConfigError(f"{message}; see --help.")


def whole_number(text: str) -> int:
  """Returns the whole number of 1 or more that a flag was given."""
  try:
    number = int(text)
  except ValueError:
    number = 0
  if number < 1:
    raise argparse.ArgumentTypeError(f"{text!r} is no whole number of 1 or more")
  return number


def positive_number(text: str) -> float:
  """Returns the finite number above 0 that a flag was given."""
  try:
    number = float(text)
  except ValueError:
    number = 0.0
  if not 0 < number < float("inf"):
    raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
  return number


def place(text: str) -> Path:
  """Returns the file or folder that a flag was given.

  A shell leaves `~` alone in --flag=~/x.
  """
  try:
    return Path(text).expanduser()
  except RuntimeError as error:  # the home of a user that there is not
    raise argparse.ArgumentTypeError(f"{text!r} names nobody's home") from error


@contextlib.contextmanager
def writing(out: Path) -> Iterator[None]:
  """Tells in a sentence where the file that --out names cannot be written."""
  try:
    yield
  except OSError as error:
    raise UserError(
      f"{out} cannot be written ({error.strerror}); give another file with --out."
    ) from error


def answer(
  name: str,
  work: Callable[[], int],
  interrupted: str = "the same command goes on from the last checkpoint",
) -> int:
  """Returns the exit code of `work`, after telling a user's error as `name`'s."""
  try:
    return work()
  except UserError as error:
    print(f"{name}: {error}", file=sys.stderr)
    return 1
  except KeyboardInterrupt:
    print(f"{name}: interrupted; {interrupted}.", file=sys.stderr)
    return 130
