"""The tables of a comparison, as its page and its plain text show them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ebmjax.report import budget, labels, scores, significance
from ebmjax.report.compare import Comparison
from ebmjax.report.labels import DASH

ALIKE = "The runs differ in no configuration key that decides a result."
HOLM = "The p-value of one comparison, and Holm's, corrected for the number of them."

Rows = Sequence[Mapping[str, Any]]  # of a comparison


class Table(NamedTuple):
  """A table; one without rows is left out, but its note is shown."""

  caption: str
  header: Sequence[str]
  rows: Sequence[Sequence[str]]
  classes: str  # in the style sheet
  note: str = ""
  meanings: Mapping[str, str] = {}  # of the labels that rows begin with


def tables(found: Comparison) -> dict[str, list[Table]]:
  """Returns the tables of a comparison, by the section of the page."""
  return {
    "Results": [_results(found)],
    "Differences": [_differences(found.rows)],
    "What was run": [_runs(found.rows), _keys(found)],
  }


def _results(comparison: Comparison) -> Table:
  """Returns a row per metric and cost and for the paper, with a column per run."""
  runs, made = comparison.runs, comparison.rows
  found = [scores.rows(run.results) for run in runs]
  specs = {spec.name: spec for run in reversed(found) for spec, _ in run}
  summaries = [{spec.name: summary for spec, summary in run} for run in found]
  rows = [
    (spec.label, *(labels.score(run.get(name)) for run in summaries))
    for name, spec in specs.items()
  ]
  rows.insert(1, ("Paper (%)", *map(_paper_cell, made)))
  budgets = [budget.rows(run.results) for run in runs]
  costs = [cost for cost in budget.COSTS if any(cost in run for run in budgets)]
  rows += [(c.title, *(run.get(c, DASH) for run in budgets)) for c in costs]
  return Table(
    "At the end, mean ± standard error over n seeds",
    ("", *(f"{row['name']} (n = {row['n']})" for row in made)),
    rows,
    "scores by-run",
    _starred(made),
    {spec.label: spec.definition for spec in specs.values()}
    | {cost.title: cost.definition for cost in costs},
  )


def _paper_cell(row: Mapping[str, Any]) -> str:
  """Returns the paper's number; a star marks one of another configuration."""
  return labels.cited(row["paper"]) + (f"{labels.SPACE}*" if row["departures"] else "")


def _starred(made: Rows) -> str:
  """Explains the star after some of the paper's numbers; empty without one."""
  found = [
    f"{row['name']}: {labels.listed(row['departures'])}"
    for row in made
    if row["departures"]
  ]
  if not found:
    return ""
  return f"* The paper's figure is of another configuration than {'; '.join(found)}."


def _differences(made: Rows) -> Table:
  """Returns the difference of each run's average accuracy from the first run's."""
  several = sum(row["difference"]["p"] is not None for row in made[1:]) > 1
  return Table(
    f"Average accuracy minus that of {made[0]['name']}, in points",
    ("run", "difference", "95 % interval", "p-value", "test"),
    [(row["name"], *_difference(row["difference"])) for row in made[1:]],
    "named",
    HOLM if several else "",
  )


def _difference(found: Mapping[str, Any]) -> tuple[str, ...]:
  """Returns the cells of a difference; dashes if there is no test."""
  mean, low, high = (
    DASH if found[key] is None else labels.decimal(found[key], sign="+")
    for key in ("mean", "low", "high")
  )
  if found["p"] is None:
    return mean, DASH, DASH, found["test"]
  p, corrected = (significance.p_text(found[key]) for key in ("p", "p_holm"))
  holm = "" if p == corrected else f" (holm {corrected})"
  return mean, f"{low} to {high}", p + holm, found["test"]


def _runs(made: Rows) -> Table:
  keys = ("name", "n", "method", "network", "data", "setting")
  rows = [[str(row[key]) for key in keys] for row in made]
  return Table("The runs", ("run", *keys[1:]), rows, "named texts")


def _keys(found: Comparison) -> Table:
  return Table(
    "Configuration keys in which the runs differ, beyond seeds",
    ("key", *(row["name"] for row in found.rows)),
    [[key, *map(labels.shown, values)] for key, values in found.differing.items()],
    "keys",
    "" if found.differing else ALIKE,
  )
