"""Average accuracy on the tasks so far, after each task; not a figure of the paper."""

from typing import TYPE_CHECKING

import numpy as np

from ebmjax.paper.figures.panels import COLOURS, open_frame, panels
from ebmjax.paper.figures.spec import FigureSpec, Runs, mnist
from ebmjax.report import plots, plotting
from ebmjax.report.history import matrices

if TYPE_CHECKING:
  from matplotlib.figure import Figure

NETWORKS = {"EBM": "o", "SBC": "s"}
STREAMS = ("split", "permuted")


def forgetting(runs: Runs) -> "Figure":
  """Draws one panel per stream and one line per network; bands are SEM over seeds."""
  figure, (row,) = panels(1, 2, 2.8, sharey=True)
  for axes, stream in zip(row, STREAMS, strict=True):
    for name, marker in NETWORKS.items():
      accuracy, _ = matrices(runs[f"{name}, {stream}"][0].history)  # [R, T, T]
      so_far = plots.mean_so_far(100 * accuracy).T
      tasks = np.arange(1, len(so_far) + 1)
      plotting.mean_line(
        axes, tasks, so_far, color=COLOURS[name], marker=marker, label=name
      )
    axes.plot(
      tasks, 100 / tasks, color="0.5", linewidth=0.8, ls=":", label="last task alone"
    )
    axes.set_title(f"{stream} MNIST")
    axes.set_xticks(tasks)
    axes.set_xlabel("tasks learned")
    open_frame(axes)
  row[0].set(ylabel="average accuracy so far (%)", ylim=(-3, 103))
  handles, names = row[0].get_legend_handles_labels()
  figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
  return figure


SPEC = FigureSpec(
  title="Average accuracy so far, split and permuted MNIST",
  caption="Class-incremental test accuracy after each task, mean over the tasks "
  "learned so far; dotted: a learner that knows the last task perfectly and no other. "
  "Mean over seeds, band of one SEM.",
  roles=tuple(mnist(name, stream) for name in NETWORKS for stream in STREAMS),
  draw=forgetting,
)
