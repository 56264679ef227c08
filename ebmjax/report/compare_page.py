"""The page of several finished runs side by side."""

from collections.abc import Iterator
from itertools import chain

from ebmjax.report import compare, compare_plots, plots
from ebmjax.report.compare import Comparison
from ebmjax.report.compare_tables import Table, tables
from ebmjax.report.history import matrices
from ebmjax.report.labels import DASH
from ebmjax.report.markup import Markup, document, element, section, table
from ebmjax.report.page import banner, by_task, explained, over_seeds

_FOOTER = (
  "Runs with the same seeds are compared seed by seed with a paired t-test, others "
  "with Welch's t-test. The interval is that of the difference of the means, at 95 %. "
  "The same tables lie beside this page as CSV and as JSON."
)


def render(found: Comparison) -> str:
  """Returns the page of a comparison."""
  heading = f"{len(found.runs)} runs compared"
  parts = tables(found).items()
  return document(
    "comparison of runs",
    heading,
    [compare.story(found)],
    *map(banner, compare.notes(found)),
    *(section(title, *chain(*map(_table, shown))) for title, shown in parts),
    plots.gallery("Figures", compare_plots.draw(found)),
    section("Each task", _tasks(found)),
    element("footer", element("p", _FOOTER)),
    title=f"{heading}: {', '.join(row['name'] for row in found.rows)}",
  )


def _table(shown: Table) -> Iterator[Markup]:
  """Yields a table, unless it is empty, and its note."""
  if shown.rows:
    rows = [
      (explained(first, shown.meanings.get(first, "")), *rest)
      for first, *rest in shown.rows
    ]
    yield table(shown.caption, shown.header, rows, shown.classes)
  if shown.note:
    yield element("p", shown.note)


def _tasks(found: Comparison) -> Markup:
  """Returns the accuracy of each task at the end, a column per run."""
  lasts = [100 * matrices(run.history)[0][:, -1] for run in found.runs]
  count = max(last.shape[1] for last in lasts)
  made = [
    (
      str(task + 1),
      *(over_seeds(x[:, task]) if task < x.shape[1] else DASH for x in lasts),
    )
    for task in range(count)
  ]
  header = ("task", *(row["name"] for row in found.rows))
  return by_task("Accuracy of each task at the end (%)", header, made, "by-run")
