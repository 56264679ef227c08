"""report.html: a finished run on one page that needs no other file."""

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import numpy as np

from ebmjax import metrics
from ebmjax.report import beside, pictures, words
from ebmjax.report import facts as provenance
from ebmjax.report.colours import cell_colours
from ebmjax.report.history import History, matrices
from ebmjax.report.markup import Markup, document, element, figure, join, table
from ebmjax.report.table import low_value_note

NAME = "report.html"
MAX_TABLE = 12  # tasks that are shown one by one; more are folded away
SCORES = {  # of results.json: name and meaning
  "task_incremental_accuracy": (
    "Task-incremental accuracy (%)",
    "candidates are the classes of the image's own task",
  ),
  "forgetting": ("Forgetting (points)", "fall of a task from its best accuracy before"),
  "backward_transfer": (
    "Backward transfer (points)",
    "change of a task since it was learned",
  ),
  "forward_transfer": (
    "Forward transfer (points)",
    "head start of a task not yet learned, over no training",
  ),
}


def render(
  results: Mapping[str, Any], history: History, scalars: Sequence[Mapping[str, Any]]
) -> str:
  """Returns the page of a run as HTML."""
  title = words.title(results)
  curves = pictures.curves(history, scalars)
  maps = [_matrix(history), *pictures.maps(history)]
  head = element(
    "header",
    element("p", "ebmjax, report of a run", class_="kind"),
    element("h1", title),
    *(element("p", sentence, class_="story") for sentence in _story(results)),
  )
  return document(
    title,
    style(),
    head,
    join(map(banner, _warnings(results))),
    _results(results, history),
    section("Over training", element("div", *curves, class_="figures")),
    section("Tasks and classes", element("div", *maps, class_="figures")),
    section(
      "Each task, each seed",
      element("div", _tasks(history), _seeds(history), class_="pair"),
    ),
    *beside.sections(results),
    *provenance.sections(results),
    element("footer", element("p", _FOOTER)),
  )


_FOOTER = (
  "± is one standard error of the mean over seeds. The paper is Li, Du, van de Ven and "
  "Mordatch, Energy-Based Models for Continual Learning, CoLLAs 2022. The numbers of "
  "this page are in results.json, in the folder of the run."
)


def style() -> str:
  """Returns the style sheet of every page."""
  return resources.files("ebmjax.report").joinpath("style.css").read_text("utf-8")


def section(title: str, *content: Any) -> Markup:
  """Returns a part of a page under its heading."""
  return element("section", element("h2", title), *content)


def banner(text: str) -> Markup:
  """Returns a warning that cannot be overlooked."""
  return element("p", element("strong", "Note. "), text, class_="banner", role="note")


def folded(title: str, *content: Any) -> Markup:
  """Returns content that a click on its title shows."""
  return element("details", element("summary", title), *content)


def _story(results: Mapping[str, Any]) -> list[str]:
  note = beside.note(results)
  return words.story(results) + ([_sentence(note)] if note else [])


def _sentence(note: str) -> str:
  """Returns a note of the plain-text table as this page writes it."""
  return (note[0].upper() + note[1:]).replace("+-", "±")


def _warnings(results: Mapping[str, Any]) -> list[str]:
  found = []
  facts = results["facts"]
  if facts.get("data_full") is False:
    source = facts.get("data_source", "the source was not recorded")
    found.append(
      "This run did not use the full data set, so its accuracy is not comparable with "
      f"the paper's. Its data: {source}."
    )
  if results["config"]["data"].get("memorise"):
    found.append(
      "Labels are random and are learned by heart: the images evaluated are those of "
      "training, and no accuracy here is a test accuracy."
    )
  note = low_value_note(results)
  if note:
    found.append(_sentence(note))
  return found


def _results(results: Mapping[str, Any], history: History) -> Markup:
  average = results["average_accuracy"]
  n = len(results["seeds"]) if average is None else average["n"]
  rows: list[tuple[Any, ...]] = [
    (
      _explained(
        "Average accuracy (%)", f"mean over tasks, {history.evaluated_on} images"
      ),
      element("strong", words.score(average)),
      _cited(results),
    )
  ]
  for name, (label, meaning) in SCORES.items():
    found = words.score(results.get(name))
    rows.append((_explained(label, meaning), found, words.DASH))
  seeds = "1 seed" if n == 1 else f"{n} seeds"
  caption = f"After the last step, mean ± standard error over {seeds}"
  header = ("", f"this run, n{words.SPACE}={words.SPACE}{n}", "paper")
  source = results["facts"].get("data_source", "not recorded")
  return section(
    "Result",
    table(caption, header, rows, "scores"),
    element("p", element("strong", "Data: "), source, "."),
  )


