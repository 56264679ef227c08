"""Heat maps as SVG: cells with their numbers, or a picture where they are many."""

from collections.abc import Sequence

import numpy as np

from ebmjax.report.charts import LETTER, WIDTH, number, svg
from ebmjax.report.colours import cell_colours, picture
from ebmjax.report.markup import Markup, element, join

MAX_NUMBERED = 12  # columns whose cells have room for their number
MAX_NAMES = 20  # along an axis
RIGHT = 6
LINE = 18  # the height of a line of text
BAR = 10  # the height of the bar of colours


def heat_map(
  values: np.ndarray,
  rows: Sequence[str],
  columns: Sequence[str],
  *,
  alt: str,
  titles: tuple[str, str],
  scale: str,
  top: float,
  root: bool = False,
  decimals: int = 0,
) -> Markup:
  """Returns `values` [rows, columns] from 0 to `top` as colours, NaN as grey.

  `titles` are those of the rows and of the columns; `root` lifts the small values.
  """
  left = 12 + LETTER * max(map(len, rows))
  width = (WIDTH - left - RIGHT) / len(columns)
  height = _cell_height(len(rows), len(columns), width)
  shares = np.clip(values / top, 0, 1) ** (0.5 if root else 1)
  upper = LINE + 8
  if len(columns) <= MAX_NUMBERED and len(rows) <= MAX_NAMES:
    cells = _cells(values, shares, (left, upper, width, height), decimals)
  else:
    cells = _picture(shares, (left, upper, width, height))
  lower = upper + height * len(rows)
  across, below = _column_names(columns, left, lower, width)
  bar = below + LINE + 12
  parts = [
    _text(0, 14, f"{titles[0]} (down), {titles[1]} (across)"),
    cells,
    *_row_names(rows, left, upper, height),
    *across,
    _bar(left, bar, scale, top, root),
  ]
  return svg(bar + BAR + 2 * LINE + 4, alt, parts)


def _cell_height(rows: int, columns: int, width: float) -> float:
  """Returns a cell's height: square for maps of classes, flatter for few rows."""
  if rows == columns:
    return width
  return float(np.clip(300 / rows, 5, 26))


def _cells(
  values: np.ndarray,
  shares: np.ndarray,
  place: tuple[float, float, float, float],
  decimals: int,
) -> Markup:
  """Returns a rectangle with its number for every value."""
  left, upper, width, height = place
  parts = []
  for (row, column), value in np.ndenumerate(values):
    x, y = left + column * width, upper + row * height
    box = {"x": number(x), "y": number(y)}
    box |= {"width": number(width), "height": number(height)}
    if np.isnan(value):
      parts.append(element("rect", class_="none", **box))
      continue
    ground, ink = cell_colours(float(shares[row, column]))
    parts.append(element("rect", style=f"fill:{ground}", **box))
    written = f"{value:.{decimals}f}"
    if written.strip("0."):  # a map is mostly zeros, which its colours tell better
      middle = (x + width / 2, y + height / 2 + 4)
      parts.append(_text(*middle, written, "middle", style=f"fill:{ink}"))
  return join(parts)


def _picture(shares: np.ndarray, place: tuple[float, float, float, float]) -> Markup:
  left, upper, width, height = place
  rows, columns = shares.shape
  return element(
    "image",
    href=picture(shares, zoom=max(1, 400 // max(shares.shape))),
    x=number(left),
    y=number(upper),
    width=number(width * columns),
    height=number(height * rows),
    preserveAspectRatio="none",
  )


def _row_names(
  rows: Sequence[str], left: float, upper: float, height: float
) -> list[Markup]:
  return [
    _text(left - 7, upper + (row + 0.5) * height + 4, rows[row], "end")
    for row in _shown(len(rows))
  ]


def _column_names(
  columns: Sequence[str], left: float, lower: float, width: float
) -> tuple[list[Markup], float]:
  """Returns the names under the columns, upright where long, and where they end."""
  shown = _shown(len(columns))
  room = width * (shown[1] if len(shown) > 1 else 1)
  longest = LETTER * max(len(columns[column]) for column in shown)
  parts = []
  for column in shown:
    x = left + (column + 0.5) * width
    if longest < room:
      parts.append(_text(x, lower + 15, columns[column], "middle"))
    else:
      turn = f"rotate(-90 {number(x + 4)} {number(lower + 6)})"
      parts.append(_text(x + 4, lower + 6, columns[column], "end", transform=turn))
  return parts, lower + (LINE if longest < room else longest + 6)


def _bar(left: float, y: float, scale: str, top: float, root: bool) -> Markup:
  """Returns the colours from 0 to `top`, named at both ends."""
  steps = 48
  width = (WIDTH - left - RIGHT) / steps
  parts = [
    element(
      "rect",
      x=number(left + step * width),
      y=number(y),
      width=number(width + 0.6),  # a seam would show between exact neighbours
      height=BAR,
      style=f"fill:{cell_colours((step / (steps - 1)) ** (0.5 if root else 1))[0]}",
    )
    for step in range(steps)
  ]
  parts.append(_text(left, y + BAR + 15, "0"))
  parts.append(_text(WIDTH - RIGHT, y + BAR + 15, f"{top:.3g}", "end"))
  parts.append(_text((left + WIDTH - RIGHT) / 2, y + BAR + 15, scale, "middle"))
  return join(parts)


def _shown(count: int) -> list[int]:
  return list(range(0, count, -(-count // MAX_NAMES)))


def _text(
  x: float, y: float, content: str, anchor: str = "start", **attributes: str
) -> Markup:
  return element(
    "text", content, x=number(x), y=number(y), text_anchor=anchor, **attributes
  )
