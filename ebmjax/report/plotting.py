"""Drawing with matplotlib: figures, lines, heat maps and files.

Figures for a page are drawn within `style()`. Its colours are those of the light page,
and `inline_svg` replaces them by the variables of the style sheet.
"""

import io
import os
import re
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

from ebmjax import metrics
from ebmjax.report.markup import Markup, element

if TYPE_CHECKING:
  from matplotlib.axes import Axes
  from matplotlib.axis import Axis
  from matplotlib.figure import Figure

# Based on Okabe and Ito's colours, which all kinds of colour vision can distinguish;
# darker, for lines on white. Their yellow is too pale, and black is for means.
PALETTE = ("#0072B2", "#C77C00", "#008A64", "#B8578F", "#3A9BD4", "#C04E00")
MARKERS = ("o", "s", "D", "^", "v", "P")  # distinguish lines without colours
# For more lines than the palette has: visible on light and dark backgrounds.
_RAMP = ("#3b6fd6", "#1a8c8a", "#588c28", "#b87a10", "#ce443c")
INK, SOFT, RULE, EMPTY = "#1c2024", "#5a636b", "#dfe2e1", "#c9cdcc"
# The variable of the style sheet for each colour of the light page.
_VARIABLES = {
  INK: "currentColor",
  SOFT: "var(--soft)",
  RULE: "var(--rule)",
  EMPTY: "var(--none)",
  **{colour.lower(): f"var(--line-{i})" for i, colour in enumerate(PALETTE)},
}
_STYLE: Any = {
  "font.size": 9,
  "text.color": INK,
  "axes.labelcolor": INK,
  "axes.edgecolor": SOFT,
  "axes.facecolor": "none",
  "axes.spines.top": False,
  "axes.spines.right": False,
  "axes.titlesize": 10,
  "xtick.color": SOFT,
  "ytick.color": SOFT,
  "xtick.labelcolor": INK,
  "ytick.labelcolor": INK,
  "grid.color": RULE,
  "grid.linewidth": 0.8,
  "legend.frameon": False,
  "legend.fontsize": 8,
}
PAGE_WIDTH = 4.6  # inches; a page magnifies figures about 1.5 times
MAX_TICKS = 20  # the most names that fit along an axis
SOME_TICKS = 10  # shown if there are more names
MAX_LETTERS = 18  # the longest name along an axis
MAX_NUMBERED = 12  # the most columns whose cells have room for a number
DPI = 120


def style() -> AbstractContextManager[None]:
  """Returns a context in which figures get the colours of a page."""
  _import_matplotlib()
  from matplotlib import rc_context

  return rc_context(_STYLE)


def _import_matplotlib() -> None:
  """Imports matplotlib, ignoring an MPLBACKEND that names no backend.

  Nothing here needs one, because figures are only written to files.
  """
  try:
    import matplotlib
  except ValueError:
    backend = os.environ.pop("MPLBACKEND")
    for name in [name for name in sys.modules if name.startswith("matplotlib.")]:
      del sys.modules[name]  # the part that was imported
    import matplotlib  # noqa: F401

    os.environ["MPLBACKEND"] = backend


def new_figure(width: float, height: float) -> "tuple[Figure, Axes]":
  """Returns a figure that needs no display, sized in inches, and its only axes."""
  figure, axes = new_panels(width, height, 1, 1)
  axes[0, 0].tick_params(labelsize=8)
  return figure, axes[0, 0]


def new_panels(
  width: float, height: float, rows: int, columns: int, **options: Any
) -> "tuple[Figure, np.ndarray]":
  """Returns a figure without a display, sized in inches, and axes [rows, columns]."""
  # matplotlib takes most of a second to import, and a run may never draw.
  _import_matplotlib()
  from matplotlib.backends.backend_agg import FigureCanvasAgg
  from matplotlib.figure import Figure

  figure = Figure(figsize=(width, height), layout="constrained")
  FigureCanvasAgg(figure)
  return figure, figure.subplots(rows, columns, squeeze=False, **options)


