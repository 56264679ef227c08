"""The look that the figures share: a page's width, letters, frames, error bars."""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

from ebmjax.report import plotting

if TYPE_CHECKING:
  from matplotlib.axes import Axes
  from matplotlib.figure import Figure

WIDTH = 6.75  # inches: both columns of a page; letters keep their size on paper
COLOURS = {"EBM": plotting.PALETTE[0], "SBC": plotting.PALETTE[5]}
_STYLE: dict[Any, Any] = {
  "font.size": 8,
  "axes.titlesize": 9,
  "axes.labelsize": 8,
  "axes.linewidth": 0.6,
  "xtick.labelsize": 7,
  "ytick.labelsize": 7,
  "xtick.major.width": 0.6,
  "ytick.major.width": 0.6,
  "legend.fontsize": 8,
}


def style() -> AbstractContextManager[Any]:
  """Returns the context in which a figure is drawn and written."""
  from matplotlib import rc_context

  return rc_context(_STYLE)


def panels(
  rows: int, columns: int, height: float, **options: Any
) -> "tuple[Figure, np.ndarray]":
  """Returns a figure of `height` inches and its axes [rows, columns]."""
  return plotting.new_panels(WIDTH, height, rows, columns, **options)


def open_frame(axes: "Axes") -> None:
  """Leaves the left and the lower edge, which carry the scales."""
  axes.spines[["top", "right"]].set_visible(False)


def heat_map(
  axes: "Axes", values: np.ndarray, highest: float, tasks_apart: int = 0
) -> Any:
  """Returns the image of `values` [C, C] from 0 to `highest`; NaN is grey.

  Many classes are numbered in steps of `tasks_apart`, the number of a task's classes.
  """
  axes.set_facecolor("0.85")
  # Every cell is stored as one pixel: no smoothing, whatever the resolution.
  image = axes.imshow(
    values, cmap="viridis", vmin=0, vmax=highest, interpolation="none"
  )
  classes = len(values)
  ticks = np.arange(0, classes, tasks_apart if classes > plotting.MAX_TICKS else 1)
  axes.set_xticks(ticks)
  axes.set_yticks(ticks)
  return image
