"""Confusion matrices at the end of split and of permuted MNIST."""

from typing import TYPE_CHECKING

import numpy as np

from ebmjax.paper.figures.panels import heat_map, panels
from ebmjax.paper.figures.spec import FigureSpec, Runs, mnist
from ebmjax.report import plotting
from ebmjax.report.history import confusion_shares, num_tasks

if TYPE_CHECKING:
  from matplotlib.figure import Figure

NETWORKS = ("SBC", "EBM")
STREAMS = ("split", "permuted")


def matrices(runs: Runs) -> "Figure":
  """Draws one row per network and one column per stream, all in the same colours."""
  figure, grid = panels(2, 2, 5.9)
  for row, name in zip(grid, NETWORKS, strict=True):
    for axes, stream in zip(row, STREAMS, strict=True):
      history = runs[f"{name}, {stream}"][0].history
      shares = confusion_shares(history)
      classes = len(shares)
      image = heat_map(axes, shares, 100, classes // num_tasks(history))
      if classes <= 12:
        shown = np.where(shares < 0.5, np.nan, shares)  # not the many zeros
        plotting.annotate(axes, shown, decimals=0, fontsize=6)
      axes.set_title(f"{name}, {stream} MNIST")
      axes.set_xlabel("predicted label")
      axes.set_ylabel("true class")
  bar = figure.colorbar(image, ax=grid, shrink=0.6, aspect=30)
  bar.set_label("share of the true class (%)")
  return figure


SPEC = FigureSpec(
  title="Confusion matrices, split and permuted MNIST",
  caption="What the test images of each class (rows) are taken for at the end of split "
  "MNIST (left) and of permuted MNIST (right), in percent of the class, mean over "
  "seeds; the lighter the diagonal, the more accurate the predictions.",
  roles=tuple(mnist(name, stream) for name in NETWORKS for stream in STREAMS),
  draw=matrices,
  needs="last",
)