def png(figure: "Figure", dpi: int = DPI, **metadata: str) -> bytes:
  """Returns the figure as a PNG; the same pixels give the same bytes."""
  return _saved(figure, "png", {"Software": None} | metadata, dpi=dpi)


def svg(figure: "Figure", **metadata: str) -> bytes:
  """Returns the figure as an SVG; the same drawing gives the same bytes."""
  return _saved(figure, "svg", {"Date": None} | metadata)


def pdf(figure: "Figure", **metadata: str) -> bytes:
  """Returns the figure as a PDF; the same drawing gives the same bytes."""
  return _saved(figure, "pdf", {"CreationDate": None} | metadata)


def inline_svg(figure: "Figure", name: str, alt: str) -> Markup:
  """Returns the figure as an <svg> element for a page, in the page's own colours.

  Text stays text. Ids depend on `name`, so that several figures can share a page.
  """
  from matplotlib import rc_context

  with style(), rc_context({"svg.fonttype": "none"}):
    content = _saved(figure, "svg", {"Date": None}, name, facecolor="none").decode()
  size = re.search(r'viewBox="([^"]+)"', content)
  body = content[content.index("</metadata>") :].partition(">")[2]
  body = body.rpartition("</svg>")[0]
  body = re.sub(r"<style.*?</style>", "", body, flags=re.DOTALL)  # in the style sheet
  body = re.sub(r"(?<=: )#[0-9a-f]{6}\b", lambda m: _VARIABLES.get(m[0], m[0]), body)
  used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', body))
  body = re.sub(r' id="([^"]+)"', lambda m: m[0] if m[1] in used else "", body)
  box = size[1] if size else None
  return element("svg", Markup(body), viewBox=box, role="img", aria_label=alt)


def _saved(
  figure: "Figure",
  kind: str,
  metadata: dict[str, str | None],
  salt: str = "ebmjax",
  **options: Any,
) -> bytes:
  from matplotlib import rc_context

  buffer = io.BytesIO()
  # Without a salt the ids in an SVG are random; type 42 embeds TrueType fonts.
  with rc_context({"svg.hashsalt": salt, "pdf.fonttype": 42}):
    figure.savefig(buffer, format=kind, metadata=metadata, **options)
  return buffer.getvalue()


def line_colours(count: int) -> list[str]:
  """Returns a colour for each of `count` lines; many lines run from blue to red."""
  if count <= len(PALETTE):
    return list(PALETTE[:count])
  from matplotlib.colors import LinearSegmentedColormap, to_hex

  ramp = LinearSegmentedColormap.from_list("ramp", _RAMP)
  return [to_hex(ramp(share)) for share in np.linspace(0, 1, count)]


def task_colours(figure: "Figure", axes: "Axes", tasks: int) -> list[str]:
  """Returns a colour per task; more than the palette has get a colour bar."""
  colours = line_colours(tasks)
  if tasks <= len(PALETTE):
    return colours
  from matplotlib.cm import ScalarMappable
  from matplotlib.colors import BoundaryNorm, ListedColormap

  edges = np.arange(tasks + 1) + 0.5
  scale = ScalarMappable(BoundaryNorm(edges, tasks), ListedColormap(colours))
  ticks = np.arange(1, tasks + 1, -(-tasks // 10))
  bar = figure.colorbar(scale, ax=axes, label="task", ticks=ticks)
  bar.minorticks_off()
  bar.ax.tick_params(labelsize=8)
  return colours


def step_axis(axes: "Axes", last: int) -> None:
  """Makes the x axis count training steps from 0 to `last`."""
  from matplotlib.ticker import MaxNLocator, StrMethodFormatter

  margin = 0.02 * max(last, 1)
  axes.set_xlim(-margin, last + margin)
  axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 2, 5, 10]))
  axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
  axes.set_xlabel("training step")


