"""The page of a sweep: its table, and pictures of the score over what was swept."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ebmjax.report import plots, plotting
from ebmjax.report.markup import document, element, section, table
from ebmjax.report.page import style
from ebmjax.report.plots import Chart
from ebmjax.tools.sweep.settings import describe, short_names, written
from ebmjax.tools.sweep.tables import Row, best_of, line_of, score

if TYPE_CHECKING:
  from matplotlib.axes import Axes

_WIDE = 30  # the largest value over the smallest, from which an axis is logarithmic
_BY = {
  "whole_stream": "the held-out images of all tasks at the end",
  "first_task": "the held-out images of the first task when it has ended",
}


def render(
  rows: Sequence[Row], found: Mapping[str, Any], test: Mapping[str, Any] | None
) -> str:
  """Returns the page of the rows so far, at least one of which has finished."""
  best: Any = best_of(rows)
  keys = list(rows[0]["values"])
  story = (
    f"Best of {len(rows)} by {_BY[found['selected_by']]} of {found['chosen_on']}: "
  )
  story += f"{describe(best['values'])}, {score(best)} %."
  if test:
    story += f" On the test images of {found['config']}: {score(dict(test))} %."
  made = [
    (
      *map(written, row["values"].values()),
      _outcome(row),
      "best" if row is best else "",
    )
    for row in sorted(rows, key=lambda row: -row.get("mean", -1.0))
  ]
  header = (*short_names(keys), "validation accuracy (%)", "")
  drawn = [plots.embedded(*named) for named in draw(rows).items()]
  return document(
    f"Sweep of {', '.join(short_names(keys))}",
    style(),
    element(
      "header",
      element("p", "ebmjax, sweep", class_="kind"),
      element("h1", f"Sweep of {', '.join(short_names(keys))}"),
      element("p", story, class_="story"),
    ),
    section("Figures", element("div", *drawn, class_="figures")),
    section("Settings", table("Best first", header, made)),
  )


def draw(rows: Sequence[Row]) -> dict[str, Chart]:
  """Returns a chart over each numeric key, and one over each two of them."""
  finished = [row for row in rows if row["status"] == "finished"]
  keys = [key for key in rows[0]["values"] if _is_numeric(rows, key)]
  names = dict(zip(rows[0]["values"], short_names(rows[0]["values"]), strict=True))
  with plotting.style():
    charts = {f"over-{names[key]}": _line(finished, key, names[key]) for key in keys}
    for place, first in enumerate(keys):
      for second in keys[place + 1 :]:
        pair = (first, names[first]), (second, names[second])
        charts[f"over-{names[first]}-{names[second]}"] = _surface(finished, *pair)
  return charts


def _line(rows: Sequence[Row], key: str, name: str) -> Chart:
  """Draws the score of each setting over one key; the best of a value by a line."""
  figure, axes = plotting.new_figure(plots.WIDTH, plots.HEIGHT)
  x, y = (np.array([_at(row) for row in rows]) for _at in (_value(key), _mean))
  sem = [row["sem"] or 0.0 for row in rows]
  colour = plotting.line_colours(1)[0]
  axes.errorbar(x, y, yerr=sem, ls="", marker="o", markersize=4, color=colour)
  values = np.unique(x)
  axes.plot(values, [y[x == value].max() for value in values], color=colour)
  _scale(axes, "x", x)
  axes.set(xlabel=name, ylabel="validation accuracy (%)")
  alt = f"Dots: validation accuracy of {len(rows)} settings over {name}."
  caption = "A dot is a setting, its whisker one standard error over seeds; the line "
  return Chart(figure, f"Over {name}", alt, caption + "joins the best at each value.")


def _surface(
  rows: Sequence[Row], first: tuple[str, str], second: tuple[str, str]
) -> Chart:
  """Draws the score of each setting as a colour over two keys."""
  figure, axes = plotting.new_figure(plots.WIDTH, plots.HEIGHT + 0.6)
  (x_key, x_name), (y_key, y_name) = first, second
  x, y, scores = (
    np.array([_at(row) for row in rows])
    for _at in (_value(x_key), _value(y_key), _mean)
  )
  seen = axes.scatter(x, y, c=scores, cmap="viridis", s=140, marker="s")
  best = int(np.argmax(scores))
  axes.scatter(x[best], y[best], s=260, marker="s", facecolor="none", edgecolor="red")
  _scale(axes, "x", x)
  _scale(axes, "y", y)
  axes.set(xlabel=x_name, ylabel=y_name)
  figure.colorbar(seen, ax=axes, label="validation accuracy (%)")
  alt = f"Squares: validation accuracy over {x_name} and {y_name}."
  caption = "A square is a setting, its colour the mean over seeds; the best is framed."
  return Chart(figure, f"Over {x_name} and {y_name}", alt, caption)


def _value(key: str) -> Any:
  return lambda row: float(row["values"][key])


def _mean(row: Row) -> float:
  return float(row["mean"])


def _is_numeric(rows: Sequence[Row], key: str) -> bool:
  """Returns whether every setting has a number for a key, and not all the same."""
  values = [row["values"][key] for row in rows]
  numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
  return numbers and len(set(values)) > 1


def _scale(axes: "Axes", axis: str, values: np.ndarray) -> None:
  if values.min() > 0 and values.max() > _WIDE * values.min():
    axes.set(**{f"{axis}scale": "log"})


def _outcome(row: Row) -> str:
  return score(row) if row["status"] == "finished" else line_of(row)
