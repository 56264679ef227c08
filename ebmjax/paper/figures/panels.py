"""The style that the figures share: page width, fonts, frames and heat maps."""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

from ebmjax.report import plotting

if TYPE_CHECKING:
  from matplotlib.axes import Axes
  from matplotlib.figure import Figure

WIDTH = 6.75  # inches, two columns of a page, so that font sizes are those on paper
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
  """Hides the top and right edges, which carry no scale."""
  axes.spines[["top", "right"]].set_visible(False)


def heat_map(axes: "Axes", values: np.ndarray, highest: float, stride: int = 0) -> Any:
  """Draws `values` [C, C] from 0 to `highest`, NaN in grey; returns the image.

  Many classes are numbered in steps of `stride`, the number of classes in a task.
  """
  axes.set_facecolor("0.85")
  # Every cell is stored as one pixel, without smoothing at any resolution.
  image = axes.imshow(
    values, cmap="viridis", vmin=0, vmax=highest, interpolation="none"
  )
  classes = len(values)
  ticks = np.arange(0, classes, stride if classes > plotting.MAX_TICKS else 1)
  axes.set_xticks(ticks)
  axes.set_yticks(ticks)
  return image
