"""The evaluations of a run, and the matrices computed from them."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ebmjax import metrics
from ebmjax.types import Evaluation


class History(NamedTuple):
  """The E evaluations of R runs, in the order in which they were made.

  `tasks_finished` is 0 before training and during the first task, t after task t;
  `at_task_end` marks the evaluations made exactly when a task was finished.
  """

  steps: np.ndarray  # [E] int, training steps made before the evaluation
  tasks_finished: np.ndarray  # [E] int
  at_task_end: np.ndarray  # [E] bool
  evaluations: Evaluation  # each array with a leading axis E
  class_names: tuple[str, ...]  # C
  seeds: tuple[int, ...]  # R
  evaluated_on: str = "test"  # or "validation", or "training"


def without_evaluations(seeds: Iterable[int]) -> History:
  """Returns the history of runs of which only the final scores are known."""
  seeds, none = tuple(seeds), np.zeros(0, int)
  fields = [np.zeros((0, len(seeds)))] * len(Evaluation._fields)
  return History(none, none, none.astype(bool), Evaluation(*fields), (), seeds)


def evaluated_on(config: Mapping[str, Any]) -> str:
  """Returns which images a run is scored on: "test", "validation" or "training"."""
  if config["data"].get("memorise"):
    return "training"
  return "validation" if config["data"].get("validation") else "test"


def num_tasks(history: History) -> int:
  return history.evaluations.accuracy.shape[-1]


def task_ends(history: History) -> dict[int, int]:
  """Returns {finished tasks: position} of the evaluations made at the end of a task.

  If several were made at the same boundary, the last one counts.
  """
  ends = np.flatnonzero(np.asarray(history.at_task_end))
  return {int(history.tasks_finished[e]): int(e) for e in ends}


def at_task_ends(history: History, name: str) -> np.ndarray:
  """Returns a field [E, R, ...] of the evaluations at the ends of tasks, [R, T, ...].

  Entry i is from the end of task i + 1, or NaN if it was not evaluated.
  """
  values, tasks = getattr(history.evaluations, name), num_tasks(history)
  found = np.full((tasks, *values.shape[1:]), np.nan)
  for finished, position in task_ends(history).items():
    if 1 <= finished <= tasks:
      found[finished - 1] = values[position]
  return found.swapaxes(0, 1)


def matrices(history: History) -> tuple[np.ndarray, np.ndarray]:
  """Returns the matrices of accuracy and of masked accuracy, each [R, T, T]."""
  accuracy, masked = (
    at_task_ends(history, name) for name in ("accuracy", "masked_accuracy")
  )
  return accuracy, masked


def confusion_shares(history: History) -> np.ndarray:
  """Returns [C, C] in percent: how each class (row) was predicted after the last step.

  It is the mean over runs.
  """
  counts = history.evaluations.confusion[-1]
  return 100 * metrics.normalise_rows(counts).mean(axis=0)


def mean_energies(history: History, position: int = -1) -> np.ndarray:
  """Returns [C, C]: the energy of each label (column) for each class, mean over runs.

  `position` selects the evaluation. Rows of classes without an image are NaN.
  """
  evaluations = history.evaluations
  evaluated = evaluations.confusion[position].sum(axis=-1) > 0  # [R, C]
  energies = np.where(evaluated[..., None], evaluations.energies[position], np.nan)
  return energies.mean(axis=0)


def learned(history: History) -> np.ndarray:
  """Returns [E, T] bool: whether an evaluation was made after the end of a task."""
  finished = np.asarray(history.tasks_finished)[:, None]
  task = np.arange(1, num_tasks(history) + 1)[None, :]
  at_its_end = np.asarray(history.at_task_end)[:, None] & (finished == task)
  return (finished >= task) & ~at_its_end


def untrained_accuracy(history: History) -> np.ndarray:
  """Returns [R, T], the masked accuracy before the first step; NaN if not evaluated."""
  before = np.flatnonzero(np.asarray(history.steps) == 0)
  if before.size == 0:
    return np.full((len(history.seeds), num_tasks(history)), np.nan)
  return np.asarray(history.evaluations.masked_accuracy[before[0]], dtype=np.float64)
