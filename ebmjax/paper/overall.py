"""Progress of all runs of a session: a bar on a terminal, lines elsewhere."""

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tqdm import tqdm

from ebmjax.paper.claims import Claim
from ebmjax.paper.estimates import duration

_log = logging.getLogger("ebmjax")
SCALARS = "scalars.jsonl"  # of a run's folder
_STEP = re.compile(rb'"step": (\d+)')


class Overall:
  """Counts estimated seconds of work done."""

  def __init__(self, seconds: float) -> None:
    self._quiet = not sys.stderr.isatty()
    self._bar = tqdm(
      total=round(seconds),
      disable=self._quiet,
      dynamic_ncols=True,
      bar_format="{percentage:3.0f}% |{bar}| {elapsed}, {desc}",
    )
    _log.info("About %s of runs are missing.", duration(seconds))

  @contextmanager
  def part(
    self, command: str, claim: Claim, seconds: float, steps: int
  ) -> Iterator["Part"]:
    """Shows one run, from its start or its checkpoint to its end."""
    first, last = claim.seeds[0], claim.seeds[-1]
    seeds = f"seeds {first} to {last}" if first != last else f"seed {first}"
    name = f"{command}, {seeds}"
    _log.info("%s: about %s; %s", name, duration(seconds), claim.log)
    part = Part(self._bar, name, claim.workdir / SCALARS, seconds, steps)
    part.look()
    yield part
    part.move(seconds)

  def __enter__(self) -> "Overall":
    return self

  def __exit__(self, *exception: object) -> None:
    self._bar.close()


class Part:
  """The share of one run in the whole."""

  def __init__(
    self, bar: tqdm, name: str, scalars: Path, seconds: float, steps: int
  ) -> None:
    self._bar, self._name, self._scalars = bar, name, scalars
    self._seconds, self._steps, self._shown = seconds, steps, 0.0

  def look(self) -> None:
    """Reads how many steps the run has made so far."""
    step = last_step(self._scalars)
    self._bar.set_description_str(f"{self._name}: step {step} of {self._steps}")
    self.move(self._seconds * min(step / self._steps, 1.0))

  def move(self, seconds: float) -> None:
    """Moves the bar to where `seconds` of this run are done."""
    if seconds > self._shown:
      self._bar.update(seconds - self._shown)
      self._shown = seconds


def last_step(scalars: Path) -> int:
  """Returns the last step in a run's file of scalars, 0 without one."""
  try:
    with scalars.open("rb") as file:
      size = file.seek(0, 2)
      file.seek(max(size - 400, 0))
      found = _STEP.findall(file.read())
  except OSError:
    return 0
  return int(found[-1]) if found else 0
