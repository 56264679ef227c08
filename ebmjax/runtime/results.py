"""The schema of results.json: what a reader may rely on, in files of any version.

Version 2 brought `schema` and `metrics`, the description of each metric. A file of
version 1 has neither; a reader leaves out a metric that a file lacks.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from ebmjax import data
from ebmjax.errors import WorkdirError
from ebmjax.types import Dataset

SCHEMA = 2  # of the files that this version writes
# What every file must hold, and in which form.
REQUIRED: dict[str, type] = {
  **{"config": dict, "facts": dict, "average_accuracy": dict},
  **{"seeds": list, "per_seed": list, "class_names": list},
}
_KEYS = {  # of the configuration, by group: those that identify a run
  "data": ("name",),
  "method": ("name",),
  "network": ("name",),
  "stream": ("name", "tasks", "setting", "scenario"),
}


def is_valid(results: Mapping[str, Any]) -> bool:
  """Returns whether all is there that every reader needs, with a number per seed."""
  if not all(isinstance(results.get(key), form) for key, form in REQUIRED.items()):
    return False
  seeds, scores = results["seeds"], results["per_seed"]
  return (
    0 < len(seeds) == len(scores)
    and all(isinstance(seed, int) for seed in seeds)
    and all(map(_is_number, scores))
  )


def identifies_run(results: Mapping[str, Any]) -> bool:
  """Returns whether valid results also say which run they are of.

  Otherwise defaults would replace what is missing, and the run would look like another.
  """
  if not is_valid(results):
    return False
  config = results["config"]
  groups = all(_has(config.get(group), keys) for group, keys in _KEYS.items())
  return groups and isinstance(config.get("objective"), str)


def is_reportable(results: Mapping[str, Any]) -> bool:
  """Returns whether they also hold what a page and the closing table are made from."""
  if not identifies_run(results):
    return False
  average = results["average_accuracy"]
  sem = average.get("sem")
  runs, *tasks = _shape(results.get("accuracy_matrix")) or (0,)
  return (
    all(_is_number(average.get(key)) for key in ("mean", "n"))
    and (sem is None or _is_number(sem))
    and runs == len(results["seeds"])
    and len(tasks) == 2
    and min(tasks) > 0
  )


def _has(group: Any, keys: tuple[str, ...]) -> bool:
  whole = isinstance(group, Mapping)
  return whole and all(isinstance(group.get(key), str | int) for key in keys)


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
