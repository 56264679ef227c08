"""Shares what all command lines do: flags, errors in one sentence, exit codes.

Exit codes: 0, 1 (a fault, explained in a sentence), 2 (usage: an unknown verb or
flag), 75 (another process is running there) and 130 (interrupted).
"""

import argparse
import contextlib
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from ebmjax.errors import UsageError, UserError
from ebmjax.runtime import distributed

_again: list[threading.Timer] = []  # interrupts to repeat


class Parser(argparse.ArgumentParser):
  """Parses flags; raises UsageError, one sentence, for those it does not know."""

  def error(self, message: str) -> NoReturn:
    raise UsageError(f"{message}; see --help.")


def whole_number(text: str) -> int:
  """Returns the whole number of 1 or more that a flag was given."""
  try:
    number = int(text)
  except ValueError:
    number = 0
  if number < 1:
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
  return number


def positive_number(text: str) -> float:
  """Returns the finite number above 0 that a flag was given."""
  try:
    number = float(text)
  except ValueError:
    number = 0.0
  if not 0 < number < float("inf"):
    raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
  return number


def run_cli(
  name: str,
  work: Callable[[], int],
  interrupted: str = "the same command continues from the last checkpoint",
) -> int:
  """Runs `work` and returns its exit code; prints a user's error as `name`'s."""
  try:
    return ignore_broken_pipe(work)
  except UserError as error:
    print(f"{name}: {error}", file=sys.stderr)
    return error.exit_code
  except KeyboardInterrupt:
    print(f"{name}: interrupted; {interrupted}.", file=sys.stderr)
    return 130


def run_each(name: str, wanted: Iterable[str], work: Callable[[str], None]) -> int:
  """Runs `work` on all that is `wanted`; returns 1 if one of them failed."""
  code = 0
  for one in wanted:
    try:
      work(one)
    except UserError as error:
      code = 1
      print(f"{name}: {error}", file=sys.stderr)
  return code


@contextlib.contextmanager
def leave_on_interrupt(sentence: str) -> Iterator[None]:
  """Lets an interrupt end the process there and then, while it can lose nothing.

  Imports may drop an exception, or abort on it. One process of several tells the
  others, and a thread cannot be interrupted.
  """

  def leave(*_: object) -> None:
    if distributed.is_multiprocess():
      raise KeyboardInterrupt
    os.write(2, f"{sentence}\n".encode())
    os._exit(130)

  if threading.current_thread() is not threading.main_thread():
    yield
    return
  before = signal.signal(signal.SIGINT, leave)
  try:
    yield
  finally:
    signal.signal(signal.SIGINT, before)


def ignore_broken_pipe(work: Callable[[], int]) -> int:
  """Runs `work`, whose reader may close the pipe, and returns its exit code.

  `head` does so, and a pager that is quit: that is not an error.
  """
  hook, sys.unraisablehook = sys.unraisablehook, _interrupt_again
  if isinstance(sys.stdout, io.TextIOWrapper):  # names of files may be no UTF-8
    sys.stdout.reconfigure(errors="backslashreplace")
  try:
    code = work()
    sys.stdout.flush()
  except BrokenPipeError:
    # What is still buffered is discarded: it cannot go to the pipe.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141  # what a shell calls the end by a closed pipe
  finally:
    sys.unraisablehook = hook
    while _again:
      _again.pop().cancel()
  return code


def _interrupt_again(unraisable: Any) -> None:
  """Repeats an interrupt that came while Python was in a finaliser, which drops it."""
  if issubclass(unraisable.exc_type, KeyboardInterrupt):
    # Later, because the interrupt would be dropped here, too.
    _again.append(threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)))
    _again[-1].daemon = True
    _again[-1].start()
  else:
    sys.__unraisablehook__(unraisable)
