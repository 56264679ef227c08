"""The results of a run as one dictionary, ready to become strict JSON."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ebmjax import metrics
from ebmjax.paper import printed
from ebmjax.report.history import History, matrices, untrained_accuracy

DECIMALS = 6  # of a percentage: far below one test image, and free of 19.899999999


def summarise(
  history: History, config: Mapping[str, Any], facts: Mapping[str, Any]
) -> dict[str, Any]:
  """Returns the results of a run: percentages, None wherever a number is undefined.

  `facts` (source of the data, versions, times, commit) stand in it as they are.
  """
  accuracy, masked = matrices(history)
  average = metrics.average_accuracy(accuracy)
  untrained = untrained_accuracy(history)
  share = metrics.predicted_label_share(history.evaluations.confusion[-1])
  results = {
    "average_accuracy": _summary(average),
    "per_seed": _percent(average),
    "task_incremental_accuracy": _summary(metrics.average_accuracy(masked)),
    "forgetting": _summary(metrics.forgetting(accuracy)),
    "backward_transfer": _summary(metrics.backward_transfer(accuracy)),
    "forward_transfer": _summary(metrics.forward_transfer(masked, untrained)),
    "paper": printed.lookup(config),
    "seeds": list(history.seeds),
    "class_names": list(history.class_names),
    "accuracy_matrix": _percent(accuracy),
    "masked_accuracy_matrix": _percent(masked),
    "untrained_masked_accuracy": _percent(untrained),
    "predicted_label_share": _percent(share.mean(axis=0)),
    "config": config,
    "facts": facts,
  }
  return jsonable(results)


def with_todays_figure(results: dict[str, Any]) -> dict[str, Any]:
  """Returns stored results with the figure that this version sets beside such a run.

  Which one it is follows from the configuration; an older version may have erred.
  """
  return results | {"paper": printed.lookup(results["config"])}


def jsonable(value: Any) -> Any:
  """Returns `value` in JSON's own types; a number that is not finite becomes None."""
  if isinstance(value, np.ndarray | np.generic):
    value = value.tolist()
  if isinstance(value, Mapping):
    return {str(name): jsonable(item) for name, item in value.items()}
  if isinstance(value, list | tuple):
    return [jsonable(item) for item in value]
  if isinstance(value, float):
    return value if math.isfinite(value) else None
  if value is None or isinstance(value, bool | int | str):
    return value
  return str(value)  # paths, dtypes: their text is what a reader wants


def _summary(values: np.ndarray) -> dict[str, Any] | None:
  """Returns {mean, sem, n} in percent, None where a run has no value."""
  mean, sem, n = metrics.mean_sem(values)
  if math.isnan(mean):
    return None
  return {"mean": _percent(mean), "sem": None if sem is None else _percent(sem), "n": n}


def _percent(fractions: Any) -> Any:
  """Returns fractions of any shape as (nested lists of) rounded percentages."""
  return np.round(np.asarray(fractions, dtype=np.float64) * 100, DECIMALS).tolist()
