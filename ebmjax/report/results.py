"""The results of a run as one dictionary that is valid JSON."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ebmjax import metrics
from ebmjax.errors import ConfigError
from ebmjax.report import scores
from ebmjax.report.history import History, at_task_ends, matrices, untrained_accuracy
from ebmjax.report.scores import DECIMALS, MetricSpec
from ebmjax.runtime.results import SCHEMA
from ebmjax.types import RANKING


def summarise(
  history: History,
  config: Mapping[str, Any],
  facts: Mapping[str, Any],
  extra: Sequence[MetricSpec] = (),
  paper: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
  """Returns the results of a run in percent; undefined numbers are None.

  Each metric stands under its name, and "metrics" describes them. `facts` (source of
  the data, versions, times, commit) and `paper` are copied unchanged, except for the
  budget in `facts`, which becomes a part of its own.
  """
  facts = dict(facts)
  budget = facts.pop("budget", None)
  accuracy, masked = matrices(history)
  share = metrics.predicted_label_share(history.evaluations.confusion[-1])
  measured = scores.summaries(history, extra)
  rest = {
    "schema": SCHEMA,
    "metrics": scores.descriptions(extra),
    "per_seed": _percent(metrics.average_accuracy(accuracy)),
    "paper": paper,
    "seeds": list(history.seeds),
    "class_names": list(history.class_names),
    "accuracy_matrix": _percent(accuracy),
    "masked_accuracy_matrix": _percent(masked),
    "untrained_masked_accuracy": _percent(untrained_accuracy(history)),
    "by_task_end": {name: _percent(at_task_ends(history, name)) for name in RANKING},
    "predicted_label_share": _percent(share.mean(axis=0)),
    "budget": budget,
    "config": config,
    "facts": facts,
  }
  taken = sorted(measured.keys() & rest.keys())
  if taken:
    raise ConfigError(
      f"a metric cannot be named {taken[0]}, which is another part of results.json; "
      "give it another name."
    )
  return jsonable(measured | rest)


def jsonable(value: Any) -> Any:
  """Converts `value` to JSON types; numbers that are not finite become None."""
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
  return str(value)  # such as paths and dtypes


def _percent(fractions: Any) -> Any:
  """Converts fractions of any shape to (nested lists of) rounded percentages."""
  return np.round(np.asarray(fractions, dtype=np.float64) * 100, DECIMALS).tolist()
