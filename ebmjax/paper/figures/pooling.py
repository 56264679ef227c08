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
from ebmjax.paper.figures.spec import FigureSpec, Needs, Role, Run
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
  """Returns {role: runs} for a figure; () if no run fits a role.

  Runs that differ only in their seeds are pooled if the evaluations that the figure
  needs were made at the same steps. Of several that fit, a role gets the one on full
  data, then the one nearest to the role's command, then (`within` tasks) the one
  evaluated most often, then the one with the most seeds. Runs on part of the data count
  only with `allow_partial`.
  """
  flat = [(entry, decisive(entry.run)) for entry in entries]
  return {
    role.name: _runs_for(role, flat, spec.needs, allow_partial) for role in spec.roles
  }


def _runs_for(
  role: Role,
  entries: Sequence[tuple[Entry, dict[str, Any]]],
  needs: Needs,
  allow_partial: bool,
) -> tuple[Run, ...]:
  """Returns the runs of a role, sorted by the value of its key `split_by`."""
  groups: dict[str, list[_Known]] = defaultdict(list)
  for entry, found in entries:
    if _fits(role, found):
      try:
        history = _read(entry, needs)
      except WorkdirError as error:
        _log.warning("%s is left out: %s", entry.folder, error)
      else:
        groups[_pool_key(entry, history)].append((entry, history))
  choices: dict[Any, list[Run]] = defaultdict(list)
  for group in groups.values():
    run = _pool(role, group)
    # A partial run may differ from its command: the figure's title marks it.
    if allow_partial if run.partial else not (role.values and run.differences):
      choices[run.value].append(run)
  return tuple(min(choices[value], key=_order(needs)) for value in sorted(choices))


def _fits(role: Role, found: Mapping[str, Any]) -> bool:
  value = found.get(role.split_by)
  if role.values and value not in role.values:
    return False
  wanted = decisive(commands.load(role.file(value)).to_dict())
  keys = (key for key in role.keys if key != role.split_by)
  return all(found.get(key) == wanted.get(key) for key in keys)


def _read(entry: Entry, needs: Needs) -> History:
  """Returns the part of a run's history that a figure needs."""
  if needs == "final":
    return without_evaluations(entry.seeds)
  if entry.folder is None:
    raise WorkdirError("only its final accuracies are stored.")
  history = stored.read(entry.folder).history
  if needs == "last":
    return _only(history, np.arange(len(history.steps)) == len(history.steps) - 1)
  if len(task_ends(history)) < num_tasks(history):
    raise WorkdirError("it was not evaluated at the ends of all tasks.")
  ends = np.array(history.at_task_end, dtype=bool)
  return history if needs == "within" else _only(history, ends)


def _pool_key(entry: Entry, history: History) -> str:
  """Returns a text that is equal for runs whose seeds may be pooled."""
  steps = history.steps.tolist()
  return json.dumps([identity(entry.run), steps, history.class_names])


def _pool(role: Role, group: Sequence[_Known]) -> Run:
  """Joins the runs of a group; each seed comes from the same run as in the ledger."""
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
  value = decisive(newest.run)[role.split_by] if role.split_by else ""
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
    if found.key != role.split_by
  )


def _order(needs: Needs) -> Any:
  def key(run: Run) -> tuple[Any, ...]:
    evaluations = len(run.history.steps) if needs == "within" else 0
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
