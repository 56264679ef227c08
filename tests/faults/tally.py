"""Counts what attacks led to, and ends those that hang."""

import contextlib
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator

from ebmjax.errors import UserError

SAME, SENTENCE = "as before", "one sentence"
LEFT = ("traceback", "hang", "other facts")
_PATIENCE = 60  # seconds after which an attack counts as a hang


class Hang(BaseException):
  """What ran for longer than its patience; no handler of errors may catch it."""


class Tally:
  """The outcomes of one kind of attack, tried up to `limit` times.

  It has an even share of the time until the clock's `end` with `kinds` not over yet.
  """

  def __init__(self, attack: str, limit: int, end: float, kinds: int) -> None:
    self.attack, self.limit, self._end, self._kinds = attack, limit, end, kinds
    self.outcomes: Counter[str] = Counter()
    self.examples: list[str] = []

  def tries(self) -> Iterator[int]:
    """Yields numbers from 0 until enough was tried, or the time is up."""
    now = time.monotonic()
    self._end = now + (self._end - now) / self._kinds
    for number in range(self.limit):
      if self.late():
        return
      yield number

  def late(self) -> bool:
    return time.monotonic() > self._end

  def judge(self, name: str, attempt: Callable[[], bool]) -> None:
    """Counts what an attempt led to; it returns whether all is as before."""
    try:
      with limited(_PATIENCE):
        outcome = SAME if attempt() else "other facts"
    except UserError as error:
      outcome = SENTENCE if "\n" not in str(error).strip() else "traceback"
    except Hang:
      outcome = "hang"
    except Exception:
      outcome = "traceback"
      name = f"{name}\n{traceback.format_exc(limit=-3)}"
    self.count(name, outcome)

  def count(self, name: str, outcome: str) -> None:
    self.outcomes[outcome] += 1
    if outcome in LEFT and len(self.examples) < 12:
      self.examples.append(f"{self.attack}: {outcome}: {name}")

  def total(self) -> int:
    return sum(self.outcomes.values())

  def row(self) -> str:
    found = self.outcomes
    kinds = ", ".join(f"{found[kind]} {kind}" for kind in LEFT if found[kind])
    left = kinds or ("none" if self.total() else "not tried")
    counts = (f"{n:,}" for n in (self.total(), found[SAME], found[SENTENCE]))
    cells = (self.attack, *counts, left)
    return f"| {' | '.join(cells)} |"


@contextlib.contextmanager
def limited(seconds: int) -> Iterator[None]:
  """Raises Hang in the main thread after so many seconds."""

  def stop(*_: object) -> None:
    raise Hang

  before = signal.signal(signal.SIGALRM, stop)
  signal.alarm(seconds)
  try:
    yield
  finally:
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
