"""The pictures of the page of concepts, drawn by the library's own functions."""

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

from ebmjax import negatives, streams
from ebmjax.config import default, with_settings
from ebmjax.report import plotting
from ebmjax.streams.schedules import task_weights
from ebmjax.types import make_batch

BLUE, ORANGE = plotting.PALETTE[:2]
SOFT, RULE = plotting.SOFT, plotting.RULE
_PIXELS = 105  # an inch of a figure on the page


class Picture:
  """A figure that a page shows in its own colours, light or dark.

  Figures are at most 4.2 inches wide, which a phone shows in a legible size.
  """

  def __init__(self, name: str, figure: Figure, alt: str) -> None:
    drawn = plotting.inline_svg(figure, name, alt)
    width = f"--width: {_PIXELS * figure.get_figwidth():.0f}px"
    self._html = f'<figure class="picture" style="{width}">{drawn}</figure>'

  def _repr_html_(self) -> str:
    return self._html


def energies() -> Picture:
  """An input and a label go in, an energy comes out; the lowest seen label wins."""
  with plotting.style():
    figure, axes = plotting.new_panels(4.2, 4.4, 2, 1)
    _network(axes[0, 0])
    _bars(axes[1, 0])
  text = "Above: features of the input times the gate of the label give the energy. "
  return Picture("energies", figure, text + "Below: the energies of six labels.")


def objectives() -> Picture:
  """The loss of a pair against the gap of its energies."""
  gap = np.linspace(-4, 4, 81)
  with plotting.style():
    figure, axes = plotting.new_figure(4.2, 2.2)
    axes.plot(gap, np.log1p(np.exp(gap)), color=BLUE, label="contrastive")
    axes.plot(gap, gap, color=ORANGE, ls="--", label="difference")
    axes.axvline(0, color=RULE, linewidth=0.8, zorder=0)
    axes.axhline(0, color=RULE, linewidth=0.8, zorder=0)
    axes.set(xlabel="E(x, y) - E(x, y'), y' the negative", ylabel="loss")
    axes.legend()
  return Picture("objectives", figure, "The loss of a pair against its energies' gap.")


def candidates() -> Picture:
  """Which labels three rows are scored with, as the functions themselves draw them."""
  y = np.array([0, 2, 3, 3])
  task, seen = np.isin(np.arange(6), (0, 1, 2, 3)), np.arange(6) < 4
  batch = make_batch(None, y, seen, task_classes=task)
  names = ("one_of_task", "one_of_batch", "all_of_batch", "all_seen", "all_classes")
  with plotting.style():
    figure, axes = plotting.new_panels(4.2, 3.2, 2, 3)
    axes[1, 2].axis("off")
    for axis, name in zip(axes.flat, names, strict=False):
      drawn = negatives.NEGATIVES[name](jax.random.key(1), batch)
      _cells(axis, _kinds(len(y), 6, *map(np.asarray, drawn)))
      axis.set_title(name, fontsize=8, family="monospace")
      _count(axis, len(y), 6)
      axis.set_xlabel("label", fontsize=8)
    for axis in axes[:, 0]:
      axis.set_ylabel("row of the batch", fontsize=8)
  text = "Four rows of the labels 0, 2, 3, 3; blue: the true label, orange: negatives."
  return Picture("negatives", figure, text)


