"""The figures of a page, drawn from what a run's evaluations found."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ebmjax import metrics
from ebmjax.report import charts, colours
from ebmjax.report.charts import Line
from ebmjax.report.heatmap import heat_map
from ebmjax.report.history import History, matrices, num_tasks, task_ends
from ebmjax.report.markup import Markup, element, figure, join
from ebmjax.report.plots import binned, losses_by_seed, mean_so_far

POINTS = 200  # of a loss curve; beyond them it shows the means of bins


def curves(history: History, scalars: Sequence[Mapping[str, Any]]) -> list[Markup]:
  """Returns what is drawn over training; loss only where `scalars` hold losses."""
  losses = losses_by_seed(scalars)
  return [accuracy(history)] + ([loss(losses)] if losses else [])


def maps(history: History) -> list[Markup]:
  """Returns what is drawn of classes."""
  return [predicted_labels(history), confusion(history), energies(history)]


def accuracy(history: History) -> Markup:
  """Returns the accuracy of each task over training, mean and SEM over seeds."""
  tasks, steps = num_tasks(history), np.asarray(history.steps)
  values = 100 * np.asarray(history.evaluations.accuracy)  # [E, R, T]
  inks = colours.line_colours(tasks)
  lines = [
    line(steps, values[:, :, task], inks[task], str(task + 1)) for task in range(tasks)
  ]
  names = [(f"task {task + 1}", inks[task]) for task in range(tasks)]
  if tasks > 1:
    average = line(steps, mean_so_far(values), "var(--ink)", class_="mean")
    lines, names = [*lines, average], [*names, ("mean so far", "var(--ink)")]
  if tasks > charts.MAX_NAMES:
    names = [names[0], (f"to task {tasks}", inks[-1]), names[-1]]
  lines = [line for line in lines if len(line.x)]
  scored = f"{history.evaluated_on} accuracy"
  chart = charts.line_chart(
    lines,
    alt=f"Lines: {scored} of each of {tasks} tasks over training.",
    y_title=f"{scored} (%)",
    top=100,
    bottom=bottom(lines),
    last=float(steps.max()),
    marks=[float(steps[end]) for end in task_ends(history).values()],
  )
  return figure(
    "Accuracy of each task over training",
    chart,
    "Mean over seeds; the band is one standard error. Upright rules are the ends of "
    "tasks. A line that falls after its task's end is forgetting.",
    key(names),
  )


def loss(losses: Mapping[int, np.ndarray]) -> Markup:
  """Returns the training loss, from {seed: [N, 2] of step and loss}."""
  curves = [binned(points, POINTS) for _, points in sorted(losses.items())]
  class_ = "seed" if len(curves) > 1 else "mean"
  lines = [
    Line(curve[:, 0], curve[:, 1], None, "var(--line-0)", class_=class_)
    for curve in curves
  ]
  steps = curves[0][:, 0]
  alike = all(np.array_equal(curve[:, 0], steps) for curve in curves)
  if len(curves) > 1 and alike:
    mean = np.mean([curve[:, 1] for curve in curves], axis=0)
    lines.append(Line(steps, mean, None, "var(--ink)", class_="mean"))
  # Some objectives are unbounded below.
  lowest = min(0.0, *(float(curve[:, 1].min()) for curve in curves))
  highest = max(0.0, *(float(curve[:, 1].max()) for curve in curves))
  chart = charts.line_chart(
    lines,
    alt=f"Lines: training loss of {len(curves)} seeds over training.",
    y_title="training loss",
    top=1.05 * highest if highest > lowest else 1.0,
    bottom=1.05 * lowest,
    last=max(float(points[-1, 0]) for points in losses.values()),
  )
  seeds = "A thin line is a seed, the thick one their mean. "
  return figure(
    "Training loss",
    chart,
    f"{seeds if len(curves) > 1 else ''}The loss rises where a new task begins and "
    "falls while it is learned.",
  )


def predicted_labels(history: History) -> Markup:
  """Returns the share of each label among the predictions, one row per task end."""
  ends = task_ends(history) or {0: len(history.steps) - 1}
  counts = history.evaluations.confusion[[ends[task] for task in sorted(ends)]]
  shares = 100 * metrics.predicted_label_share(counts).mean(axis=1)  # [rows, C]
  return figure(
    "Predicted labels at the end of each task",
    heat_map(
      shares,
      [f"task {task}" if task else "last step" for task in sorted(ends)],
      history.class_names,
      alt=f"Heat map: share of each label among the predictions, {len(ends)} rows.",
      titles=("after", "predicted label"),
      scale="share of predictions (%)",
      top=max(float(shares.max()), 1.0),
      root=True,  # late rows spread over many more labels than early ones
    ),
    "A learner that forgets predicts only the labels of its last task: each row is "
    "then bright in a few columns and dark in the others.",
  )


def confusion(history: History) -> Markup:
  """Returns what each class was taken for at the end, mean over seeds."""
  counts = history.evaluations.confusion[-1]
  rates = 100 * metrics.normalise_rows(counts).mean(axis=0)
  return figure(
    "Confusion at the end of training",
    heat_map(
      rates,
      history.class_names,
      history.class_names,
      alt=f"Heat map: predicted by true class, {len(rates)} classes.",
      titles=("true class", "predicted class"),
      scale="share of the true class (%)",
      top=max(float(rates.max()), 1.0),
    ),
    "A perfect learner has all its light on the diagonal. A bright column is a label "
    "that takes the images of other classes.",
  )


def energies(history: History) -> Markup:
  """Returns the energy of each label for each class at the end, mean over seeds."""
  evaluated = history.evaluations.confusion[-1].sum(axis=-1) > 0  # [R, C]
  values = np.where(evaluated[..., None], history.evaluations.energies[-1], np.nan)
  return figure(
    "Mean energies at the end of training",
    heat_map(
      values.mean(axis=0),
      history.class_names,
      history.class_names,
      alt=f"Heat map: energy of each label for {values.shape[-1]} classes.",
      titles=("true class", "label"),
      scale="energy, scaled for each image",
      top=1.0,
      decimals=1,
    ),
    "0 is the lowest energy of an image's labels, the preferred one, and 1 the "
    "highest. The diagonal should be dark; grey rows had no image.",
  )


def accuracy_matrix(history: History) -> Markup:
  """Returns the mean over seeds of R[i, j] as a picture, for many tasks."""
  mean = 100 * matrices(history)[0].mean(axis=0)
  names = [str(task + 1) for task in range(len(mean))]
  return heat_map(
    mean,
    names,
    names,
    alt=f"Heat map: accuracy on each of {len(mean)} tasks after each of them.",
    titles=("after task", "accuracy on task"),
    scale="accuracy (%)",
    top=100,
  )


def key(names: Sequence[tuple[str, str]]) -> Markup:
  """Returns the names of lines beside their colours."""
  items = [
    join([element("i", style=f"background:{colour}"), element("span", name)])
    for name, colour in names
  ]
  return element("ul", *(element("li", item) for item in items), class_="key")


def bottom(lines: Sequence[Line]) -> float:
  """Returns where an axis of percentages starts: at 0, or nearer to high lines."""
  lowest = min((float(line.y.min()) for line in lines), default=0.0)
  return 0.0 if lowest < 50 else 10 * np.floor((lowest - 5) / 10)


def line(
  steps: np.ndarray,
  values: np.ndarray,
  colour: str,
  name: str = "",
  class_: str = "line",
) -> Line:
  """Returns the mean of `values` [E, R] over runs, less evaluations without a value."""
  known = ~np.isnan(values).any(axis=1)
  values = values[known]
  sem = metrics.standard_error(values, axis=1)
  return Line(steps[known], values.mean(axis=1), sem, colour, name, class_)
