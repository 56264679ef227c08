"""Whether a finished run's results are whole, and answer what is asked now."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from ebmjax import data
from ebmjax.errors import WorkdirError
from ebmjax.types import Dataset

# What results.json must hold, and in which form.
RESULTS: dict[str, type] = {
  **{"config": dict, "facts": dict, "average_accuracy": dict},
  **{"seeds": list, "per_seed": list, "class_names": list},
}
# Scores that are shown besides; None where not defined.
_SCORES = (
  "task_incremental_accuracy",
  "forgetting",
  "backward_transfer",
  "forward_transfer",
)
_KEYS = {  # of the configuration, by group: those that tell a run
  "data": ("name",),
  "method": ("name",),
  "network": ("name",),
  "stream": ("name", "tasks", "setting", "scenario"),
}


def is_whole(results: Mapping[str, Any]) -> bool:
  """Returns whether all is there that every reader needs, with a number a seed."""
  if not all(isinstance(results.get(key), form) for key, form in RESULTS.items()):
    return False
  seeds, scores = results["seeds"], results["per_seed"]
  return (
    0 < len(seeds) == len(scores)
    and all(isinstance(seed, int) for seed in seeds)
    and all(map(_is_number, scores))
  )


def tells_run(results: Mapping[str, Any]) -> bool:
  """Returns whether whole results also say which run they are of.

  Else defaults would stand for what is missing, and the run for another.
  """
  if not is_whole(results):
    return False
  config = results["config"]
  groups = all(_has(config.get(group), keys) for group, keys in _KEYS.items())
  return groups and isinstance(config.get("objective"), str)


def fills_page(results: Mapping[str, Any]) -> bool:
  """Returns whether they also hold what a page and the closing table show."""
  if not tells_run(results):
    return False
  cell = results.get("paper", "")
  scores = [results.get(name, "") for name in _SCORES]
  runs, *tasks = _shape(results.get("accuracy_matrix")) or (0,)
  return (
    all(score is None or _is_score(score, "mean", "n") for score in scores)
    and _is_score(results["average_accuracy"], "mean", "n")
    and (cell is None or _is_score(cell, "accuracy"))
    and runs == len(results["seeds"])
    and len(tasks) == 2
    and min(tasks) > 0
  )


def _has(group: Any, keys: tuple[str, ...]) -> bool:
  whole = isinstance(group, Mapping)
  return whole and all(isinstance(group.get(key), str | int) for key in keys)


def _is_score(score: Any, *numbers: str) -> bool:
  """Returns whether `score` has these numbers, and a SEM or None for it."""
  if not isinstance(score, Mapping):
    return False
  sem = score.get("sem", "")
  return all(_is_number(score.get(key)) for key in numbers) and (
    sem is None or _is_number(sem)
  )


def _is_number(value: Any) -> bool:
  return isinstance(value, int | float) and math.isfinite(value)


def _shape(values: Any) -> tuple[int, ...]:
  """Returns the shape of nested lists of numbers and None; () where they have none."""
  try:
    return np.array(values, float).shape
  except (TypeError, ValueError):
    return ()


def require_same_data(
  results: Mapping[str, Any],
  config: ConfigDict,
  workdir: Path,
  dataset: Dataset | None = None,
) -> None:
  """Refuses results on other data than asked for, as far as it is known.

  Without `dataset` nothing is loaded: a finished run is shown wherever its data are.
  """
  facts = results["facts"]
  if config.data.require_full and facts.get("data_full") is False:
    raise WorkdirError(
      f"{workdir} holds this run, finished, on {source(results)}, and "
      "config.data.require_full asks for the full set; give another --workdir."
    )
  if dataset is None:
    return
  given = data.digest(dataset)
  if facts.get("data_digest", given) != given:
    raise WorkdirError(
      f"{workdir} holds this run, finished, on other data ({source(results)}), not on "
      f"{dataset.source}; give the same data, or another --workdir."
    )


def source(results: Mapping[str, Any]) -> str:
  """Returns what the run was trained and scored on."""
  return str(results["facts"].get("data_source", "data that it does not name"))