def mean_line(
  axes: "Axes", steps: np.ndarray, values: np.ndarray, **style: Any
) -> None:
  """Draws the mean of `values` [E, R] over runs and a band of one SEM.

  Evaluations in which any run has no value are skipped.
  """
  known = ~np.isnan(values).any(axis=1)
  steps, values = steps[known], values[known]
  mean = values.mean(axis=1)
  if len(steps) == 1:
    style["marker"] = style.get("marker") or "o"  # a line of one point is invisible
  axes.plot(steps, mean, **({"markersize": 3, "linewidth": 1.5} | style))
  sem = metrics.standard_error(values, axis=1)
  if sem is not None:
    colour = style["color"]
    axes.fill_between(
      steps, mean - sem, mean + sem, color=colour, alpha=0.2, linewidth=0
    )


def heat_map(
  values: np.ndarray,
  rows: Sequence[str],
  columns: Sequence[str],
  *,
  titles: tuple[str, str],
  scale: str,
  top: float,
  square_root: bool = False,
  decimals: int = 0,
) -> "Figure":
  """Returns a map of `values` [rows, columns] from 0 to `top`, NaN as grey.

  `titles` are those of the rows and of the columns; `square_root` makes small values
  visible. Square maps keep square cells, and small maps show their numbers.
  """
  from matplotlib.colors import PowerNorm

  square = len(rows) == len(columns)
  height = 3.9 if square else float(np.clip(1.5 + 0.22 * len(rows), 2.2, 4.4))
  figure, axes = new_figure(PAGE_WIDTH, height)
  if square:
    figure.set_layout_engine("compressed")  # keeps the labels of square axes inside
  axes.set_facecolor(EMPTY)
  image = axes.imshow(
    values,
    cmap="viridis",
    norm=PowerNorm(0.5 if square_root else 1.0, vmin=0, vmax=top),
    aspect="equal" if square else "auto",
    interpolation="none",  # every cell is one sharp pixel in an SVG
  )
  name_ticks(axes.xaxis, columns, rotate=True)
  name_ticks(axes.yaxis, rows)
  axes.set(xlabel=titles[1], ylabel=titles[0])
  axes.spines[:].set_visible(False)
  if max(values.shape) <= MAX_NUMBERED:
    annotate(axes, values, decimals)
  bar = figure.colorbar(image, ax=axes, label=scale, shrink=0.9)
  bar.outline.set_visible(False)
  bar.ax.tick_params(labelsize=8)
  if bar.solids is not None:  # one image in an SVG instead of 256 paths
    bar.solids.set_rasterized(True)
  return figure


def name_ticks(axis: "Axis", names: Sequence[str], rotate: bool = False) -> None:
  """Labels an axis with as many of `names` as fit; `rotate` turns long ones."""
  few = len(names) <= MAX_TICKS
  stride = 1 if few else -(-len(names) // SOME_TICKS)
  shown = range(0, len(names), stride)
  long = rotate and max(len(names[i]) for i in shown) > 3
  texts = [fitting(names[i], MAX_LETTERS) for i in shown]
  axis.set_ticks(list(shown), texts, rotation=90 if long else 0)


def annotate(
  axes: "Axes", values: np.ndarray, decimals: int, fontsize: float = 8
) -> None:
  """Writes each of `values` [rows, columns] into its cell of the map in `axes`."""
  image = axes.images[0]
  for row, column in np.argwhere(~np.isnan(values)):
    value = float(values[row, column])
    axes.text(
      column,
      row,
      f"{value:.{decimals}f}",
      ha="center",
      va="center",
      fontsize=fontsize,
      color=readable_ink(image.to_rgba(np.array(value))),
    )


def readable_ink(background: Any) -> str:
  """Returns black or white, whichever contrasts more with a colour (WCAG 2)."""
  from matplotlib.colors import to_rgb

  share = np.array(to_rgb(background))
  linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
  light = float(linear @ (0.2126, 0.7152, 0.0722)) + 0.05
  return "black" if light / 0.05 > 1.05 / light else "white"


def fitting(text: str, letters: int) -> str:
  """Truncates to `letters` characters and escapes `$`, which starts mathematics."""
  short = text if len(text) <= letters else f"{text[: letters - 3]}..."
  return short.replace("$", r"\$")
