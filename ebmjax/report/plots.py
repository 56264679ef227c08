"""The charts of a run: drawn once, for the page and for the files in plots/."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ebmjax import metrics
from ebmjax.report import plotting
from ebmjax.report.history import (
  History,
  confusion_shares,
  matrices,
  mean_energies,
  num_tasks,
  task_ends,
)
from ebmjax.report.markup import Markup, element, section

if TYPE_CHECKING:
  from matplotlib.axes import Axes
  from matplotlib.figure import Figure

WIDTH, HEIGHT = plotting.PAGE_WIDTH, 3.1  # inches
MAX_MARKERS = 40  # the most evaluations that are marked on a line
MAX_POINTS = 200  # of a loss curve; a longer one shows means of bins


class Chart(NamedTuple):
  """A figure with its title, alternative text and caption."""

  figure: "Figure"
  title: str
  alt: str  # what it shows, for screen readers
  caption: str  # how to read it


def draw(
  history: History, scalars: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Chart]:
  """Returns every chart by name; "loss" only if `scalars` hold losses."""
  with plotting.style():
    losses = losses_by_seed(scalars)
    return {
      "accuracy_per_task": accuracy_per_task(history),
      **({"loss": loss(losses)} if losses else {}),
      "accuracy_matrix": accuracy_matrix(history),
      "predicted_labels": predicted_labels(history),
      "confusion": confusion(history),
      "energies": energies(history),
    }


def png(chart: Chart) -> bytes:
  """Returns the chart as a PNG with its title, which a page shows as a heading."""
  axes = chart.figure.axes[0]
  with plotting.style():
    axes.set_title(chart.title)
    content = plotting.png(chart.figure, dpi=160)
    axes.set_title("")
  return content


def gallery(title: str, charts: Mapping[str, Chart]) -> Markup:
  """Returns a section of a page with charts; their names are unique in the page."""
  figures = [
    element(
      "figure",
      element("h3", chart.title),
      plotting.inline_svg(chart.figure, name, chart.alt),
      element("figcaption", chart.caption),
    )
    for name, chart in charts.items()
  ]
  return (
    section(title, element("div", *figures, class_="figures")) if figures else Markup()
  )


def accuracy_per_task(history: History) -> Chart:
  """Draws the accuracy of each task over training, mean and SEM over seeds."""
  figure, axes = plotting.new_figure(WIDTH, HEIGHT)
  steps, tasks = np.asarray(history.steps), num_tasks(history)
  accuracy = 100 * np.asarray(history.evaluations.accuracy)  # [E, R, T]
  few = tasks <= plotting.MAX_TICKS  # more vertical lines would hide the curves
  for end in task_ends(history).values() if few else ():
    axes.axvline(steps[end], color=plotting.SOFT, linewidth=0.6, ls=":", zorder=0)
  colours = plotting.task_colours(figure, axes, tasks)
  listed = tasks <= len(plotting.PALETTE)  # otherwise there is a colour bar
  for task, colour in enumerate(colours):
    marker = plotting.MARKERS[task] if listed and len(steps) <= MAX_MARKERS else ""
    label = f"task {task + 1}" if listed else None
    values = accuracy[:, :, task]
    plotting.mean_line(axes, steps, values, color=colour, marker=marker, label=label)
  if tasks > 1:
    average = {"color": plotting.INK, "ls": "--", "label": "mean so far"}
    plotting.mean_line(axes, steps, mean_so_far(accuracy), **average)
  plotting.step_axis(axes, int(steps.max()))
  scored = f"{history.evaluated_on} accuracy"
  percent_axis(axes, f"{scored} (%)")
  figure.legend(loc="outside lower center", ncols=4)
  return Chart(
    figure,
    "Accuracy of each task over training",
    f"Lines: {scored} of each of {tasks} tasks over training.",
    "Mean over seeds; the band is one standard error. "
    f"{'Dotted lines are the ends of tasks. ' if few else ''}"
    "A line that falls after its task's end is forgetting.",
  )


def loss(losses: Mapping[int, np.ndarray]) -> Chart:
  """Draws the training loss of each seed, from {seed: [N, 2] of step and loss}."""
  figure, axes = plotting.new_figure(WIDTH, HEIGHT)
  curves = [binned(points) for _, points in sorted(losses.items())]
  several = len(curves) > 1
  for curve in curves:
    axes.plot(
      *curve.T,
      color=plotting.PALETTE[0],
      marker="o" if len(curve) == 1 else "",
      linewidth=0.8 if several else 1.5,
      alpha=0.5 if several else 1.0,
    )
  steps = curves[0][:, 0]
  if several and all(np.array_equal(curve[:, 0], steps) for curve in curves):
    mean = np.mean([curve[:, 1] for curve in curves], axis=0)
    axes.plot(steps, mean, color=plotting.INK, linewidth=1.5)
  plotting.step_axis(axes, int(max(points[-1, 0] for points in losses.values())))
  axes.grid(axis="y")
  axes.set_ylabel("training loss")
  seeds = "A thin line is one seed, the thick line their mean. " if several else ""
  return Chart(
    figure,
    "Training loss",
    f"Lines: training loss of {len(curves)} seeds over training.",
    f"{seeds}The loss rises where a new task begins and falls while it is learned.",
  )


def accuracy_matrix(history: History) -> Chart:
  """Draws the mean over seeds of R[i, j], the accuracy on task j after task i."""
  mean = 100 * matrices(history)[0].mean(axis=0)
  names = [str(task + 1) for task in range(len(mean))]
  titles = ("after task", "accuracy on task")
  return Chart(
    plotting.heat_map(mean, names, names, titles=titles, scale="accuracy (%)", top=100),
    "Accuracy matrix",
    f"Heat map: accuracy on each of {len(mean)} tasks after each of them.",
    "A row is an evaluation, a column a task; mean over seeds. A column that darkens "
    "downwards is forgotten. Tasks not yet evaluated are grey.",
  )


def predicted_labels(history: History) -> Chart:
  """Draws the share of each label in the predictions, one row per end of a task."""
  ends = task_ends(history) or {0: len(history.steps) - 1}
  counts = history.evaluations.confusion[[ends[task] for task in sorted(ends)]]
  shares = 100 * metrics.predicted_label_share(counts).mean(axis=1)  # [rows, C]
  drawn = plotting.heat_map(
    shares,
    [f"task {task}" if task else "last step" for task in sorted(ends)],
    history.class_names,
    titles=("after", "predicted label"),
    scale="share of predictions (%)",
    top=max(float(shares.max()), 1.0),
    square_root=True,  # late rows spread over many more labels than early ones
  )
  return Chart(
    drawn,
    "Predicted labels at the end of each task",
    f"Heat map: share of each label among the predictions, {len(ends)} rows.",
    "A learner that forgets predicts only the labels of its last task: each row is "
    "then bright in a few columns and dark in the others.",
  )


def confusion(history: History) -> Chart:
  """Draws how each class was predicted at the end, mean over seeds."""
  rates = confusion_shares(history)
  drawn = plotting.heat_map(
    rates,
    history.class_names,
    history.class_names,
    titles=("true class", "predicted class"),
    scale="share of the true class (%)",
    top=max(float(rates.max()), 1.0),
  )
  return Chart(
    drawn,
    "Confusion at the end of training",
    f"Heat map: predicted by true class, {len(rates)} classes.",
    "A perfect learner is bright on the diagonal alone. A bright column is a label "
    "that attracts the images of other classes.",
  )


def energies(history: History) -> Chart:
  """Draws the energy of each label for each class at the end, mean over seeds.

  The stored energies are scaled to 0..1 for each image, so that networks and seeds are
  comparable. Classes without an evaluated image are left empty.
  """
  drawn = plotting.heat_map(
    mean_energies(history),
    history.class_names,
    history.class_names,
    titles=("true class", "label"),
    scale="energy, scaled for each image",
    top=1.0,
    decimals=1,
  )
  return Chart(
    drawn,
    "Mean energies at the end of training",
    f"Heat map: energy of each label for {len(history.class_names)} classes.",
    "0 is the lowest energy of an image's labels, the preferred one, and 1 the "
    "highest. The diagonal should be dark; grey rows had no image.",
  )


def percent_axis(axes: "Axes", title: str) -> None:
  """Makes the y axis show percentages, from 0 unless all lines are high."""
  curves = [line for line in axes.get_lines() if line.get_linestyle() != ":"]
  heights = np.concatenate([np.asarray(line.get_ydata(), float) for line in curves])
  lowest = float(heights.min()) if heights.size else 0.0
  bottom = 0.0 if lowest < 50 else 10 * np.floor((lowest - 5) / 10)
  axes.set(ylabel=title, ylim=(bottom - 0.03 * (100 - bottom), 102))
  axes.grid(axis="y")


def losses_by_seed(scalars: Sequence[Mapping[str, Any]]) -> dict[int, np.ndarray]:
  """Returns {seed: [N, 2] of step and loss}, sorted by step, where there is a loss."""
  points: dict[int, list[tuple[float, float]]] = defaultdict(list)
  for scalar in scalars:
    value = scalar.get("loss")
    if value is not None and np.isfinite(value):
      points[int(scalar["seed"])].append((float(scalar["step"]), float(value)))
  return {seed: np.array(sorted(pairs)) for seed, pairs in points.items()}


def binned(points: np.ndarray, most: int = MAX_POINTS) -> np.ndarray:
  """Returns at most `most` means of neighbouring `points` [N, 2]."""
  bins = np.array_split(points, min(len(points), most))
  return np.array([part.mean(axis=0) for part in bins])


def mean_so_far(accuracy: np.ndarray) -> np.ndarray:
  """Returns the mean of `accuracy` [..., T] over the tasks that were evaluated."""
  known = ~np.isnan(accuracy)
  count = known.sum(axis=-1)
  total = np.where(known, accuracy, 0).sum(axis=-1)
  return np.where(count > 0, total / np.maximum(count, 1), np.nan)