def settings(tasks: int = 4, steps: int = 400) -> Picture:
  """The share of each task in the batches over training."""
  at = np.arange(steps)
  aware = np.stack([(at * tasks // steps == task) for task in range(tasks)], 1)
  shares = {
    "boundary_aware": aware.astype(float),
    "boundary_free": task_weights(steps, tasks),
    "joint": np.full((steps, tasks), 1 / tasks),
  }
  with plotting.style():
    figure, axes = plotting.new_panels(4.2, 1.6, 1, 3, sharey=True)
    for axis, (name, share) in zip(axes[0], shares.items(), strict=True):
      colours = plotting.line_colours(tasks)
      axis.stackplot(at, share.T, colors=colours, alpha=0.85, linewidth=0)
      axis.set_title(name, fontsize=8, family="monospace")
      axis.set(xticks=[], yticks=(0, 1), xlim=(0, steps - 1))
      axis.set_xlabel("training step", fontsize=8)
    axes[0, 0].set_ylabel("share of the batch", fontsize=8)
  return Picture("settings", figure, "Shares of four tasks over training.")


def scenarios() -> Picture:
  """Which outputs exist, and which compete for an image of the second task."""
  names = ("class", "domain", "task")
  with plotting.style():
    figure, axes = plotting.new_panels(4.2, 1.6, 1, 3)
    for axis, name in zip(axes[0], names, strict=True):
      spec = with_settings(default(), {"stream.scenario": name, "stream.tasks": 3})
      found = streams.make_tasks(spec.stream, num_raw=6, seed=0)
      _outputs(axis, name, found.labels, found.classes)
    axes[0, 0].set_ylabel("task", fontsize=8)
  text = "Rows: three tasks of two classes. Columns: the network's labels. "
  return Picture("scenarios", figure, text + "Blue: the labels that may be predicted.")


def matrix() -> Picture:
  """An accuracy matrix, as it could come out."""
  found = np.array([[98, np.nan, np.nan], [71, 97, np.nan], [52, 66, 96.0]])
  with plotting.style():
    drawn = plotting.heat_map(
      found,
      *[["1", "2", "3"]] * 2,
      titles=("after task i", "accuracy on task j"),
      scale="accuracy (%)",
      top=100,
    )
    drawn.set_size_inches(3.4, 2.6)
  return Picture("matrix", drawn, "A matrix of accuracies of three tasks.")


def _network(axes: Axes) -> None:
  axes.set(xlim=(0, 10), ylim=(0, 6))
  axes.axis("off")
  for x, y, text in (
    (0.2, 4, "input x"),
    (0.2, 1, "label y"),
    (3.3, 4, "features f(x)"),
    (3.3, 1, "gate s(y)"),
  ):
    _box(axes, x, y, 2.4, text)
  _box(axes, 7.3, 2.5, 2.4, "E(x, y)", BLUE)
  for start, end in (
    ((2.6, 4.5), (3.3, 4.5)),
    ((2.6, 1.5), (3.3, 1.5)),
    ((5.7, 4.4), (7.2, 3.3)),
    ((5.7, 1.6), (7.2, 2.7)),
  ):
    arrow = {"arrowstyle": "->", "color": SOFT}
    axes.annotate("", xy=end, xytext=start, arrowprops=arrow)
  axes.text(6.15, 3.0, "times", ha="center", va="center", fontsize=8, color=SOFT)


def _box(axes: Axes, x: float, y: float, width: float, text: str, edge=SOFT) -> None:
  style = {"boxstyle": "round,pad=0.05", "facecolor": "none", "edgecolor": edge}
  axes.add_patch(FancyBboxPatch((x, y), width, 1, **style))
  axes.text(x + width / 2, y + 0.5, text, ha="center", va="center", fontsize=8)


def _bars(axes: Axes) -> None:
  values = np.array([1.9, 0.4, 1.3, 2.2, 1.0, 0.1])
  colours = [SOFT, BLUE, SOFT, SOFT, RULE, RULE]
  axes.bar(range(6), values, color=colours, width=0.7)
  axes.set(xlabel="label y", ylabel="E(x, y)", yticks=[], ylim=(0, 2.6))
  axes.text(1, 0.5, "predicted", ha="center", fontsize=8)
  axes.text(4.5, 1.1, "not seen yet", ha="center", fontsize=8, color=SOFT)


def _kinds(rows: int, classes: int, labels: np.ndarray, valid: np.ndarray):
  """Returns [rows, classes]: 1 where a label is the true one, 2 a negative, else 0."""
  kinds = np.zeros((rows, classes), int)
  for row in range(rows):
    kinds[row, labels[row][valid[row]]] = 2
    kinds[row, labels[row, 0]] = 1
  return kinds


def _cells(axes: Axes, kinds: np.ndarray) -> None:
  fills = ("none", BLUE, ORANGE)
  for row, column in np.ndindex(*kinds.shape):
    kind = kinds[row, column]
    corner = (column - 0.45, row - 0.45)
    style = {"facecolor": fills[kind], "edgecolor": SOFT, "linewidth": 0.5}
    axes.add_patch(Rectangle(corner, 0.9, 0.9, **style))


def _count(axes: Axes, rows: int, columns: int) -> None:
  axes.set(xlim=(-0.6, columns - 0.4), ylim=(rows - 0.4, -0.6))
  axes.set(xticks=range(columns), yticks=range(rows), aspect="equal")
  axes.tick_params(length=0, labelsize=7)
  axes.spines[:].set_visible(False)


def _outputs(axes: Axes, name: str, labels: np.ndarray, classes: np.ndarray) -> None:
  """Draws the raw classes of each task on the labels that they have."""
  tasks, outputs = classes.shape
  kinds = np.zeros((tasks, outputs), int)  # of an image of task 2, at the end of it
  kinds[1] = classes[:2].any(axis=0) if name == "class" else classes[1]
  _cells(axes, kinds)
  for task, raw in np.argwhere(labels >= 0):
    axes.text(labels[task, raw], task, str(raw), ha="center", va="center", fontsize=8)
  _count(axes, tasks, outputs)
  axes.set_yticks(range(tasks), [str(task + 1) for task in range(tasks)])
  axes.set_title(name, fontsize=8, family="monospace")
  axes.set_xlabel("label", fontsize=8)
