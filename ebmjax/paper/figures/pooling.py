"""Finds the runs for a figure's roles, and pools their seeds as the ledger does."""

import json
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ebmjax.config.identity import decisive, departures, identity
from ebmjax.errors import UserError, WorkdirError
from ebmjax.paper import commands, store
from ebmjax.paper.figures.spec import FigureSpec, Role, Run, Shown
from ebmjax.paper.ledger import pool
from ebmjax.paper.store import Entry
from ebmjax.report import labels, stored
from ebmjax.report.history import History, num_tasks, task_ends, without_evaluations
from ebmjax.types import Evaluation

_log = logging.getLogger(__name__)
_Known = tuple[Entry, History]


def scan(root: str | Path) -> list[Entry]:
  """Returns every finished run under `root`; files of others are skipped."""
  if not Path(root).is_dir():
    raise UserError(f"there is no folder {root}; give that of your runs with --runs.")
  return store.find(Path(root))


def found_in(root: Path, stored: Sequence[Entry]) -> list[Entry]:
  """Returns the finished runs under `root` and those stored, which need no folder."""
  return [*(scan(root) if root.is_dir() or not stored else []), *stored]


def choose(
  entries: Sequence[Entry], spec: FigureSpec, allow_partial: bool = False
) -> dict[str, tuple[Run, ...]]:
  """Returns {role: runs} of the finished runs of a figure; () where none fits.

  Seeds of runs are pooled where nothing else differs and those evaluations which are
  shown were made at the same steps. Of several that fit, the role gets the one on full
  data, then the one that differs least from the role's command, then (`within` tasks)
  the one evaluated most often, then the one with most seeds. Runs on part of the data
  count with `allow_partial` only.
  """
  flat = [(entry, decisive(entry.run)) for entry in entries]
  return {
    role.name: _cast(role, flat, spec.shown, allow_partial) for role in spec.roles
  }


def _cast(
  role: Role,
  entries: Sequence[tuple[Entry, dict[str, Any]]],
  shown: Shown,
  allow_partial: bool,
) -> tuple[Run, ...]:
  """Returns the runs of a role, by the value of its key `apart`."""
  groups: dict[str, list[_Known]] = defaultdict(list)
  for entry, found in entries:
    if _fits(role, found):
      try:
        history = _read(entry, shown)
      except WorkdirError as error:
        _log.warning("%s is left out: %s", entry.folder, error)
      else:
        groups[_shared(entry, history)].append((entry, history))
  choices: dict[Any, list[Run]] = defaultdict(list)
  for group in groups.values():
    run = _pool(role, group)
    # The figure's title says of a partial run that it is none of the ledger's.
    if allow_partial if run.partial else not (role.values and run.differences):
      choices[run.value].append(run)
  return tuple(min(choices[value], key=_order(shown)) for value in sorted(choices))


def _fits(role: Role, found: Mapping[str, Any]) -> bool:
  value = found.get(role.apart)
  if role.values and value not in role.values:
    return False
  wanted = decisive(commands.load(role.file(value)).to_dict())
  keys = (key for key in role.keys if key != role.apart)
  return all(found.get(key) == wanted.get(key) for key in keys)


def _read(entry: Entry, shown: Shown) -> History:
  """Returns as much of a run's history as is shown."""
  if shown == "final":
    return without_evaluations(entry.seeds)
  if entry.folder is None:
    raise WorkdirError("only its final accuracies are stored.")
  history = stored.read(entry.folder).history
  if shown == "last":
    return _only(history, np.arange(len(history.steps)) == len(history.steps) - 1)
  if len(task_ends(history)) < num_tasks(history):
    raise WorkdirError("it was not evaluated at the ends of all tasks.")
  ends = np.array(history.at_task_end, dtype=bool)
  return history if shown == "within" else _only(history, ends)


def _shared(entry: Entry, history: History) -> str:
  """Returns a text that is equal for runs whose seeds may be pooled."""
  steps = history.steps.tolist()
  return json.dumps([identity(entry.run), steps, history.class_names])


def _pool(role: Role, group: Sequence[_Known]) -> Run:
  """Joins the runs of a group, every seed from the same run as in the ledger."""
  histories = {id(entry): history for entry, history in group}
  taken = pool(entry for entry, _ in group)
  entries = list({id(entry): entry for entry, _ in taken.values()}.values())
  newest = max(entries, key=lambda entry: entry.finished)
  fields = (
    np.stack(
      [getattr(histories[id(e)].evaluations, name)[:, i] for e, i in taken.values()],
      axis=1,
    )
    for name in Evaluation._fields
  )
  history = histories[id(newest)]._replace(
    evaluations=Evaluation(*fields), seeds=tuple(taken)
  )
  value = decisive(newest.run)[role.apart] if role.apart else ""
  return Run(
    paths=tuple(sorted({entry.folder or store.MEASURED for entry in entries})),
    config=newest.run,
    source=newest.data_source,
    history=history,
    per_seed=np.array([entry.accuracies[i] for entry, i in taken.values()]),
    value=value,
    differences=_differences(role, value, newest),
    partial=not newest.data_full,
    budget=next((e.budget for e in [newest, *entries] if e.budget), None),
  )


def _differences(role: Role, value: Any, entry: Entry) -> tuple[str, ...]:
  usual = commands.load(role.file(value)).to_dict()
  return tuple(
    f"{found.key}={labels.shown(found.first)}"
    for found in departures(entry.run, usual)
    if found.key != role.apart
  )


def _order(shown: Shown) -> Any:
  def key(run: Run) -> tuple[Any, ...]:
    evaluations = len(run.history.steps) if shown == "within" else 0
    seeds = len(run.history.seeds)
    return run.partial, len(run.differences), -evaluations, -seeds, run.paths

  return key


def _only(history: History, kept: np.ndarray) -> History:
  """Returns the evaluations that are `kept` [E] bool."""
  return history._replace(
    steps=history.steps[kept],
    tasks_finished=history.tasks_finished[kept],
    at_task_end=history.at_task_end[kept],
    evaluations=Evaluation(*(field[kept] for field in history.evaluations)),
  )
