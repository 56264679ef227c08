"""The metrics of a run: one table, from which every output takes its rows.

To add a metric, add a row to `METRICS`. Metrics of other packages are `MetricSpec`s
that `report.write` receives, for example by their import path in config.eval.metrics.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ebmjax import metrics
from ebmjax.config.components import find_in
from ebmjax.errors import ConfigError
from ebmjax.report.history import (
  History,
  at_task_ends,
  learned,
  matrices,
  num_tasks,
  untrained_accuracy,
)

DECIMALS = 6  # of a percentage: far below one test image, and free of 19.899999999
HEADLINE = "average_accuracy"  # the metric that runs are compared by
_DESCRIBED = ("title", "unit", "definition")  # what results.json stores about a metric

_REJECTION = {
  "auroc": "Mean over task ends of the probability that an image of a future class "
  "ranks above one of a class seen",
  "fpr95": "Mean over task ends of the share of images of future classes that are "
  "accepted when 95 % of the others are",
}

Summary = Mapping[str, Any]  # mean, sem, n and, since schema 2, per_seed


class MetricSpec(NamedTuple):
  """A metric, and how every output describes it."""

  name: str  # its key in results.json
  title: str
  unit: str  # such as "%" or "points"
  function: Callable[[History], Any]  # values [R] in that unit; NaN or None: undefined
  definition: str  # one sentence

  @property
  def label(self) -> str:
    """The title with its unit, such as "Forgetting (points)"."""
    return f"{self.title} ({self.unit})" if self.unit else self.title


def _accuracy(metric: Callable[[np.ndarray], np.ndarray]) -> Callable[[History], Any]:
  """Turns a metric of the accuracy matrix [R, T, T] into one of a history."""
  return lambda history: 100 * metric(matrices(history)[0])


def _task_incremental(history: History) -> np.ndarray:
  return 100 * metrics.average_accuracy(matrices(history)[1])


def _forward_transfer(history: History) -> np.ndarray:
  masked, untrained = matrices(history)[1], untrained_accuracy(history)
  return 100 * metrics.forward_transfer(masked, untrained)


def _at_worst(metric: Callable[..., np.ndarray]) -> Callable[[History], Any]:
  """Turns a metric that needs evaluations between task ends into one of a history."""

  def found(history: History) -> np.ndarray | None:
    between = ~np.asarray(history.at_task_end) & (np.asarray(history.steps) > 0)
    if not between.any():
      return None
    return 100 * metric(np.asarray(history.evaluations.accuracy), learned(history))

  return found


def _rejection(name: str) -> Callable[[History], Any]:
  """Returns a metric of a history: the mean over the ends of all tasks but the last.

  After the last task there is no class to reject.
  """

  def found(history: History) -> np.ndarray | None:
    if num_tasks(history) < 2:
      return None
    return 100 * at_task_ends(history, name)[:, :-1].mean(axis=1)

  return found


def _calibration(history: History) -> np.ndarray:
  return 100 * at_task_ends(history, "calibration_error")[:, -1]


METRICS = (
  MetricSpec(
    HEADLINE,
    "Average accuracy",
    "%",
    _accuracy(metrics.average_accuracy),
    "Mean over tasks of the accuracy after the last step.",
  ),
  MetricSpec(
    "average_incremental_accuracy",
    "Average incremental accuracy",
    "%",
    _accuracy(metrics.average_incremental_accuracy),
    "Mean over task ends of the average accuracy on the tasks so far.",
  ),
  MetricSpec(
    "learning_accuracy",
    "Learning accuracy",
    "%",
    _accuracy(metrics.learning_accuracy),
    "Mean over tasks of the accuracy right after learning the task.",
  ),
  MetricSpec(
    "task_incremental_accuracy",
    "Task-incremental accuracy",
    "%",
    _task_incremental,
    "Average accuracy with only the classes of the image's own task as candidates.",
  ),
  MetricSpec(
    "forgetting",
    "Forgetting",
    "points",
    _accuracy(metrics.forgetting),
    "Mean drop of a task's accuracy from its best earlier value to the final one.",
  ),
  MetricSpec(
    "backward_transfer",
    "Backward transfer",
    "points",
    _accuracy(metrics.backward_transfer),
    "Mean change of a task's accuracy from when it was learned to the end.",
  ),
  MetricSpec(
    "forward_transfer",
    "Forward transfer",
    "points",
    _forward_transfer,
    "Mean accuracy gain, over the untrained network, on a task not yet learned.",
  ),
  MetricSpec(
    "min_accuracy",
    "Minimum accuracy",
    "%",
    _at_worst(metrics.min_accuracy),
    "Mean over all tasks but the last of the lowest accuracy since the task was "
    "learned, at every evaluation (min-ACC).",
  ),
  MetricSpec(
    "worst_case_accuracy",
    "Worst-case accuracy",
    "%",
    _at_worst(metrics.worst_case_accuracy),
    "Mean of the last task's accuracy and the other tasks' lowest ones (WC-ACC).",
  ),
  *(
    MetricSpec(
      f"{rule}_{by}",
      f"{rule.upper()}, {by} energy",
      "%",
      _rejection(f"{rule}_{by}"),
      f"{meaning}, by {ranked} of the classes seen.",
    )
    for rule, meaning in _REJECTION.items()
    for by, ranked in (("lowest", "the lowest energy"), ("free", "-logsumexp(-E)"))
  ),
  MetricSpec(
    "calibration_error",
    "Calibration error",
    "points",
    _calibration,
    "Expected gap between the probability softmax(-E) of a prediction and the share "
    "of correct ones, in 15 bins, after the last step.",
  ),
)


def values(spec: MetricSpec, history: History) -> np.ndarray:
  """Returns the metric of each seed [R]; NaN if it is undefined."""
  found = spec.function(history)
  count = len(history.seeds)
  if found is None:
    return np.full(count, np.nan)
  try:
    out = np.asarray(found, dtype=np.float64)
  except (TypeError, ValueError):
    out = np.empty(0)
  if out.shape != (count,):
    raise ConfigError(
      f"the metric {spec.name} must return one number per seed ({count}) or None; "
      f"it returned {found!r}."
    )
  return out


def summaries(history: History, extra: Sequence[MetricSpec] = ()) -> dict[str, Any]:
  """Returns {name: {mean, sem, n, per_seed}}; None if a seed has no value."""
  return {spec.name: _summary(values(spec, history)) for spec in with_extra(extra)}


def descriptions(extra: Sequence[MetricSpec] = ()) -> dict[str, dict[str, str]]:
  """Returns {name: {title, unit, definition}}, which results.json stores."""
  return {
    spec.name: {key: getattr(spec, key) for key in _DESCRIBED}
    for spec in with_extra(extra)
  }


def find_metrics(paths: Sequence[str]) -> list[MetricSpec]:
  """Returns the metrics of import paths such as "package.module:METRIC"."""
  return [find_in("eval.metrics", {}, path, MetricSpec) for path in paths]


def with_extra(extra: Sequence[MetricSpec]) -> tuple[MetricSpec, ...]:
  """Returns `METRICS` and the extra ones; refuses what is not a new metric."""
  names = {spec.name for spec in METRICS}
  for spec in extra:
    if not isinstance(spec, MetricSpec):
      raise ConfigError(f"{spec!r} is no metric; give an ebmjax.report.MetricSpec.")
    if spec.name in names:
      raise ConfigError(f"there are two metrics {spec.name}; give one another name.")
    names.add(spec.name)
  return (*METRICS, *extra)


def rows(results: Mapping[str, Any]) -> list[tuple[MetricSpec, Summary | None]]:
  """Returns the metrics of stored results with a value, and always the headline."""
  found = [(spec, results.get(spec.name)) for spec in _known(results)]
  kept = [(spec, value if _is_summary(value) else None) for spec, value in found]
  return [row for row in kept if row[1] or row[0].name == HEADLINE]


def by_seed(
  results: Mapping[str, Any], history: History
) -> list[tuple[MetricSpec, np.ndarray]]:
  """Returns the metrics that have a value for any seed, with their values [R]."""
  found = [(spec, values(spec, history)) for spec in _known(results)]
  return [(spec, column) for spec, column in found if not np.isnan(column).all()]


def _known(results: Mapping[str, Any]) -> list[MetricSpec]:
  """Returns `METRICS`, then the other metrics that results describe."""
  described = results.get("metrics")
  outside = described.items() if isinstance(described, Mapping) else ()
  names = {spec.name for spec in METRICS}
  return [*METRICS, *(_stored(*e, results) for e in outside if e[0] not in names)]


def _stored(name: str, described: Any, results: Mapping[str, Any]) -> MetricSpec:
  """Restores an extra metric, whose code may be gone, from stored results."""
  entry = described if isinstance(described, Mapping) else {}
  title, unit, definition = (str(entry.get(key, "")) for key in _DESCRIBED)

  def kept(history: History) -> Any:
    summary = results.get(name)
    found = summary.get("per_seed") if isinstance(summary, Mapping) else None
    whole = isinstance(found, list) and len(found) == len(history.seeds)
    return found if whole else None

  return MetricSpec(name, title or name, unit, kept, definition)


def _is_summary(value: Any) -> bool:
  """Returns whether `value` has a mean, a count and a SEM, which may be None."""
  if not isinstance(value, Mapping):
    return False
  sem = value.get("sem")
  numbers = (value.get("mean"), value.get("n"), 0 if sem is None else sem)
  return all(isinstance(x, int | float) and math.isfinite(x) for x in numbers)


def _summary(found: np.ndarray) -> dict[str, Any] | None:
  """Returns {mean, sem, n, per_seed}; None if a seed has no value."""
  mean, sem, n = metrics.mean_sem(found)
  if math.isnan(mean):
    return None
  return {
    "mean": round(mean, DECIMALS),
    "sem": None if sem is None else round(sem, DECIMALS),
    "n": n,
    "per_seed": np.round(found, DECIMALS).tolist(),
  }
