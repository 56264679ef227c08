"""report.html: a finished run on one self-contained page."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ebmjax import metrics
from ebmjax.report import budget, labels, paper_comparison, plots, scores
from ebmjax.report import facts as provenance
from ebmjax.report import table as closing
from ebmjax.report.history import History, at_task_ends, matrices, num_tasks
from ebmjax.report.labels import DASH, SPACE
from ebmjax.report.markup import Markup, document, element, folded, join, section, table
from ebmjax.report.plots import Chart
from ebmjax.types import RANKING

NAME = "report.html"
MAX_TABLE = 12  # tasks that a table shows; longer ones are folded
_OVER_TRAINING = ("accuracy_per_task", "loss")
_REJECTION = (
  "Images of high energy can be rejected. Test images of the classes seen so far are "
  "compared with those of future classes, which training has not shown. AUROC is 100 % "
  "if every image of a future class has the higher energy, and 50 % by chance. FPR95 "
  "is the share of these images that is accepted when 95 % of the others are. The "
  "energy is the lowest of the classes seen, or their free energy -logsumexp(-E)."
)
_FOOTER = (
  "± is one standard error of the mean over seeds. The paper is Li, Du, van de Ven and "
  "Mordatch, Energy-Based Models for Continual Learning, CoLLAs 2022. The numbers on "
  "this page are in results.json, in the folder of the run."
)


def render(
  results: Mapping[str, Any], history: History, charts: Mapping[str, Chart]
) -> str:
  """Returns the page of a run as HTML, with the charts of `plots.draw`."""
  over_training = {n: chart for n, chart in charts.items() if n in _OVER_TRAINING}
  at_ends = {n: chart for n, chart in charts.items() if n not in _OVER_TRAINING}
  return document(
    "report of a run",
    labels.heading(results),
    [*labels.story(results), *closing.notes(results)],
    *map(banner, closing.warnings(results)),
    _results(results, history),
    plots.gallery("Over training", over_training),
    plots.gallery("Tasks and classes", at_ends),
    section("Each task", _tasks(history), _matrix(history)),
    _rejection(history),
    section("Each seed", _seeds(results, history)),
    *paper_comparison.sections(results),
    *provenance.sections(results),
    element("footer", element("p", _FOOTER)),
  )


def banner(text: str) -> Markup:
  """Returns a prominent warning."""
  return element("p", element("strong", "Note. "), text, class_="banner", role="note")


def explained(label: str, meaning: str) -> Markup:
  """Returns a label with its meaning, if any, in small print below it."""
  return join([label, element("small", meaning) if meaning else ""])


def by_task(
  caption: str, header: Sequence[Any], rows: Sequence[Sequence[Any]], class_: str = ""
) -> Markup:
  """Returns a table with a row for each task; a long one is folded."""
  made = table(caption, header, rows, class_ or None)
  return made if len(rows) <= MAX_TABLE else folded(f"All {len(rows)} tasks", made)


def _results(results: Mapping[str, Any], history: History) -> Markup:
  n = len(results["seeds"])
  rows: list[tuple[Any, ...]] = []
  for spec, summary in scores.rows(results):
    found: Any = labels.score(summary)
    cited, meaning = DASH, spec.definition
    if spec.name == scores.HEADLINE:
      found, cited = element("strong", found), _cited(results)
      meaning = f"{meaning} Scored on {history.evaluated_on} images."
    rows.append((explained(spec.label, meaning), found, cited))
  seeds = "1 seed" if n == 1 else f"{n} seeds"
  caption = f"After the last step, mean ± standard error over {seeds}"
  header = ("", f"this run, n{SPACE}={SPACE}{n}", "paper")
  return section(
    "Result",
    table(caption, header, rows, "scores"),
    *_budget(results),
    element("p", element("strong", "Data: "), closing.data(results), "."),
  )


def _budget(results: Mapping[str, Any]) -> list[Markup]:
  """Returns the table of the run's budget, if it is known."""
  rows = [
    (explained(cost.title, cost.definition), text)
    for cost, text in budget.rows(results).items()
  ]
  return [table("Budget of a seed", ("", ""), rows, "scores")] if rows else []


def _cited(results: Mapping[str, Any]) -> str:
  number = labels.cited(results.get("paper"), "no figure")
  other = paper_comparison.note(results)
  return explained(number, "other configuration") if other else number


def _tasks(history: History) -> Markup:
  """Returns the accuracy of each task when it was learned and at the end."""
  accuracy, masked = (100 * matrix for matrix in matrices(history))
  rows = [
    (
      str(task + 1),
      over_seeds(accuracy[:, task, task]),
      over_seeds(accuracy[:, -1, task]),
      over_seeds(masked[:, -1, task]),
    )
    for task in range(accuracy.shape[-1])
  ]
  header = ("task", "when learned", "at the end", "task-incremental")
  scored = history.evaluated_on.capitalize()
  caption = f"{scored} accuracy of each task (%), mean over seeds"
  return by_task(caption, header, rows)


def _rejection(history: History) -> Markup:
  """Returns the section on how well energies reject future classes, if defined."""
  columns = {name: 100 * at_task_ends(history, name) for name in RANKING}  # [R, T]
  if np.isnan(columns["auroc_lowest"]).all():
    return Markup()
  rows = [
    (str(end + 1), *(over_seeds(column[:, end]) for column in columns.values()))
    for end in range(num_tasks(history))
  ]
  titles = {spec.name: spec.label for spec in scores.METRICS}
  header = ("after task", *(titles[name] for name in columns))
  made = by_task("At the end of each task, mean over seeds", header, rows, "seeds")
  return section("Energy as rejection", element("p", _REJECTION), made)


def _matrix(history: History) -> Markup:
  """Returns the numbers of the accuracy matrix, folded."""
  mean = 100 * matrices(history)[0].mean(axis=0)
  rows = [
    (str(row), *("·" if np.isnan(value) else f"{value:.1f}" for value in values))
    for row, values in enumerate(mean, start=1)
  ]
  header = ("after", *(str(task + 1) for task in range(len(mean))))
  caption = "Row i, column j: accuracy (%) on task j after task i, mean over seeds"
  return folded("The accuracy matrix in numbers", table(caption, header, rows))


def _seeds(results: Mapping[str, Any], history: History) -> Markup:
  """Returns the table of every metric of every seed."""
  columns = scores.by_seed(results, history)
  rows = [
    (str(seed), *(labels.decimal(column[run]) for _, column in columns))
    for run, seed in enumerate(history.seeds)
  ]
  header = ("seed", *(spec.label for spec, _ in columns))
  return table("Metrics of each seed", header, rows, "seeds")


def over_seeds(values: np.ndarray) -> str:
  """Returns "mean ± SEM" of values [R]; a dash if one is missing."""
  if np.isnan(values).any():
    return DASH
  mean, sem, _ = metrics.mean_sem(values)
  return labels.mean_sem(mean, sem)
