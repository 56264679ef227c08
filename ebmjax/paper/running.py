"""Runs the missing seeds of cells, cheapest first, each run in its own process."""

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ebmjax.config import loading
from ebmjax.errors import BusyError
from ebmjax.networks import trunk_digest
from ebmjax.paper import claims, commands, estimates, store
from ebmjax.paper.cells import Cell
from ebmjax.paper.claims import Claim
from ebmjax.paper.estimates import steps
from ebmjax.paper.ledger import Ledger
from ebmjax.paper.progress import SCALARS, Progress, last_step
from ebmjax.runtime import failures

PATIENCE = 10.0  # seconds between SIGTERM and SIGKILL


class Settings(NamedTuple):
  """Where runs are stored, and which files they use."""

  runs: Path
  folders: Mapping[str, str | Path | None]  # of official files; None: look for them
  pretrained: str | Path | None = None  # the weights of CIFAR-100's trunk, npz
  full: bool = True  # whether only runs on the full data set count
  measured: Path = store.MEASURED


class Fault(NamedTuple):
  """Why a run did not finish."""

  sentence: str
  busy: bool = False  # another process is running it


class Outcome(NamedTuple):
  """What happened to the missing seeds, by command."""

  finished: list[str]
  failed: list[str]
  busy: list[str]  # another process has them
  too_long: list[str]  # for the budget


def read_ledger(cells: Sequence[Cell], settings: Settings) -> Ledger:
  """Compares the cells with the stored results and the runs made here."""
  entries = [*store.read(settings.measured), *store.find(settings.runs, cells)]
  if settings.full:
    entries = [entry for entry in entries if entry.data_full]
  if settings.pretrained:  # runs from other weights do not count
    weights = trunk_digest(settings.pretrained)
    entries = [entry for entry in entries if entry.weights in (None, weights)]
  return Ledger(cells, entries)


class Session:
  """One pass over the cells."""

  def __init__(
    self,
    cells: Sequence[Cell],
    settings: Settings,
    seeds: int | None = None,
    budget: float | None = None,
  ) -> None:
    """`seeds`: how many, None: the paper's; `budget`: hours, None: no limit."""
    self._cells, self._settings, self._seeds = list(cells), settings, seeds
    self._end = None if budget is None else time.monotonic() + 3600 * budget
    self._outcome = Outcome([], [], [], [])
    self._device = estimates.this_device()

  def run(self) -> Outcome:
    """Runs everything that is missing and fits the budget; returns the outcome."""
    ledger = self._ledger = read_ledger(self._cells, self._settings)
    wanted: dict[str, int] = {}
    for row in ledger.rows:
      count = self._seeds or row.cell.seeds
      wanted[row.cell.command] = max(count, wanted.get(row.cell.command, 0))
    left = {
      chosen: len(_missing(ledger, chosen, count)) * self._seconds_per_seed(chosen)
      for chosen, count in wanted.items()
    }
    with Progress(sum(left.values())) as progress:
      for chosen in sorted(wanted, key=lambda chosen: left[chosen]):
        if left[chosen]:
          self._run_command(chosen, wanted[chosen], progress)
    return self._outcome

  def _run_command(self, chosen: str, count: int, progress: Progress) -> None:
    """Runs the missing seeds of one command, folder by folder."""
    tried: set[Path] = set()
    while (claim := self._claim(chosen, count)) is not None:
      try:
        if claim.workdir in tried or not self._run_claim(chosen, claim, progress):
          return
      finally:
        claim.release()
      tried.add(claim.workdir)

  def _claim(self, chosen: str, count: int) -> Claim | None:
    """Claims the next missing seeds of a command; None if there are no more."""
    folder = self._settings.runs / commands.short_name(chosen)
    each = self._seconds_per_seed(chosen)
    most = None if self._end is None else max(int(self._seconds_left() / each), 1)
    with claims.planning(self._settings.runs):
      # Read again: another process may have finished some meanwhile.
      self._ledger = read_ledger(self._cells, self._settings)
      choice = claims.choose(folder, _missing(self._ledger, chosen, count), most)
    if choice.claim is None and choice.busy:
      self._outcome.busy.append(f"{chosen}: {_seeds(choice.busy)}, in {folder}")
    return choice.claim

  def _run_claim(self, chosen: str, claim: Claim, progress: Progress) -> bool:
    """Runs the claimed seeds and returns whether they are finished."""
    name = f"{chosen}: {_seeds(claim.seeds)}"
    each = self._seconds_per_seed(chosen)
    if time_left(chosen, claim, each) > self._seconds_left():
      self._outcome.too_long.append(name)
      return False
    fault = self._run(chosen, claim, each, progress)
    if fault is None:
      self._outcome.finished.append(name)
    elif fault.busy:
      self._outcome.busy.append(f"{name}, in {claim.workdir}")
    else:
      self._outcome.failed.append(f"{name}: {fault.sentence}")
    return fault is None

  def _seconds_per_seed(self, chosen: str) -> float:
    measured = self._ledger.measurement(chosen)
    stored = self._ledger.entries
    return estimates.estimate(chosen, measured, stored, self._device).seconds

  def _seconds_left(self) -> float:
    return math.inf if self._end is None else self._end - time.monotonic()

  def _run(
    self, chosen: str, claim: Claim, each: float, progress: Progress
  ) -> Fault | None:
    """Runs claimed seeds in a process; returns the fault if it did not finish."""
    command = run_command(chosen, claim, self._settings)
    try:
      begin = _log_command(claim.log, command)
    except OSError as error:
      return Fault(failures.unwritten(claim.log, error))
    with claim.log.open("ab") as log:
      child = subprocess.Popen(
        command,
        stdout=log,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": loading.python_path()},
        pass_fds=(claim.handle,),
      )
      try:
        total = steps(commands.load(chosen))
        with progress.part(chosen, claim, each * len(claim.seeds), total) as poll:
          while _running(child):
            poll()
      finally:
        _end(child)
    if child.returncode == 0:
      return None
    data = commands.load(chosen).data.name
    sentence = _last_sentence(claim.log, begin, child.returncode, data)
    return Fault(sentence, busy=child.returncode == BusyError.exit_code)


