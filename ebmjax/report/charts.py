"""Charts as SVG that takes its ink from the page, in light and in dark.

They are drawn for a width of `WIDTH` pixels and shrink to a phone's. Nothing in them
has an id, so that any number of them can stand in one page.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ebmjax.report.markup import Markup, element, join
from ebmjax.report.words import MINUS

WIDTH, HEIGHT = 480, 300
TOP, BOTTOM, LEFT, RIGHT = 30, 44, 46, 24
LETTER = 7.2  # mean width of a letter of the style sheet's 13 pixels
MAX_MARKERS = 40  # points that are marked one by one on a line
MAX_NAMES = 12  # lines that a key names one by one
NAME_HEIGHT = 12
NEAR = 6  # a name further from its line's end is tied to it

Scale = Callable[[float], float]  # a value to its place in the picture


class Line(NamedTuple):
  """A curve with a band around it."""

  x: np.ndarray  # [N]
  y: np.ndarray  # [N]
  sem: np.ndarray | None  # [N], half the height of the band
  colour: str  # of CSS
  name: str = ""  # written at its end
  class_: str = "line"  # in the style sheet


class Dots(NamedTuple):
  """A value for each task, with whiskers."""

  y: np.ndarray  # [T]
  sem: np.ndarray | None  # [T]
  colour: str
  name: str = ""  # written above each, or at the end of a line through all


def line_chart(
  lines: Sequence[Line],
  *,
  alt: str,
  y_title: str,
  top: float,
  last: float,
  bottom: float = 0,
  marks: Sequence[float] = (),
) -> Markup:
  """Returns `lines` over training steps from 0 to `last`, `marks` as upright rules."""
  right = WIDTH - RIGHT
  x = _scale(0, last or 1, LEFT, right)
  y = _scale(bottom, top, HEIGHT - BOTTOM, TOP)
  parts = [_y_axis(y, (bottom, top), y_title, right)]
  parts += [_rule(x(mark)) for mark in marks]
  steps = [step for step in ticks(last, 5) if step == int(step)]
  parts += [_text(x(step), HEIGHT - 26, f"{step:,.0f}", "middle") for step in steps]
  parts.append(_text((LEFT + right) / 2, HEIGHT - 6, "training step", "middle"))
  parts += [_band(line, x, y) for line in lines]
  few = len(lines) <= MAX_NAMES + 1
  parts += [_curve(line, x, y, marked=few) for line in lines]
  parts += _end_names([line for line in lines if line.name], x, y)
  return svg(HEIGHT, alt, parts)


def dot_chart(
  series: Sequence[Dots], *, alt: str, y_title: str, top: float = 100
) -> Markup:
  """Returns the values of every task side by side, one column a task."""
  tasks = max(len(dots.y) for dots in series)
  right = WIDTH - RIGHT
  slot = (right - LEFT) / tasks
  y = _scale(0, top, HEIGHT - BOTTOM, TOP)
  parts = [_y_axis(y, (0, top), y_title, right)]
  stride = -(-tasks // 20)
  for task in range(0, tasks, stride):
    middle = LEFT + (task + 0.5) * slot
    parts.append(_text(middle, HEIGHT - 26, str(task + 1), "middle"))
  parts.append(_text((LEFT + right) / 2, HEIGHT - 6, "task", "middle"))
  gap = min(0.8 * slot / len(series), 12)
  radius = min(4.0, max(2.2, gap / 2.5))
  named = gap >= LETTER * max(len(dots.name) for dots in series)
  lines = []
  for place, dots in enumerate(series):
    shift = (place - (len(series) - 1) / 2) * gap
    middles = LEFT + (np.arange(len(dots.y)) + 0.5) * slot + shift
    known = np.isfinite(dots.y)
    for shown in np.flatnonzero(known).tolist():
      parts.append(_dot(dots, shown, float(middles[shown]), y, radius, named))
    if known.any() and not named:
      ends = (middles[known], dots.y[known])
      lines.append(Line(*ends, None, dots.colour, dots.name, "thread"))
  parts += [_curve(line, float, y, marked=False) for line in lines]
  parts += _end_names(lines, float, y)
  return svg(HEIGHT, alt, parts)


def svg(height: float, alt: str, parts: Sequence[Markup]) -> Markup:
  """Returns an SVG picture that says what it shows."""
  box = f"0 0 {WIDTH} {number(height)}"
  return element("svg", *parts, viewBox=box, role="img", aria_label=alt)


def ticks(top: float, count: int, bottom: float = 0) -> list[float]:
  """Returns round numbers within `bottom` and `top`, about `count` of them."""
  span = top - bottom
  if not span > 0:
    return [float(bottom)]
  power = 10 ** np.floor(np.log10(span / count))
  step = next(s * power for s in (1, 2, 5, 10) if span / (s * power) <= count)
  first = int(np.ceil(bottom / step - 1e-6))
  return [float(step * i) for i in range(first, int(np.floor(top / step + 1e-6)) + 1)]


def number(value: float) -> str:
  """Returns a place in a picture, to a tenth of a pixel."""
  return f"{value:.1f}".removesuffix(".0")


def _scale(low: float, high: float, start: float, stop: float) -> Scale:
  return lambda value: start + (value - low) / (high - low) * (stop - start)


def _y_axis(y: Scale, ends: tuple[float, float], title: str, right: float) -> Markup:
  """Returns the title above, and a rule across for each round value."""
  bottom, top = ends
  parts = [_text(2, 14, title, "start")]
  for value in ticks(top, 6, bottom):
    height = number(y(value))
    across = {"x1": LEFT, "x2": number(right), "y1": height, "y2": height}
    parts.append(element("line", class_="zero" if value == 0 else "grid", **across))
    parts.append(_text(LEFT - 7, y(value) + 4, _tick(value), "end"))
  return join(parts)


def _tick(value: float) -> str:
  """Returns a number that fits beside the axis, such as "0.5" or "2.5e4"."""
  large = abs(value) >= 1e4
  written = f"{value:.1e}".replace(".0e", "e") if large else f"{value:g}"
  return written.replace("e+0", "e").replace("e+", "e").replace("-", MINUS)


def _rule(x: float) -> Markup:
  place = number(x)
  return element("line", class_="mark", x1=place, x2=place, y1=TOP, y2=HEIGHT - BOTTOM)


def _text(x: float, y: float, content: str, anchor: str) -> Markup:
  return element("text", content, x=number(x), y=number(y), text_anchor=anchor)


def _band(line: Line, x: Scale, y: Scale) -> Markup:
  if line.sem is None or len(line.x) < 2:
    return Markup()
  upper = _points(line.x, line.y + line.sem, x, y)
  lower = _points(line.x[::-1], (line.y - line.sem)[::-1], x, y)
  style = f"fill:{line.colour}"
  return element("polygon", class_="band", points=f"{upper} {lower}", style=style)


def _curve(line: Line, x: Scale, y: Scale, marked: bool) -> Markup:
  stroke, fill = f"stroke:{line.colour}", f"fill:{line.colour}"
  points = _points(line.x, line.y, x, y)
  parts = [element("polyline", class_=line.class_, points=points, style=stroke)]
  marked = marked and line.class_ == "line" and len(line.x) <= MAX_MARKERS
  if marked or len(line.x) == 1:  # a line of one point is invisible
    for point in points.split():
      cx, cy = point.split(",")
      parts.append(element("circle", cx=cx, cy=cy, r=2.4, style=fill))
  return join(parts)


def _dot(
  dots: Dots, task: int, middle: float, y: Scale, radius: float, named: bool
) -> Markup:
  value, place = float(dots.y[task]), number(middle)
  upper = y(value) - radius
  parts = []
  if dots.sem is not None and np.isfinite(dots.sem[task]):
    error = float(dots.sem[task])
    ends = {"y1": number(y(value - error)), "y2": number(y(value + error))}
    upper = min(upper, y(value + error))
    style = f"stroke:{dots.colour}"
    parts.append(
      element("line", class_="whisker", x1=place, x2=place, style=style, **ends)
    )
  style = f"fill:{dots.colour}"
  parts.append(
    element("circle", cx=place, cy=number(y(value)), r=number(radius), style=style)
  )
  if named and dots.name:
    parts.append(_text(middle, max(upper - 3, TOP - 3), dots.name, "middle"))
  return join(parts)


def _points(xs: np.ndarray, ys: np.ndarray, x: Scale, y: Scale) -> str:
  pairs = zip(xs, ys, strict=True)
  return " ".join(f"{number(x(a))},{number(y(b))}" for a, b in pairs)


def _end_names(lines: Sequence[Line], x: Scale, y: Scale) -> list[Markup]:
  """Returns the names right of the lines' ends; none where they would not fit."""
  if len(lines) * NAME_HEIGHT > HEIGHT - BOTTOM - TOP:
    return []
  right = WIDTH - RIGHT + 7
  ends = [(x(float(line.x[-1])), y(float(line.y[-1]))) for line in lines]
  parts = []
  heights = _spread([height for _, height in ends])
  for line, end, height in zip(lines, ends, heights, strict=True):
    if right - end[0] > 2 * NEAR or abs(height - end[1]) > NEAR:
      place = {"x1": number(end[0]), "y1": number(end[1])}
      place |= {"x2": number(right - 1), "y2": number(height)}
      parts.append(element("line", class_="tie", **place))
    parts.append(_text(right, height + 4, line.name, "start"))
  return parts


def _spread(heights: Sequence[float]) -> list[float]:
  """Returns heights of names, moved apart where they would lie on each other."""
  order = np.argsort(heights, kind="stable")
  placed = np.array(heights, float)[order]
  for i in range(1, len(placed)):
    placed[i] = max(placed[i], placed[i - 1] + NAME_HEIGHT)
  limit: float = HEIGHT - BOTTOM
  for i in reversed(range(len(placed))):
    placed[i] = min(placed[i], limit)
    limit = placed[i] - NAME_HEIGHT
  out = np.empty(len(placed))
  out[order] = placed
  return out.tolist()
