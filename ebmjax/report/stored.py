"""Finished runs, read back from their folders."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ml_collections import ConfigDict

from ebmjax.errors import WorkdirError
from ebmjax.paths import expand
from ebmjax.report import scores
from ebmjax.report.history import History, evaluated_on, task_ends
from ebmjax.report.table import Results
from ebmjax.runtime.plan import evaluated_ends
from ebmjax.runtime.records import Record
from ebmjax.runtime.results import is_reportable
from ebmjax.runtime.workdir import Workdir
from ebmjax.types import Evaluation


class StoredRun(NamedTuple):
  """Everything that a finished run stored."""

  path: Path
  results: dict[str, Any]  # results.json
  history: History
  scalars: list[dict[str, Any]]  # a mapping with step, seed and loss per point

  def __repr__(self) -> str:
    return repr(Results(self.results))

  def _repr_html_(self) -> str:
    return Results(self.results)._repr_html_()


def read(path: str | Path) -> StoredRun:
  """Returns the finished run in the folder `path`; raises WorkdirError without one."""
  folder = Workdir(expand(path))  # not entered: reading needs no lock
  if not folder.path.is_dir():
    raise WorkdirError(f"there is no folder {path}; give the --workdir of a run.")
  results = folder.results(whole=is_reportable)
  if results is None:
    raise WorkdirError(
      f"{path} holds no finished run (no results.json); give the --workdir of a run "
      "that has ended."
    )
  evaluations = folder.evaluations()
  if not evaluations:
    raise WorkdirError(
      f"{path} holds results but no evaluations/*.npz, which its figures are drawn "
      "from; put them back, or run it again in another --workdir."
    )
  history = make_history(
    evaluations,
    results["class_names"],
    results["seeds"],
    evaluated_on(results["config"]),
  )
  _require_ends(folder, results, history)
  # An older version knew fewer metrics; the evaluations hold them all.
  results = {**scores.summaries(history), **results}
  return StoredRun(folder.path, results, history, folder.scalars())


def _require_ends(
  folder: Workdir, results: Mapping[str, Any], history: History
) -> None:
  """Refuses a run that lacks an evaluation planned at the end of a task.

  The last step is such an end. The plan says where tasks end, and each evaluation says
  at which task's end it was made.
  """
  try:
    stops = evaluated_ends(ConfigDict(results["config"]), results["facts"]["steps"])
  except (AttributeError, LookupError, TypeError, ValueError):
    return  # these results have no plan
  found = task_ends(history)
  for stop in stops:
    if stop.task + 1 not in found:
      raise folder.lacks(stop.step)


def holds_run(folder: Path) -> bool:
  """Returns whether a folder belongs to a run, finished or not."""
  return (folder / "evaluations").is_dir()


def find(root: str | Path) -> list[Path]:
  """Returns the folders of finished runs under `root`, sorted by name."""
  return sorted(path.parent for path in Path(root).rglob("results.json"))


def make_history(
  records: Sequence[Record],
  class_names: Iterable[str],
  seeds: Iterable[int],
  scored_on: str = "test",
) -> History:
  """Returns the evaluations of a run as arrays with a leading axis [E]."""
  fields = zip(*(record.evaluation for record in records), strict=True)
  return History(
    steps=np.array([record.step for record in records]),
    tasks_finished=np.array([record.tasks_finished for record in records]),
    at_task_end=np.array([record.at_task_end for record in records]),
    evaluations=Evaluation(*(np.stack(field) for field in fields)),
    class_names=tuple(class_names),
    seeds=tuple(seeds),
    evaluated_on=scored_on,
  )
