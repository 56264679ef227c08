"""The parts that the figures share: canvas, lines, heat maps, ticks."""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ebmjax import metrics
from ebmjax.report import colours

if TYPE_CHECKING:
  from matplotlib.axes import Axes
  from matplotlib.axis import Axis
  from matplotlib.figure import Figure

# After Okabe and Ito's colours, told apart with every kind of colour vision, as dark as
# lines on white must be (the style sheet has the same); their yellow is too pale, and
# black is left for means.
PALETTE = ("#0072B2", "#C77C00", "#008A64", "#B8578F", "#3A9BD4", "#C04E00")
MAX_TICKS = 20  # names that fit along an axis
DPI = 120


def new_figure(width: float, height: float) -> "tuple[Figure, Axes]":
  """Returns a figure that needs no display, in inches, and its only axes."""
  # matplotlib takes most of a second to import, and a run may never draw.
  from matplotlib.backends.backend_agg import FigureCanvasAgg
  from matplotlib.figure import Figure

  figure = Figure(figsize=(width, height), layout="constrained")
  FigureCanvasAgg(figure)
  axes = figure.add_subplot()
  axes.tick_params(labelsize=8)
  return figure, axes


def png(figure: "Figure", dpi: int = DPI, **metadata: str) -> bytes:
  """Returns the figure as a PNG, the same bytes for the same pixels."""
  return _saved(figure, "png", {"Software": None} | metadata, dpi=dpi)


def svg(figure: "Figure", **metadata: str) -> bytes:
  """Returns the figure as an SVG, the same bytes for the same drawing."""
  return _saved(figure, "svg", {"Date": None} | metadata)


def pdf(figure: "Figure", **metadata: str) -> bytes:
  """Returns the figure as a PDF, the same bytes for the same drawing."""
  return _saved(figure, "pdf", {"CreationDate": None} | metadata)


def _saved(
  figure: "Figure", kind: str, metadata: dict[str, str | None], **options: Any
) -> bytes:
  from matplotlib import rc_context

  buffer = io.BytesIO()
  # Names inside an SVG are drawn at random without a salt; a PDF gets whole fonts.
  with rc_context({"svg.hashsalt": "ebmjax", "pdf.fonttype": 42}):
    figure.savefig(buffer, format=kind, metadata=metadata, **options)
  return buffer.getvalue()


def task_colours(figure: "Figure", axes: "Axes", tasks: int) -> list[Any]:
  """Returns a colour per task; beyond the palette they run along a colour bar."""
  if tasks <= len(PALETTE):
    return list(PALETTE[:tasks])
  from matplotlib import colormaps
  from matplotlib.cm import ScalarMappable
  from matplotlib.colors import BoundaryNorm, ListedColormap

  # The palest yellow of the map is lost on white.
  colours = colormaps["viridis"](np.linspace(0, 0.93, tasks))
  edges = np.arange(tasks + 1) + 0.5
  scale = ScalarMappable(BoundaryNorm(edges, tasks), ListedColormap(colours))
  ticks = np.arange(1, tasks + 1, -(-tasks // 10))
  figure.colorbar(scale, ax=axes, label="task", ticks=ticks).minorticks_off()
  return list(colours)


def step_axis(axes: "Axes", last: int) -> None:
  """Makes the x axis count training steps from 0 to `last`."""
  from matplotlib.ticker import MaxNLocator

  margin = 0.02 * max(last, 1)
  axes.set_xlim(-margin, last + margin)
  axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
  axes.set_xlabel("training step")


def mean_line(
  axes: "Axes", steps: np.ndarray, values: np.ndarray, **style: Any
) -> None:
  """Draws the mean of `values` [E, R] over runs and a band of one SEM.

  Evaluations [E] in which a run has no value are passed over.
  """
  known = ~np.isnan(values).any(axis=1)
  steps, values = steps[known], values[known]
  mean = values.mean(axis=1)
  if len(steps) == 1:
    style["marker"] = "o"  # a line of one point is invisible
  axes.plot(steps, mean, **({"markersize": 3, "linewidth": 1.5} | style))
  sem = metrics.standard_error(values, axis=1)
  if sem is not None:
    colour = style["color"]
    axes.fill_between(
      steps, mean - sem, mean + sem, color=colour, alpha=0.2, linewidth=0
    )


def class_map(
  values: np.ndarray,
  names: Sequence[str],
  *,
  title: str,
  column: str,
  scale: str,
  highest: float,
) -> "Figure":
  """Returns a square map of `values` [C, C] from 0; rows that are NaN stay grey."""
  figure, axes = new_figure(7.2, 6.0)
  axes.set_facecolor("0.85")
  image = axes.imshow(values, cmap="viridis", vmin=0, vmax=highest)
  name_ticks(axes.xaxis, names, turn=True)
  name_ticks(axes.yaxis, names)
  axes.set(xlabel=column, ylabel="true class", title=title)
  if len(names) <= 12:
    annotate(axes, values, decimals=0 if highest > 1 else 2)
  figure.colorbar(image, ax=axes, label=scale, shrink=0.9)
  return figure


def name_ticks(axis: "Axis", names: Sequence[str], turn: bool = False) -> None:
  """Puts as many of `names` along an axis as can be read; `turn` long ones upright."""
  stride = -(-len(names) // MAX_TICKS)
  shown = range(0, len(names), stride)
  long = turn and max(len(names[i]) for i in shown) > 3
  axis.set_ticks(list(shown), [names[i] for i in shown], rotation=90 if long else 0)


def annotate(
  axes: "Axes",
  values: np.ndarray,
  decimals: int,
  fontsize: float = 8,
) -> None:
  """Writes each of `values` [rows, columns] on its cell of the map in `axes`."""
  norm: Any = axes.images[0].norm
  for row, column in np.argwhere(~np.isnan(values)):
    value = values[row, column]
    axes.text(
      column,
      row,
      f"{value:.{decimals}f}",
      ha="center",
      va="center",
      fontsize=fontsize,
      color=colours.cell_colours(float(norm(value)))[1],
    )
