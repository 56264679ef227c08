"""Accuracy of each task over training: SBC, SBC with our objective, EBM."""

from typing import TYPE_CHECKING

import numpy as np

from ebmjax.paper.figures.panels import open_frame, panels
from ebmjax.paper.figures.spec import FigureSpec, Run, Runs, mnist
from ebmjax.report import plotting
from ebmjax.report.history import num_tasks, task_ends

if TYPE_CHECKING:
  from matplotlib.axes import Axes
  from matplotlib.figure import Figure

LINE = {"linewidth": 1.2, "markersize": 2.2}
TITLES = {"SBC": "SBC", "SBC*": "SBC*, contrastive objective", "EBM": "EBM"}


def over_training(runs: Runs) -> "Figure":
  """Draws one panel per network and one line per task; bands are SEM over seeds."""
  names = list(TITLES)
  figure, (row,) = panels(1, len(names), 2.4, sharex=True, sharey=True)
  shown = [runs[f"{name}, permuted"][0] for name in names]
  colours = plotting.task_colours(figure, row, num_tasks(shown[0].history))
  for axes, name, run in zip(row, names, shown, strict=True):
    _tasks(axes, run, colours)
    axes.set_title(f"{TITLES[name]}\n{run.per_seed.mean():.1f} % at the end")
    axes.set_xlabel("training steps (thousands)")
    open_frame(axes)
  row[0].set(ylabel="test accuracy (%)", ylim=(-3, 103))
  last = max(run.history.steps[-1] for run in shown) / 1000
  row[0].set_xlim(-0.02 * last, 1.02 * last)
  return figure


def _tasks(axes: "Axes", run: Run, colours: list[str]) -> None:
  """Draws the tasks of a run; marks the points if they are only at ends of tasks."""
  history = run.history
  ends = task_ends(history).values()
  steps = np.asarray(history.steps) / 1000
  for end in ends:
    axes.axvline(steps[end], color="0.9", linewidth=0.6, zorder=0)
  trained = np.flatnonzero(history.steps > 0)
  marker = "o" if set(trained) <= set(ends) else ""
  accuracy = 100 * history.evaluations.accuracy  # [E, R, T]
  for task, colour in enumerate(colours):
    plotting.mean_line(
      axes, steps, accuracy[:, :, task], color=colour, marker=marker, **LINE
    )


SPEC = FigureSpec(
  title="Accuracy of each task over training, permuted MNIST",
  caption="Class-incremental test accuracy of each task while ten tasks of permuted "
  "MNIST are learned in turn, by the softmax-based classifier (SBC), the same trained "
  "with the contrastive objective (SBC*), and the energy-based model (EBM). Grey "
  "lines: ends of tasks. Mean over seeds, band of one SEM.",
  roles=tuple(mnist(name, "permuted", " --config.eval.every=500") for name in TITLES),
  draw=over_training,
  needs="within",
)
