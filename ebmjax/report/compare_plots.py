"""The charts of several runs side by side."""

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from ebmjax import metrics
from ebmjax.report import plots, plotting
from ebmjax.report.compare import Comparison
from ebmjax.report.history import matrices
from ebmjax.report.plots import Chart
from ebmjax.report.stored import StoredRun

if TYPE_CHECKING:
  from matplotlib.figure import Figure


def draw(found: Comparison) -> dict[str, Chart]:
  """Returns the charts of a comparison by name."""
  names = [f"{place}: {row['name']}" for place, row in enumerate(found.rows, start=1)]
  with plotting.style():
    return {"curves": _curves(found.runs, names), "tasks": _dots(found.runs, names)}


def _line_styles(names: Sequence[str]) -> list[dict[str, Any]]:
  """Returns the colour, marker and label of each run's line."""
  markers = cycle(plotting.MARKERS)
  return [
    {"color": colour, "marker": marker, "label": plotting.fitting(name, 40)}
    for name, colour, marker in zip(
      names, plotting.line_colours(len(names)), markers, strict=False
    )
  ]


def _legend(figure: "Figure", names: Sequence[str]) -> None:
  long = len(max(names, key=len)) > 20
  figure.legend(loc="outside lower center", ncols=1 if long else 2)


def _curves(runs: Sequence[StoredRun], names: Sequence[str]) -> Chart:
  """Draws the average accuracy over the tasks seen so far, one line per run."""
  figure, axes = plotting.new_figure(plots.WIDTH, plots.HEIGHT + 0.12 * len(runs))
  for run, style in zip(runs, _line_styles(names), strict=True):
    values = plots.mean_so_far(100 * np.asarray(run.history.evaluations.accuracy))
    steps = np.asarray(run.history.steps)
    style["markevery"] = max(1, len(steps) // plots.MAX_MARKERS)
    plotting.mean_line(axes, steps, values, **style)
  plotting.step_axis(axes, max(int(np.max(run.history.steps)) for run in runs))
  plots.percent_axis(axes, "average accuracy so far (%)")
  _legend(figure, names)
  return Chart(
    figure,
    "Average accuracy so far",
    f"Lines: average accuracy so far of {', '.join(names)}.",
    "Mean over the tasks evaluated at a step, then over seeds; the band is one "
    "standard error.",
  )


def _dots(runs: Sequence[StoredRun], names: Sequence[str]) -> Chart:
  """Draws the accuracy of each task at the end, one dot per run."""
  figure, axes = plotting.new_figure(plots.WIDTH, plots.HEIGHT + 0.12 * len(runs))
  tasks = 0
  for place, (run, style) in enumerate(zip(runs, _line_styles(names), strict=True)):
    last = 100 * matrices(run.history)[0][:, -1]  # [R, T]
    tasks = max(tasks, last.shape[1])
    shift = min(0.15, 0.6 / len(runs)) * (place - (len(runs) - 1) / 2)
    x = np.arange(1, last.shape[1] + 1) + shift
    sem = metrics.standard_error(last, axis=0)
    axes.errorbar(x, last.mean(axis=0), yerr=sem, ls="", markersize=4, **style)
  axes.set(xlabel="task", ylabel="accuracy at the end (%)", ylim=(-3, 102))
  axes.set_xticks(range(1, tasks + 1, -(-tasks // plotting.MAX_TICKS)))
  axes.grid(axis="y")
  _legend(figure, names)
  return Chart(
    figure,
    "Accuracy of each task at the end",
    f"Dots: accuracy of each of {tasks} tasks at the end, one dot per run.",
    "Mean over seeds after the last step; whiskers are one standard error.",
  )