def time_left(chosen: str, claim: Claim, each: float) -> float:
  """Returns the seconds that claimed seeds still need, at `each` for a whole seed.

  Seeds advance together, so an interrupted run has done the same share of each.
  """
  done = last_step(claim.workdir / SCALARS) / steps(commands.load(chosen))
  return each * len(claim.seeds) * max(1 - done, 0)


def run_command(chosen: str, claim: Claim, settings: Settings) -> list[str]:
  """Returns the command line of a run."""
  config = commands.load(chosen)
  flags: dict[str, Any] = {"seed": claim.seeds[0], "seeds": len(claim.seeds)}
  flags |= {"data.require_full": settings.full}
  folder = settings.folders.get(config.data.name)
  if folder:
    flags |= {"data.source": "files", "data.dir": str(Path(folder).resolve())}
  if config.network.get("pretrained") and settings.pretrained:
    flags["network.pretrained"] = str(Path(settings.pretrained).resolve())
  return [
    *(sys.executable, "-m", "ebmjax.main"),
    f"--config={loading.root() / chosen}",
    *(f"--config.{key}={value}" for key, value in flags.items()),
    f"--workdir={claim.workdir}",
  ]


def _missing(ledger: Ledger, chosen: str, count: int) -> list[int]:
  measured = ledger.measurement(chosen)
  have = measured.accuracies if measured else {}
  return [seed for seed in range(count) if seed not in have]


def _seeds(seeds: Sequence[int]) -> str:
  if len(seeds) == 1:
    return f"seed {seeds[0]}"
  return f"seeds {', '.join(map(str, seeds))}"


def _log_command(log: Path, command: Sequence[str]) -> int:
  """Writes a run's command to its log and returns where its output begins."""
  with log.open("ab") as file:
    begin = file.tell()
    file.write(f"{' '.join(command)}\n".encode())
  return begin


def _running(child: subprocess.Popen[bytes]) -> bool:
  try:
    child.wait(timeout=0.5)
  except subprocess.TimeoutExpired:
    return True
  return False


def _end(child: subprocess.Popen[bytes]) -> None:
  """Stops a run that is still alive because this process was interrupted.

  Ctrl-C reaches the run too, so it first gets time to stop by itself. Nothing is lost:
  checkpoints are written in one step.
  """
  for seconds, number in ((2.0, signal.SIGTERM), (PATIENCE, signal.SIGKILL)):
    try:
      child.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
      child.send_signal(number)
  child.wait()


def _last_sentence(log: Path, begin: int, code: int, data: str) -> str:
  """Returns the run's last error message, or where its output is."""
  lines = log.read_bytes()[begin:].decode(errors="replace").splitlines()
  errors = [line for line in lines if line.startswith("ebmjax: ")]
  if errors and code > 0:
    sentence = errors[-1].removeprefix("ebmjax: ").replace("--workdir", "--runs")
    # A run names its own keys; here a flag stands for them.
    here = f" (Here: --{data}=DIR.)" if "config.data.dir" in sentence else ""
    return sentence + here
  return f"the run ended with exit code {code}; its output is in {log}."
