"""Progress of all runs of a session: a bar on a terminal, lines elsewhere."""

import logging
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tqdm import tqdm

from ebmjax.paper.claims import Claim
from ebmjax.runtime.cost import duration

_log = logging.getLogger("ebmjax")
SCALARS = "scalars.jsonl"  # of a run's folder
_STEP = re.compile(rb'"step": (\d+)')


class Progress:
  """Counts the estimated seconds of finished work."""

  def __init__(self, seconds: float) -> None:
    self._bar = tqdm(
      total=round(seconds),
      disable=not sys.stderr.isatty(),
      dynamic_ncols=True,
      bar_format="{percentage:3.0f}% |{bar}| {elapsed}, {desc}",
    )
    _log.info("About %s of runs are missing.", duration(seconds))

  @contextmanager
  def part(
    self, command: str, claim: Claim, seconds: float, steps: int
  ) -> Iterator[Callable[[], None]]:
    """Tracks one run; yields a callback that polls its progress."""
    first, last = claim.seeds[0], claim.seeds[-1]
    seeds = f"seeds {first} to {last}" if first != last else f"seed {first}"
    name = f"{command}, {seeds}"
    _log.info("%s: about %s; %s", name, duration(seconds), claim.log)
    shown = 0.0

    def advance(to: float) -> None:
      nonlocal shown
      self._bar.update(max(to - shown, 0))
      shown = max(to, shown)

    def poll() -> None:
      step = last_step(claim.workdir / SCALARS)
      self._bar.set_description_str(f"{name}: step {step} of {steps}")
      advance(seconds * min(step / steps, 1.0))

    poll()
    yield poll
    advance(seconds)

  def __enter__(self) -> "Progress":
    return self

  def __exit__(self, *exception: object) -> None:
    self._bar.close()


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
