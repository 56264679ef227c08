"""What our command lines share: complaints in one sentence, and exit codes."""

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
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
    return piped(work)
  except UserError as error:
    print(f"{name}: {error}", file=sys.stderr)
    return 1
  except KeyboardInterrupt:
    print(f"{name}: interrupted; {interrupted}.", file=sys.stderr)
    return 130


def each(name: str, wanted: Iterable[str], work: Callable[[str], None]) -> int:
  """Returns 1 where `work` met a user's error, told as `name`'s; all are tried."""
  code = 0
  for one in wanted:
    try:
      work(one)
    except UserError as error:
      code = 1
      print(f"{name}: {error}", file=sys.stderr)
  return code


def piped(work: Callable[[], int]) -> int:
  """Returns the exit code of `work`, whose output may go to a reader that leaves.

  So do `head` and a pager that is quit: no fault of ours, and no traceback.
  """
  try:
    code = work()
    sys.stdout.flush()
  except BrokenPipeError:
    # What is left to be written at the very end goes nowhere, in place of the pipe.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141  # what a shell calls the end by a closed pipe
  return code
