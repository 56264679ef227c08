"""Finds the runs that play a figure's roles, and pools those of other seeds."""

import functools
import json
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from ebmjax import config
from ebmjax.config.identity import identity, recorded
from ebmjax.errors import UserError, WorkdirError
from ebmjax.paper.figures.departures import departures
from ebmjax.paper.figures.spec import Finished, Role, Run, Runs, Shown
from ebmjax.report import stored
from ebmjax.report.history import History, without_evaluations
from ebmjax.report.stored import StoredRun
from ebmjax.runtime.workdir import WEIGHTS, Workdir
from ebmjax.types import Evaluation

_log = logging.getLogger(__name__)


def find_runs(
  root: str | Path,
  roles: Iterable[Role],
  *,
  shown: Shown = "ends",
  allow_partial: bool = False,
) -> dict[str, tuple[Run, ...]]:
  """Returns {role: runs} of the finished runs under `root`; () where none fits.

  Runs of disjoint seeds are pooled where nothing else differs and those evaluations
  which are `shown` were made at the same steps. Of several that fit, the role gets the
  one on full data, then the one that departs least from the role's file, then (`within`
  tasks) the one evaluated most often, then the one with most seeds. Runs on part of the
  data count with `allow_partial` only.
  """
  return choose(scan(root), roles, shown=shown, allow_partial=allow_partial)


def scan(root: str | Path) -> list[Finished]:
  """Returns folder and results of every finished run; others' files are passed over."""
  if not Path(root).is_dir():
    raise UserError(f"there is no folder {root}; give that of your runs with --runs.")
  out = []
  for folder in stored.find(root):
    try:
      results = Workdir(folder).results(remedy="")
      if results is not None:
        settings(results)
        out.append((folder, results))
    except (WorkdirError, OSError, ValueError, KeyError, TypeError) as error:
      _log.warning("%s is left out: its results cannot be read (%s).", folder, error)
  return out


def choose(
  finished: Sequence[Finished],
  roles: Iterable[Role],
  *,
  shown: Shown = "ends",
  allow_partial: bool = False,
) -> dict[str, tuple[Run, ...]]:
  """Returns what `find_runs` does, of runs that were found before."""
  return {role.name: _cast(role, finished, shown, allow_partial) for role in roles}


def settings(results: Mapping[str, Any]) -> dict[str, Any]:
  """Returns {"stream.tasks": 5, ...} of a run; keys younger than it by default."""
  return _defaults() | config.flat_keys(ConfigDict(dict(results["config"])))


def seeds_told(runs: Runs) -> str:
  """Returns a sentence about the numbers of seeds."""
  counts = {
    name: sorted({len(run.history.seeds) for run in found})
    for name, found in runs.items()
    if found
  }
  numbers = {number for several in counts.values() for number in several}
  if numbers == {1}:
    return "One seed."
  if len(numbers) == 1:
    return f"{numbers.pop()} seeds."
  told = (f"{name}: {_span(several)}" for name, several in counts.items())
  return f"Seeds: {'; '.join(told)}."


def _span(numbers: Sequence[int]) -> str:
  return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


@functools.cache
def _defaults() -> dict[str, Any]:
  return config.flat_keys(config.default())


def _cast(
  role: Role,
  finished: Sequence[Finished],
  shown: Shown,
  allow_partial: bool,
) -> tuple[Run, ...]:
  """Returns the runs of a role, by the value of its key `apart`."""
  choices: dict[Any, list[Run]] = defaultdict(list)
  for group in _groups(role, finished, shown):
    run = _pool(role, group)
    if _counts(role, run, allow_partial):
      choices[run.value].append(run)
  return tuple(min(choices[value], key=_order(shown)) for value in sorted(choices))


def _counts(role: Role, run: Run, allow_partial: bool) -> bool:
  if run.partial:  # no run of the ledger's, which the figure's title says
    return allow_partial
  return not (role.exact and run.departures)


def _order(shown: Shown) -> Any:
  def key(run: Run) -> tuple[Any, ...]:
    evaluations = len(run.history.steps) if shown == "within" else 0
    seeds = len(run.history.seeds)
    return run.partial, len(run.departures), -evaluations, -seeds, run.paths

  return key


def _groups(
  role: Role, finished: Sequence[Finished], shown: Shown
) -> Iterable[list[StoredRun]]:
  """Returns the runs that fit a role, together where nothing but seeds differs."""
  groups: dict[str, list[StoredRun]] = defaultdict(list)
  for folder, results in finished:
    if _fits(role, settings(results)):
      try:
        run = _read(folder, results, shown)
      except WorkdirError as error:
        _log.warning("%s is left out: %s", folder, error)
      else:
        groups[_what_seeds_share(run)].append(run)
  return groups.values()


def _read(folder: Path, results: dict[str, Any], shown: Shown) -> StoredRun:
  """Returns a run with as much of its history as is shown."""
  if shown == "final":
    return StoredRun(folder, results, without_evaluations(results["seeds"]), [])
  run = stored.read(folder)
  return run if shown == "within" else run._replace(history=_ends_alone(run.history))


def _fits(role: Role, found: Mapping[str, Any]) -> bool:
  same = all(found.get(key) == value for key, value in role.keys.items())
  counts = not role.values or found.get(role.apart) in role.values
  return same and counts


def _what_seeds_share(run: StoredRun) -> str:
  """Returns a text that is equal for runs which only differ in their seeds."""
  config = identity(recorded(run.results["config"]))
  facts = (run.results["facts"].get(name) for name in ("data_digest", WEIGHTS))
  steps = run.history.steps.tolist()
  return json.dumps([config, *facts, steps, run.history.class_names])


def _pool(role: Role, group: Sequence[StoredRun]) -> Run:
  """Returns the runs of a group as one, the larger first; no seed comes twice."""
  taken: list[StoredRun] = []
  seeds: set[int] = set()
  for run in sorted(group, key=lambda run: (-len(run.history.seeds), run.path)):
    if seeds.isdisjoint(run.history.seeds):
      taken.append(run)
      seeds.update(run.history.seeds)
  first, found = taken[0], settings(taken[0].results)
  fields = zip(*(run.history.evaluations for run in taken), strict=True)
  history = first.history._replace(
    evaluations=Evaluation(*(np.concatenate(field, axis=1) for field in fields)),
    seeds=tuple(seed for run in taken for seed in run.history.seeds),
  )
  value = found[role.apart] if role.apart else ""
  return Run(
    paths=tuple(run.path for run in taken),
    results=first.results,
    history=history,
    per_seed=np.concatenate([np.asarray(run.results["per_seed"]) for run in taken]),
    value=value,
    departures=departures(role, value, first.results["config"]),
    partial=not (role.generated or first.results["facts"].get("data_full", False)),
  )


def _ends_alone(history: History) -> History:
  """Returns the evaluations at the ends of tasks, and the last."""
  kept = np.array(history.at_task_end, dtype=bool)
  kept[-1:] = True
  return history._replace(
    steps=history.steps[kept],
    tasks_finished=history.tasks_finished[kept],
    at_task_end=history.at_task_end[kept],
    evaluations=Evaluation(*(field[kept] for field in history.evaluations)),
  )
