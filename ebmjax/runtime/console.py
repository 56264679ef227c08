"""What a run says while it runs: lines on standard error, above any progress bar."""

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

# Controls, turns of direction, and halves of characters (of names that are no UTF-8).
_OBEYED = re.compile(
  "[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


class _Lines(logging.Handler):
  """Writes a line for each message where it disturbs no bar."""

  def emit(self, record: logging.LogRecord) -> None:
    tqdm.write(self.format(record), file=sys.stderr)


def show_messages() -> None:
  """Shows what ebmjax logs, by the handlers that a user has set up or by our own.

  `logging.getLogger("ebmjax").setLevel("WARNING")` leaves only the warnings.
  """
  if not logging.root.handlers:
    logging.root.addHandler(_Lines())
  log = logging.getLogger("ebmjax")
  if log.level == logging.NOTSET:
    log.setLevel(logging.INFO)


def printable(value: Any) -> Any:
  """Returns a value of JSON whose text no terminal obeys, and every file can hold."""
  if isinstance(value, str):
    return _OBEYED.sub("\ufffd", value)
  if isinstance(value, list):
    return [printable(each) for each in value]
  if isinstance(value, dict):
    return {printable(name): printable(each) for name, each in value.items()}
  return value


@contextmanager
def logging_untouched() -> Iterator[None]:
  """Keeps an import from setting up logging, as absl does when it logs first."""
  stand_in = logging.NullHandler()
  logging.root.addHandler(stand_in)
  try:
    yield
  finally:
    logging.root.removeHandler(stand_in)


def shows_bars() -> bool:
  """Returns whether standard error can show a progress bar: a terminal, a notebook."""
  return sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel")
