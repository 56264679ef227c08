"""Adds up how long each activity of a run takes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
  """Seconds by activity; use as `with watch("saving"): ...`."""

  def __init__(self, *activities: str) -> None:
    self.seconds = dict.fromkeys(activities, 0.0)

  @contextmanager
  def __call__(self, activity: str) -> Iterator[None]:
    begun = time.perf_counter()
    try:
      yield
    finally:
      self.seconds[activity] += time.perf_counter() - begun
