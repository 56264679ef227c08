"""What a run leaves behind: results, tables, figures and TensorBoard curves.

`write` needs the evaluations of a run as a `History`; `Board` is fed while it runs. Of
`facts` this package reads `data_source`, `data_full`, `wall_time` (seconds) and
`steps_per_second` (over all seeds), each of them optional; all others are only kept.
"""

from ebmjax.report.files import write
from ebmjax.report.history import History, evaluated_on
from ebmjax.report.results import summarise, with_todays_figure
from ebmjax.report.stored import StoredRun, make_history, read
from ebmjax.report.table import closing_table
from ebmjax.report.tensorboard import Board

__all__ = [
  "Board",
  "History",
  "StoredRun",
  "closing_table",
  "evaluated_on",
  "make_history",
  "read",
  "summarise",
  "with_todays_figure",
  "write",
]
