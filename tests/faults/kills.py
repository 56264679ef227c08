"""Kills runs at random changes of their folder: each ends as one that nobody killed.

A server process, which has imported everything and computed nothing, forks the runs:
so each of them costs seconds less.
"""

import multiprocessing
import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

from tests.faults.tally import SAME, Tally
from tests.helpers import SPLIT, TIMINGS, make_config, read_results, write_idx

_METHODS = ("ebm", "er,sbc", "online_ewc", "bgd,sbc")
_CHANGES = {"stream__iterations": 10, "eval__every": 4, "checkpoint__every": 3}
_PATIENCE = 120.0  # seconds for one start


def _run(variants: str, folder: Path, workdir: Path) -> None:
  """Runs a configuration; what a process of its own does."""
  from ebmjax import experiment
  from ebmjax.report import plots

  log = os.open(workdir.with_suffix(".log"), os.O_CREAT | os.O_APPEND | os.O_WRONLY)
  os.dup2(log, 1)
  os.dup2(log, 2)
  vars(plots)["draw"] = lambda history, scalars: {}  # they take longer than the run
  chosen = f"{SPLIT}:smoke,{variants}".replace(",ebm", "")
  config = make_config(chosen, folder, **_CHANGES, runner__chunk=2)
  experiment.run(config, workdir)


def attack(tally: Tally, base: Path) -> None:
  """Kills each run up to eight times, and compares what it leaves at its end."""
  context = multiprocessing.get_context("forkserver")
  context.set_forkserver_preload(["ebmjax.experiment", "ebmjax.report.plotting"])
  folder, rng, wanted = (
    write_idx(base / "data"),
    random.Random(random.getrandbits(32)),
    {},
  )
  kills = 0
  for number in tally.tries():
    variants = _METHODS[number // 8 % len(_METHODS)]
    if variants not in wanted:
      whole = base / variants
      _finish(context, variants, folder, whole)
      wanted[variants] = _left_by(whole)
    workdir = base / f"{variants}-killed"
    killed = _kill(context, variants, folder, workdir, rng)
    kills += killed
    if killed and number % 8 < 7 and number + 1 < tally.limit and not tally.late():
      continue
    _finish(context, variants, folder, workdir)
    left = _left_by(workdir)
    for _ in range(kills):
      same = left == wanted[variants]
      tally.count(
        f"{variants} {left if isinstance(left, str) else ''}",
        (SAME if same else "other facts"),
      )
    kills = 0
    shutil.rmtree(workdir)


def _start(context: Any, variants: str, folder: Path, workdir: Path) -> Any:
  workdir.parent.mkdir(exist_ok=True)
  child = context.Process(target=_run, args=(variants, folder, workdir))
  child.start()
  return child


def _finish(context: Any, variants: str, folder: Path, workdir: Path) -> None:
  child = _start(context, variants, folder, workdir)
  child.join(_PATIENCE)
  if child.exitcode is None:
    child.kill()


def _kill(
  context: Any, variants: str, folder: Path, workdir: Path, rng: random.Random
) -> bool:
  """Kills a start of the run after some changes of its folder; whether in time."""
  child = _start(context, variants, folder, workdir)
  changes, seen, end = rng.randrange(1, 12), None, time.monotonic() + _PATIENCE
  while changes and child.is_alive() and time.monotonic() < end:
    now = _state(workdir)
    changes -= now != seen
    seen = now
  time.sleep(rng.random() * 0.02)
  os.kill(child.pid, signal.SIGKILL)
  child.join()
  return bool(child.exitcode == -signal.SIGKILL)


def _state(workdir: Path) -> tuple[tuple[str, int], ...]:
  """Returns the names and sizes of what lies in a folder and two levels below."""
  found = []
  for pattern in ("*", "*/*", "*/*/*"):
    for path in sorted(workdir.glob(pattern)):
      try:
        found.append((str(path), path.stat().st_size))
      except OSError:
        continue
  return tuple(found)


def _left_by(workdir: Path) -> Any:
  """Returns what no kill may change; where a run is not whole, what it says."""
  try:
    results = read_results(workdir)
  except (OSError, ValueError) as error:
    log = workdir.with_suffix(".log")
    return f"{error}: {log.read_text()[-500:] if log.exists() else ''}"
  for key in (*TIMINGS, "commits"):
    results["facts"].pop(key, None)
  kept = sorted((workdir / "evaluations").iterdir())
  litter = [path.name for path in workdir.rglob("*.partial")]
  points = (workdir / "scalars.jsonl").read_bytes()
  return results, [path.read_bytes() for path in kept], points, litter