def _cited(results: Mapping[str, Any]) -> str:
  figure = words.cited(results["paper"], "no figure")
  return _explained(figure, "other configuration") if beside.note(results) else figure


def _explained(label: str, meaning: str) -> Markup:
  return join([label, element("small", meaning)])


def _tasks(history: History) -> Markup:
  """Returns the accuracy of each task when it was learned and at the end."""
  accuracy, masked = (100 * matrix for matrix in matrices(history))
  rows = []
  for task in range(accuracy.shape[-1]):
    last = accuracy[:, -1, task]
    mean = float(last.mean())
    rows.append(
      (
        str(task + 1),
        mean_and_sem(accuracy[:, task, task]),
        mean_and_sem(last),
        _bar(mean),
        mean_and_sem(masked[:, -1, task]),
      )
    )
  header = ("task", "when learned", "at the end", "", "task-incremental")
  made = table(
    f"{history.evaluated_on.capitalize()} accuracy of each task (%), mean over seeds",
    header,
    rows,
    "tasks",
  )
  return made if len(rows) <= MAX_TABLE else folded(f"All {len(rows)} tasks", made)


def _bar(percent: float) -> Markup:
  wide = 0.0 if np.isnan(percent) else percent
  bar = element("span", class_="bar", style=f"width:{wide:.1f}%")
  return element("td", bar, class_="bars")


def _matrix(history: History) -> Markup:
  """Returns R[i, j] as a table in colours, or as a picture where tasks are many."""
  mean = 100 * matrices(history)[0].mean(axis=0)
  tasks = len(mean)
  caption = "Row i, column j: accuracy (%) on task j after task i"
  few = tasks <= MAX_TABLE
  rows = [
    (str(row + 1), *(_matrix_cell(value, few) for value in mean[row]))
    for row in range(tasks)
  ]
  header = ("after", *(str(task + 1) for task in range(tasks)))
  numbers = table(caption, header, rows, "matrix")
  if few:
    return figure("Accuracy matrix", numbers, _MATRIX_CAPTION)
  content = join([pictures.accuracy_matrix(history), folded("Its numbers", numbers)])
  return figure("Accuracy matrix", content, _MATRIX_CAPTION)


_MATRIX_CAPTION = (
  "A row is an evaluation, a column a task; mean over seeds. A column that darkens "
  "downwards is forgotten. Tasks not met yet are left out."
)


def _matrix_cell(value: float, coloured: bool) -> Markup:
  if np.isnan(value):
    return element("td", "·", class_="none")
  if not coloured:
    return element("td", f"{value:.1f}")
  ground, ink = cell_colours(value / 100)
  return element("td", f"{value:.1f}", style=f"background:{ground};color:{ink}")


def _seeds(history: History) -> Markup:
  """Returns what came of every seed."""
  accuracy, masked = matrices(history)
  columns = (
    metrics.average_accuracy(accuracy),
    metrics.average_accuracy(masked),
    metrics.forgetting(accuracy),
    metrics.backward_transfer(accuracy),
  )
  rows = [
    (str(seed), *(_percent(100 * column[run]) for column in columns))
    for run, seed in enumerate(history.seeds)
  ]
  header = ("seed", "average accuracy", "task-incremental", "forgetting", "backward")
  caption = "Every seed by itself (%; forgetting and backward transfer in points)"
  return table(caption, header, rows)


def mean_and_sem(values: np.ndarray) -> str:
  """Returns "mean ± SEM" of percentages [R], a dash where one is missing."""
  if np.isnan(values).any():
    return words.DASH
  mean, sem, _ = metrics.mean_sem(values)
  return f"{mean:.2f}" if sem is None else f"{mean:.2f} ± {sem:.2f}"


def _percent(value: float) -> str:
  return words.DASH if np.isnan(value) else words.decimal(value)
