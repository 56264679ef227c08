"""The page of several finished runs side by side."""

from collections.abc import Mapping, Sequence
from typing import Any

from ebmjax.report import compare, compare_files, compare_plots, labels, plots
from ebmjax.report.history import matrices
from ebmjax.report.labels import DASH
from ebmjax.report.markup import Markup, document, element, section, table
from ebmjax.report.page import banner, by_task, explained, over_seeds, style
from ebmjax.report.stored import StoredRun

_FOOTER = (
  "Runs with the same seeds are compared seed by seed with a paired t-test, others "
  "with Welch's t-test. The interval is that of the difference of the means, at 95 %. "
  "The same tables lie beside this page as CSV and as JSON."
)
_HOLM = "The p-value of one comparison, and Holm's, corrected for the number of them."


def render(
  runs: Sequence[StoredRun], rows: Sequence[Mapping[str, Any]], notes: Sequence[str]
) -> str:
  """Returns the page of `runs`, whose table is `rows`."""
  title = f"{len(runs)} runs compared: {', '.join(row['name'] for row in rows)}"
  drawn = [plots.embedded(*named) for named in compare_plots.draw(runs, rows).items()]
  return document(
    title,
    style(),
    element(
      "header",
      element("p", "ebmjax, comparison of runs", class_="kind"),
      element("h1", f"{len(runs)} runs compared"),
      element("p", compare.story(runs, rows), class_="story"),
    ),
    *map(banner, notes),
    section("Results", *_results(runs, rows)),
    section("Differences", *_differences(rows)),
    section("What was run", *_which(rows)),
    section("Figures", element("div", *drawn, class_="figures")),
    section("Each task", _tasks(runs, rows)),
    element("footer", element("p", _FOOTER)),
  )


def _results(
  runs: Sequence[StoredRun], rows: Sequence[Mapping[str, Any]]
) -> list[Markup]:
  """Returns a row per metric and a column per run, and the paper's number."""
  made = [
    (explained(label, definition), *found)
    for label, definition, found in compare.measured(runs, rows)
  ]
  header = ("", *(f"{row['name']} (n = {row['n']})" for row in rows))
  star = compare.starred(rows)
  caption = "At the end, mean ± standard error over n seeds"
  return [
    table(caption, header, made, "scores by-run"),
    *([element("p", star)] if star else []),
  ]


def _differences(rows: Sequence[Mapping[str, Any]]) -> list[Markup]:
  """Returns the difference of each run's average accuracy from the first run's."""
  made = []
  for row in rows[1:]:
    found = row["difference"]
    p = compare_files.p_cell(found)
    cells = (_signed(found["mean"]), _interval(found), p, found["test"])
    made.append((row["name"], *cells))
  header = ("run", "difference", "95 % interval", "p-value", "test")
  caption = f"Average accuracy minus that of {rows[0]['name']}, in points"
  several = [element("p", _HOLM)] if compare.several_tests(rows) else []
  return [table(caption, header, made, "named"), *several]


def _interval(found: Mapping[str, Any]) -> str:
  if found["low"] is None:
    return DASH
  return f"{_signed(found['low'])} to {_signed(found['high'])}"


def _signed(value: float) -> str:
  return f"{value:+.2f}".replace("-", labels.MINUS)


def _which(rows: Sequence[Mapping[str, Any]]) -> list[Markup]:
  """Returns what each run is, and the configuration keys in which they differ."""
  header = ("run", "n", "method", "network", "data", "setting")
  which = [compare_files.described(row)[: len(header)] for row in rows]
  keys = [
    (key, *(compare.value_text(row["differing"][key]) for row in rows))
    for key in rows[0]["differing"]
  ]
  alike = "The runs differ in no configuration key that decides a result."
  by_key = ("key", *(row["name"] for row in rows))
  caption = "Configuration keys in which the runs differ, beyond seeds"
  return [
    table("The runs", header, which, "named texts"),
    table(caption, by_key, keys, "keys") if keys else element("p", alike),
  ]


def _tasks(runs: Sequence[StoredRun], rows: Sequence[Mapping[str, Any]]) -> Markup:
  """Returns the accuracy of each task at the end, a column per run."""
  lasts = [100 * matrices(run.history)[0][:, -1] for run in runs]
  count = max(last.shape[1] for last in lasts)
  made = [
    (
      str(task + 1),
      *(over_seeds(x[:, task]) if task < x.shape[1] else DASH for x in lasts),
    )
    for task in range(count)
  ]
  header = ("task", *(row["name"] for row in rows))
  return by_task("Accuracy of each task at the end (%)", header, made, "by-run")
