"""Measures how long a run takes, by activity, over all its starts."""

import datetime
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


class Stopwatch:
  """The times of a run that began at `started`; `with watch("saving"): ...` counts.

  Of `together` settings that are trained together, each has its share of the seconds.
  """

  def __init__(self, started: float, *activities: str, together: int = 1) -> None:
    self._started, self._together = started, together
    self._earlier = 0.0  # seconds of earlier starts
    self._seconds = dict.fromkeys(activities, 0.0)
    self.latest = 0.0  # seconds of the activity that has just ended
    self._chunks: list[tuple[int, float]] = []  # (seed-steps, seconds)
    self._first_chunk: float | None = None  # seconds after the start

  @contextmanager
  def __call__(self, activity: str) -> Iterator[None]:
    begun = time.perf_counter()
    try:
      yield
    finally:
      self.latest = time.perf_counter() - begun
      self._seconds[activity] += self.latest / self._together

  def count(self, steps: int) -> None:
    """Counts the activity that has just ended as a chunk of `steps` seed-steps."""
    self._chunks.append((steps, self.latest))
    if self._first_chunk is None:
      self._first_chunk = time.perf_counter() - self._started

  def resume_from(self, spent: Mapping[str, Any]) -> None:
    """Adds the time that earlier starts `spent` up to the last checkpoint."""
    self._earlier += spent.get("wall_time", 0.0)
    for activity, seconds in spent.get("seconds", {}).items():
      self._seconds[activity] = self._seconds.get(activity, 0.0) + seconds

  def spent(self) -> dict[str, Any]:
    """Returns the seconds of all starts; compiling counts at each of them."""
    share = 1 / self._together
    wall_time = self._earlier + (time.perf_counter() - self._started) * share
    return {"wall_time": wall_time, "seconds": dict(self._seconds)}

  def summary(self) -> dict[str, Any]:
    """Returns what was spent, the speed of this start, and when it ended (UTC)."""
    warm = self._chunks[1:]  # the first one compiles
    steps = sum(steps for steps, _ in warm)
    seconds = sum(seconds for _, seconds in warm)
    return self.spent() | {
      "steps_per_second": steps / seconds if seconds else None,
      "seconds_to_first_chunk": self._first_chunk,
      "finished": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
