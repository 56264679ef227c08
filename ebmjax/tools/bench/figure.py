"""Draws the curves: a panel for each size, both axes logarithmic."""

from typing import TYPE_CHECKING

from ebmjax.report import plotting
from ebmjax.tools.bench.measuring import OURS, Row

if TYPE_CHECKING:
  from matplotlib.axes import Axes
  from matplotlib.figure import Figure

_TITLES = {
  "labels": "labels",
  "batch": "images of a batch",
  "hidden": "hidden units",
  "seeds": "seeds, all together",
}
_NAMES = {"shared": "PyTorch, shared"}
_STYLES = {"training": ("o", "-"), "inference": ("s", "--")}


def draw(rows: list[Row]) -> "Figure":
  """Returns the figure of the points in `rows`; band: the range of the rounds."""
  figure, grid = plotting.new_panels(9.0, 7.0, 2, 2)
  colours = dict(zip(_series(rows), plotting.PALETTE, strict=False))
  for axes, (axis, title) in zip(grid.flat, _TITLES.items(), strict=True):
    points = sorted((r for r in rows if r["axis"] == axis), key=lambda r: r["value"])
    for work in _STYLES:
      for name, colour in colours.items():
        _line(axes, [p for p in points if name in p[work]], work, name, colour)
    axes.set(xscale="log", yscale="log", xlabel=title, ylabel="ms a batch")
    values = [point["value"] for point in points]
    axes.set_xticks(values, [str(value) for value in values])
    axes.minorticks_off()
    axes.tick_params(labelsize=8)
    axes.grid(color="0.92", linewidth=0.6)
  named = [axes.get_legend_handles_labels() for axes in figure.axes]
  lines = {label: line for found in named for line, label in zip(*found, strict=True)}
  figure.legend(
    list(lines.values()),
    list(lines),
    loc="outside lower center",
    ncols=3,
    frameon=False,
  )
  return figure


def _series(rows: list[Row]) -> list[str]:
  """Returns the names of all that was timed, ours first."""
  names = {name for row in rows for work in _STYLES for name in row[work]}
  return sorted(names, key=lambda name: (not name.startswith(OURS), name))


def _line(axes: "Axes", points: list[Row], work: str, name: str, colour: str) -> None:
  if not points:
    return
  x = [point["value"] for point in points]
  spreads = [point[work][name] for point in points]
  low, high = [s["min"] for s in spreads], [s["max"] for s in spreads]
  marker, dashes = _STYLES[work]
  axes.plot(
    x,
    [s["median"] for s in spreads],
    color=colour,
    marker=marker,
    linestyle=dashes,
    markersize=3,
    linewidth=1.5,
    label=f"{_NAMES.get(name, name)}: {work}",
  )
  axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
