"""The page of several finished runs side by side."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ebmjax import metrics
from ebmjax.report import charts, compare, pictures, words
from ebmjax.report.charts import Dots
from ebmjax.report.colours import line_colours
from ebmjax.report.history import matrices
from ebmjax.report.markup import Markup, document, element, figure, join, table
from ebmjax.report.page import banner, folded, mean_and_sem, section, style
from ebmjax.report.plots import mean_so_far
from ebmjax.report.significance import Difference, told
from ebmjax.report.stored import StoredRun

MAX_TABLE = 12  # tasks whose table is not folded away


def render(
  runs: Sequence[StoredRun], rows: Sequence[Mapping[str, Any]], notes: Sequence[str]
) -> str:
  """Returns the page of `runs`, whose table is `rows`."""
  title = f"{len(runs)} runs compared: {', '.join(row['name'] for row in rows)}"
  inks = line_colours(len(runs))
  names = (f"{number}: {row['name']}" for number, row in enumerate(rows, start=1))
  key = pictures.key(list(zip(names, inks, strict=True)))
  drawn = [_curves(runs, rows, inks, key), _dots(runs, inks, key)]
  return document(
    title,
    style(),
    element(
      "header",
      element("p", "ebmjax, comparison of runs", class_="kind"),
      element("h1", f"{len(runs)} runs compared"),
      element("p", _story(rows), class_="story"),
    ),
    *map(banner, notes),
    section("Results", _results(rows)),
    section("Differences", *_differences(rows)),
    section("Figures", element("div", *drawn, class_="figures")),
    section("Each task", _tasks(runs, rows)),
    element("footer", element("p", _FOOTER)),
  )


_CAPTION = "Average accuracy at the end, mean ± standard error over n seeds"
_FOOTER = (
  "Runs with the same seeds are compared seed by seed with a paired t-test, others "
  "with Welch's t-test. The interval is that of the difference of the means, at 95 %. "
  "The same table lies beside this page as CSV and as JSON."
)


# The numbers first: a phone shows no more at once.
_ORDER = (
  *("name", "n", "accuracy", "paper", "forgetting"),
  *("method", "network", "data", "setting"),
)


def _results(rows: Sequence[Mapping[str, Any]]) -> Markup:
  places = [[key for _, key in compare.COLUMNS].index(key) for key in _ORDER]
  header = [compare.COLUMNS[place][0] for place in places]
  made = [[cells[place] for place in places] for cells in map(compare.cells, rows)]
  star = compare.starred(rows)
  note = element("p", star) if star else ""
  return join([table(_CAPTION, header, made, "named runs"), note])


def _story(rows: Sequence[Mapping[str, Any]]) -> str:
  known = [row for row in rows if row["average_accuracy"]]
  if not known:
    return "None of the runs has an average accuracy."
  best = max(known, key=lambda row: row["average_accuracy"]["mean"])
  return (
    f"The highest average accuracy is that of {best['name']}: "
    f"{words.score(best['average_accuracy'])}{words.PERCENT}."
  )


def _differences(rows: Sequence[Mapping[str, Any]]) -> list[Markup]:
  first = rows[0]["name"]
  made = []
  for row in rows[1:]:
    if row["difference"] is None:
      made.append(
        (row["name"], words.DASH, words.DASH, words.DASH, "no average accuracy")
      )
      continue
    found = Difference(**row["difference"])
    p = words.DASH if found.p is None else told(found.p)
    made.append((row["name"], _signed(found.mean), _interval(found), p, found.test))
  header = ("run", "difference", "95 % interval", "p-value", "test")
  caption = f"Average accuracy less that of {first}, in points"
  many = [element("p", compare.MANY)] if compare.several_tests(rows) else []
  return [table(caption, header, made, "named"), *many]


def _interval(found: Difference) -> str:
  if found.low is None or found.high is None:
    return words.DASH
  return f"{_signed(found.low)} to {_signed(found.high)}"


def _signed(value: float) -> str:
  return f"{value:+.2f}".replace("-", words.MINUS)


def _curves(
  runs: Sequence[StoredRun],
  rows: Sequence[Mapping[str, Any]],
  inks: Sequence[str],
  key: Markup,
) -> Markup:
  """Returns the average accuracy over the tasks met so far, a line a run."""
  lines = []
  for number, (run, ink) in enumerate(zip(runs, inks, strict=True), start=1):
    values = mean_so_far(100 * np.asarray(run.history.evaluations.accuracy))
    steps = np.asarray(run.history.steps)
    lines.append(pictures.line(steps, values, ink, str(number)))
  lines = [line for line in lines if len(line.x)]
  chart = charts.line_chart(
    lines,
    alt=f"Lines: average accuracy so far of {', '.join(row['name'] for row in rows)}.",
    y_title="average accuracy so far (%)",
    top=100,
    bottom=pictures.bottom(lines),
    last=max(float(np.max(run.history.steps)) for run in runs),
  )
  text = (
    "Mean over the tasks evaluated at a step, then over seeds; the band is one "
    "standard error. The number at the end of a line is that of its run."
  )
  return figure("Average accuracy so far", chart, text, key)


def _dots(runs: Sequence[StoredRun], inks: Sequence[str], key: Markup) -> Markup:
  """Returns the accuracy of each task at the end, a dot a run."""
  series = []
  for number, (run, ink) in enumerate(zip(runs, inks, strict=True), start=1):
    last = 100 * matrices(run.history)[0][:, -1]  # [R, T]
    sem = metrics.standard_error(last, axis=0)
    series.append(Dots(last.mean(axis=0), sem, ink, str(number)))
  tasks = max(len(dots.y) for dots in series)
  chart = charts.dot_chart(
    series,
    alt=f"Dots: accuracy of each of {tasks} tasks at the end, one dot a run.",
    y_title="accuracy at the end (%)",
  )
  text = (
    "Mean over seeds after the last step; whiskers are one standard error. The number "
    "above a dot, or at the end of a line through many, is that of its run."
  )
  return figure("Accuracy of each task at the end", chart, text, key)


def _tasks(runs: Sequence[StoredRun], rows: Sequence[Mapping[str, Any]]) -> Markup:
  """Returns the accuracy of each task at the end, a column a run."""
  lasts = [100 * matrices(run.history)[0][:, -1] for run in runs]
  count = max(last.shape[1] for last in lasts)
  made = [
    (
      str(task + 1),
      *(mean_and_sem(x[:, task]) if task < x.shape[1] else words.DASH for x in lasts),
    )
    for task in range(count)
  ]
  header = ("task", *(row["name"] for row in rows))
  content = table("Accuracy of each task at the end (%)", header, made, "by-run")
  return content if count <= MAX_TABLE else folded(f"All {count} tasks", content)
