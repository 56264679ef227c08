"""The spread of a run's tasks: the best accuracy at the end less the worst."""

from ebmjax.report import MetricSpec
from ebmjax.report.history import History, matrices


def spread(history: History):
  """Returns [R]: percentage points between the best and the worst task."""
  final = 100 * matrices(history)[0][:, -1]
  return final.max(axis=1) - final.min(axis=1)


METRIC = MetricSpec(
  name="spread",
  title="Spread of tasks",
  unit="points",
  function=spread,
  definition="The best task's accuracy at the end less the worst one's.",
)
