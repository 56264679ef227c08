"""Accuracy against what it costs: training FLOPs, and bytes kept between tasks."""

from typing import TYPE_CHECKING, Any, NamedTuple

from ebmjax import methods, metrics
from ebmjax.paper.cells import Cell, every_cell
from ebmjax.paper.figures.panels import COLOURS, open_frame, panels
from ebmjax.paper.figures.spec import FigureSpec, Role, Run, Runs
from ebmjax.paper.replay_free import DATASETS, name_of
from ebmjax.report import plotting

if TYPE_CHECKING:
  from matplotlib.axes import Axes
  from matplotlib.figure import Figure

SHOWN = {"split_mnist": "mnist", "cifar100": "cifar100"}  # benchmark -> data.name
COSTS = ("training_flops", "bytes_kept")  # from left to right
_SOFTMAX = ("SBC", "labels trick")
_MARKERS = "osD^vP*Xp<>h"
_LEAST = 1e4  # bytes; below it the scale is linear, so that 0 has a place


class Group(NamedTuple):
  """Methods of one colour."""

  colour: str
  names: dict[str, Cell]  # by name of the method; of one benchmark


def groups(dataset: str) -> list[Group]:
  """Returns the methods of a benchmark, each with the cell that measures it."""
  cells = [cell for cell in every_cell() if cell.dataset == dataset]
  free = {name: cell for cell in cells if (name := name_of(cell))}
  kinds = {
    table: {
      _title(cell): cell for cell in cells if cell.table == table and not name_of(cell)
    }
    for table in ("boundary_aware_no_replay", "boundary_aware_replay")
  }
  energies = {k: v for k, v in free.items() if k.startswith("EBM")}
  softmax = {k: v for k, v in free.items() if k in _SOFTMAX}
  rest = {k: v for k, v in free.items() if k not in energies | softmax}
  return [
    Group(COLOURS["EBM"], energies),
    Group(plotting.PALETTE[2], rest),
    Group(COLOURS["SBC"], softmax | kinds["boundary_aware_no_replay"]),
    Group(plotting.PALETTE[1], kinds["boundary_aware_replay"]),
  ]


def cost(runs: Runs) -> "Figure":
  """Draws one point per method and one row of panels per benchmark."""
  figure, axes = panels(len(SHOWN), len(COSTS), 5.2, sharey="row")
  handles: dict[str, Any] = {}
  for row, dataset in zip(axes, SHOWN, strict=True):
    for group in groups(dataset):
      for position, name in enumerate(group.names):
        style = {"color": group.colour, "marker": _MARKERS[position % len(_MARKERS)]}
        for run in runs[role_name(name, dataset)]:
          if run.budget:
            handles[name] = _points(row, run, run.budget, {"label": name, **style})
    row[0].set(ylabel=f"{DATASETS[dataset]}: accuracy (%)")
    row[0].set_ylim(bottom=0)
    flops, kept = row
    flops.set(xlabel="training (FLOP)", xscale="log")
    kept.set_xscale("symlog", linthresh=_LEAST)
    kept.set(xlabel="kept between tasks (bytes)", xlim=(-_LEAST / 5, 3e8))
    for each in row:
      open_frame(each)
  figure.legend(
    handles=list(handles.values()), frameon=False, loc="outside right center"
  )
  return figure


def role_name(name: str, dataset: str) -> str:
  return f"{name}, {DATASETS[dataset]}"


def _points(
  row: "list[Axes]", run: Run, budget: dict[str, int], style: dict[str, Any]
) -> Any:
  """Draws a run into each panel of its benchmark; returns a handle for the legend."""
  found = metrics.mean_sem(run.per_seed)
  options = {"linestyle": "", "markersize": 5, **style}
  drawn = [
    axes.errorbar(budget[key], found.mean, found.sem or 0.0, **options)
    for axes, key in zip(row, COSTS, strict=True)
  ]
  return drawn[0]


def _title(cell: Cell) -> str:
  """Returns a baseline's title; on the energy network the title says so."""
  title = methods.find(cell.row.removeprefix("sbc_").removeprefix("ebm_")).title
  return f"{title} on the EBM" if cell.row.startswith("ebm_") else title


def _roles() -> tuple[Role, ...]:
  return tuple(
    Role(
      name=role_name(name, dataset),
      description=f"{name} on {DATASETS[dataset]}",
      command={data: cell.command},  # the ledger's rows alone are drawn
      split_by="data.name",
    )
    for dataset, data in SHOWN.items()
    for group in groups(dataset)
    for name, cell in group.names.items()
  )


SPEC = FigureSpec(
  title="Accuracy against training FLOPs and bytes kept",
  caption="Class-incremental test accuracy at the end against the FLOPs of training a "
  "seed, and against the bytes that a method carries from task to task beside its "
  "network; split MNIST and CIFAR-100 over the frozen trunk. Blue: the paper's energy "
  "network; green: energies that learn each class by itself; red: one softmax network, "
  "plain or regularised; orange: replay. Mean over seeds, bars of one SEM.",
  roles=_roles(),
  draw=cost,
  needs="final",
  allow_missing=True,
)
