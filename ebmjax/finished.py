"""Whether a finished run answers what is asked now: the data may be others."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from ebmjax import data
from ebmjax.errors import WorkdirError
from ebmjax.types import Dataset


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
