"""The schema of results.json: what a reader may rely on, in files of any version.

Version 2 brought `schema` and `metrics`, the description of each metric. A file of
version 1 has neither; a reader leaves out a metric that a file lacks.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from ebmjax import data
from ebmjax.errors import WorkdirError
from ebmjax.runtime.json_files import fits, number
from ebmjax.types import Dataset

SCHEMA = 2  # of the files that this version writes
# What every file must hold, and in which form.
_REQUIRED = {
  **dict.fromkeys(("config", "facts", "average_accuracy"), dict),
  **{"seeds": [int], "per_seed": [number], "class_names": list},
}
_IDENTITY = {  # of the configuration: what identifies a run
  "objective": str,
  **{group: {"name": str} for group in ("data", "method", "network")},
  "stream": {"name": str, "tasks": int, "setting": str, "scenario": str},
}


def is_valid(results: Mapping[str, Any]) -> bool:
  """Returns whether all is there that every reader needs, with a number per seed."""
  whole = fits(results, _REQUIRED)
  return whole and 0 < len(results["seeds"]) == len(results["per_seed"])


def identifies_run(results: Mapping[str, Any]) -> bool:
  """Returns whether valid results also say which run they are of.

  Otherwise defaults would replace what is missing, and the run would look like another.
  """
  return is_valid(results) and fits(results["config"], _IDENTITY)


def is_reportable(results: Mapping[str, Any]) -> bool:
  """Returns whether they also hold what a page and the closing table are made from."""
  if not identifies_run(results):
    return False
  average = results["average_accuracy"]
  runs, *tasks = _shape(results.get("accuracy_matrix")) or (0,)
  return (
    fits(average, {"mean": number, "n": number})
    and (average.get("sem") is None or number(average["sem"]))
    and runs == len(results["seeds"])
    and len(tasks) == 2
    and min(tasks) > 0
  )


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
