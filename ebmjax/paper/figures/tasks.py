"""Accuracy against the number of tasks, CIFAR-100, ours beside the paper's."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ebmjax import metrics
from ebmjax.paper import ledger
from ebmjax.paper.cells import Cell, all_cells
from ebmjax.paper.figures.panels import COLOURS, WIDTH, open_frame
from ebmjax.paper.figures.spec import FigureSpec, Role, Run, Runs
from ebmjax.report import plotting

if TYPE_CHECKING:
  from matplotlib.axes import Axes
  from matplotlib.figure import Figure

NUMBERS = (5, 10, 20, 50)
METHODS = {  # name -> colour, marker
  "EBM": (COLOURS["EBM"], "o"),
  "LwF": (plotting.PALETTE[2], "D"),
  "SI": (plotting.PALETTE[3], "^"),
  "EWC": (plotting.PALETTE[1], "v"),
  "SBC": (COLOURS["SBC"], "s"),
}
_MARKS: dict[str, Any] = {"markersize": 4.5}
_PUBLISHED: dict[str, Any] = {
  "linestyle": "--",
  "linewidth": 0.8,
  "markerfacecolor": "white",
}
Point = tuple[int, float, float]  # tasks, accuracy and SEM in percent


def number_of_tasks(runs: Runs) -> "Figure":
  """Draws one line per method: filled markers are ours, open ones the paper's."""
  figure, axes = plotting.new_figure(0.75 * WIDTH, 3.2)
  for position, (name, (colour, marker)) in enumerate(METHODS.items()):
    # Shifted a little, because methods with similar scores would hide each other.
    shift = 0.06 * (position - (len(METHODS) - 1) / 2)
    style = _MARKS | {"color": colour, "marker": marker}
    _line(axes, published(name), shift, style | _PUBLISHED)
    _line(axes, ours(runs[name]), shift, style | {"zorder": 3, "label": name})
  axes.set_xticks(range(len(NUMBERS)), [str(number) for number in NUMBERS])
  axes.set(xlabel="number of tasks", ylabel="test accuracy at the end (%)")
  axes.set_ylim(bottom=0)
  open_frame(axes)
  figure.legend(handles=_legend(), frameon=False, loc="outside right center")
  return figure


def ours(found: tuple[Run, ...]) -> list[Point]:
  """Returns one point per number of tasks that has runs."""
  known = [(run.value, metrics.mean_sem(run.per_seed)) for run in found]
  return [(tasks, point.mean, point.sem or 0.0) for tasks, point in known]


def published(name: str) -> list[Point]:
  """Returns the paper's points of a method."""
  known = [(tasks, ledger.published(cell)) for tasks, cell in _cells(name).items()]
  return [(tasks, point.mean, point.sem or 0.0) for tasks, point in known]


def _cells(name: str) -> dict[int, Cell]:
  """Returns a method's cells of the table, by number of tasks."""
  return {
    int(cell.id.rsplit("/", 1)[1].removesuffix("_tasks")): cell
    for cell in all_cells()
    if (cell.table, cell.row) == ("number_of_tasks", name.lower())
  }


def _line(
  axes: "Axes", points: list[Point], shift: float, style: dict[str, Any]
) -> None:
  if points:
    tasks, means, sems = zip(*points, strict=True)
    places = np.array([NUMBERS.index(number) for number in tasks]) + shift
    axes.errorbar(places, means, sems, elinewidth=0.8, **style)


def _legend() -> list[Any]:
  """Returns one marker per method, and one each for ours and the paper's."""
  from matplotlib.lines import Line2D

  methods = [
    Line2D([], [], color=colour, marker=marker, ls="", label=name, **_MARKS)
    for name, (colour, marker) in METHODS.items()
  ]
  grey = _MARKS | {"color": "0.3", "marker": "o"}
  full = Line2D([], [], label="ours", **grey)
  return [*methods, full, Line2D([], [], label="paper", **grey | _PUBLISHED)]


def _role(name: str) -> Role:
  return Role(
    name=name,
    description=f"the table's {name} on CIFAR-100",
    # Only the ledger's rows are drawn beside the paper's table.
    command={tasks: cell.command for tasks, cell in _cells(name).items()},
    split_by="stream.tasks",
  )


SPEC = FigureSpec(
  title="Accuracy against the number of tasks, CIFAR-100",
  caption="Class-incremental test accuracy at the end of CIFAR-100 split into 5, 10, "
  "20 and 50 tasks. Filled markers: our runs of the table's cells, in which the "
  "baselines of 10 tasks have a protocol of their own (batches of 256 images, random "
  "order of classes); open markers: the paper's table. Mean over seeds, bars of one "
  "SEM; methods are drawn a little apart.",
  roles=tuple(_role(name) for name in METHODS),
  draw=number_of_tasks,
  needs="final",
  allow_missing=True,
)
