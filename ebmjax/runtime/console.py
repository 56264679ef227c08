"""What a run says while it runs: lines on standard error, above any progress bar."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

from ebmjax.errors import printable


class _Lines(logging.Handler):
  """Writes a line for each message where it disturbs no bar."""

  def emit(self, record: logging.LogRecord) -> None:
    tqdm.write(printable(self.format(record)), file=sys.stderr)


def show_messages() -> None:
  """Shows what ebmjax logs, by the handlers that a user has set up or by our own.

  `logging.getLogger("ebmjax").setLevel("WARNING")` leaves only the warnings.
  """
  if not logging.root.handlers:
    logging.root.addHandler(_Lines())
  log = logging.getLogger("ebmjax")
  if log.level == logging.NOTSET:
    log.setLevel(logging.INFO)


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
