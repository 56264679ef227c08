"""The outputs of a run: results, tables, figures and pages.

`write` needs the evaluations of a run as a `History`. A metric is a row of `METRICS` or
a `MetricSpec` passed to `write`. Of `facts`, this package reads `data_source`,
`data_full`, `wall_time` (seconds), `steps_per_second` (over all seeds) and `budget`,
all optional; it stores other facts unchanged.
"""

from ebmjax.report.files import write
from ebmjax.report.history import History, evaluated_on
from ebmjax.report.results import summarise
from ebmjax.report.scores import METRICS, MetricSpec, find_metrics
from ebmjax.report.stored import StoredRun, make_history, read
from ebmjax.report.table import Results, closing_table

__all__ = [
  "METRICS",
  "History",
  "MetricSpec",
  "Results",
  "StoredRun",
  "closing_table",
  "evaluated_on",
  "find_metrics",
  "make_history",
  "read",
  "summarise",
  "write",
]
