"""How often each label is predicted, after each task of split MNIST."""

from typing import TYPE_CHECKING

import numpy as np

from ebmjax import metrics
from ebmjax.paper.figures.panels import COLOURS, open_frame, panels
from ebmjax.paper.figures.spec import FigureSpec, Runs, mnist
from ebmjax.report.history import num_tasks, task_ends

if TYPE_CHECKING:
  from matplotlib.axes import Axes
  from matplotlib.figure import Figure

NETWORKS = ("SBC", "EBM")


def predicted_labels(runs: Runs) -> "Figure":
  """Draws one row per network and one column per task, with one bar per label."""
  tasks = num_tasks(runs["SBC, split"][0].history)
  figure, grid = panels(2, tasks, 2.7, sharex=True, sharey=True)
  for row, name in zip(grid, NETWORKS, strict=True):
    history = runs[f"{name}, split"][0].history
    ends = task_ends(history)
    for task, axes in enumerate(row, start=1):
      _bars(axes, history.evaluations.confusion[ends[task]], COLOURS[name])
      axes.set_xticks(range(len(history.class_names)), history.class_names)
    row[0].set_ylabel(f"{name}\npredicted (%)")
  for task, axes in enumerate(grid[0], start=1):
    axes.set_title(f"after task {task}")
  figure.supxlabel("label (dashed: its true share of the images seen)", fontsize=8)
  return figure


def _bars(axes: "Axes", counts: np.ndarray, colour: str) -> None:
  """Draws the share of each label in confusion `counts` [R, C, C], and the true one."""
  shares = 100 * metrics.predicted_label_share(counts)  # [R, C]
  mean, sem = shares.mean(axis=0), metrics.standard_error(shares, axis=0)
  error = {"elinewidth": 0.7, "ecolor": "black"}
  axes.bar(np.arange(len(mean)), mean, yerr=sem, color=colour, error_kw=error)
  # A transposed confusion matrix counts true classes instead of predictions.
  true = 100 * metrics.predicted_label_share(counts.swapaxes(1, 2)).mean(axis=0)
  seen = np.where(true > 0, true, np.nan)  # no line along the axis
  edges = np.arange(len(true) + 1) - 0.5
  axes.stairs(seen, edges, color="black", linewidth=0.8, linestyle="--")
  open_frame(axes)


SPEC = FigureSpec(
  title="Predicted labels after each task, split MNIST",
  caption="Share of each label among the predictions for the test images of all tasks "
  "seen so far, after each task of split MNIST; dashed: the share of the label among "
  "those images, which a perfect learner would reach. Mean over seeds, bars of one "
  "SEM.",
  roles=tuple(mnist(name, "split") for name in NETWORKS),
  draw=predicted_labels,
)
