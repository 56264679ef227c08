"""The page of a sweep: its table, and charts of the score over the swept keys."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from ebmjax.report import plots, plotting
from ebmjax.report.markup import document, element, section, table
from ebmjax.report.plots import Chart
from ebmjax.tools.sweep.selection import SELECTIONS
from ebmjax.tools.sweep.settings import describe, short_names
from ebmjax.tools.sweep.tables import Row, best_of, cells, line_of, score

_SCORE = "validation accuracy (%)"
_WIDE = 30  # an axis is logarithmic above this ratio of largest to smallest value


def render(
  rows: Sequence[Row], found: Mapping[str, Any], test: Mapping[str, Any] | None
) -> str:
  """Renders the page of the rows so far; at least one of them has finished."""
  best: Any = best_of(rows)
  images = SELECTIONS[found["selected_by"]].images
  story = (
    f"Best of {len(rows)} by {images} of {found['chosen_on']}: "
    f"{describe(best['values'])}, {score(best)} %."
  )
  if test:
    story += f" On the test images of {found['config']}: {score(test)} %."
  header, *lines = cells(rows)
  failed = [row for row in rows if row["status"] != "finished"]
  return document(
    "sweep",
    f"Sweep of {', '.join(short_names(rows[0]['values']))}",
    [story],
    plots.gallery("Figures", draw(rows)),
    section(
      "Settings",
      table("Best first", header, lines),
      *(element("p", line_of(row)) for row in failed),
    ),
  )


def draw(rows: Sequence[Row]) -> dict[str, Chart]:
  """Draws a chart over each numeric key, and one over each pair of them."""
  finished = [row for row in rows if row["status"] == "finished"]
  names = dict(zip(rows[0]["values"], short_names(rows[0]["values"]), strict=True))
  swept = {
    name: np.array([float(row["values"][key]) for row in finished])
    for key, name in names.items()
    if _is_numeric([row["values"][key] for row in rows])
  }
  with plotting.style():
    charts = {f"over-{name}": _line(finished, name, x) for name, x in swept.items()}
    for pair in combinations(swept, 2):
      charts[f"over-{'-'.join(pair)}"] = _surface(finished, pair, swept)
  return charts


def _line(rows: Sequence[Row], name: str, x: np.ndarray) -> Chart:
  """Draws the score of each setting over one key, and a line through the best ones."""
  figure, axes = plotting.new_figure(plots.WIDTH, plots.HEIGHT)
  y = np.array([row["mean"] for row in rows])
  sem = [row["sem"] or 0.0 for row in rows]
  colour = plotting.PALETTE[0]
  axes.errorbar(x, y, yerr=sem, ls="", marker="o", markersize=4, color=colour)
  values = np.unique(x)
  axes.plot(values, [y[x == value].max() for value in values], color=colour)
  axes.set(xlabel=name, ylabel=_SCORE, xscale=_scale(x))
  alt = f"Dots: validation accuracy of {len(rows)} settings over {name}."
  caption = "A dot is a setting, its whisker one standard error over seeds; the line "
  return Chart(figure, f"Over {name}", alt, caption + "joins the best at each value.")


def _surface(
  rows: Sequence[Row], pair: tuple[str, str], swept: Mapping[str, np.ndarray]
) -> Chart:
  """Draws the score of each setting as a colour over two keys."""
  figure, axes = plotting.new_figure(plots.WIDTH, plots.HEIGHT + 0.6)
  (x, y), found = (swept[name] for name in pair), [row["mean"] for row in rows]
  seen = axes.scatter(x, y, c=found, cmap="viridis", s=140, marker="s")
  best = int(np.argmax(found))
  axes.scatter(x[best], y[best], s=260, marker="s", facecolor="none", edgecolor="red")
  axes.set(xlabel=pair[0], xscale=_scale(x), ylabel=pair[1], yscale=_scale(y))
  figure.colorbar(seen, ax=axes, label=_SCORE)
  names = " and ".join(pair)
  alt = f"Squares: validation accuracy over {names}."
  caption = "A square is a setting, its colour the mean over seeds; the best is framed."
  return Chart(figure, f"Over {names}", alt, caption)


def _is_numeric(values: Sequence[Any]) -> bool:
  """Returns whether all values are numbers, at least two of them different."""
  numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
  return numbers and len(set(values)) > 1


def _scale(values: np.ndarray) -> str:
  wide = values.min() > 0 and values.max() > _WIDE * values.min()
  return "log" if wide else "linear"
