"""The capacity study's curves: training accuracy against the number of images."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ebmjax import metrics
from ebmjax.paper.commands import PROBLEM
from ebmjax.paper.figures.panels import COLOURS
from ebmjax.paper.figures.spec import FigureSpec, Role, Runs, config_file
from ebmjax.report import plotting

if TYPE_CHECKING:
  from matplotlib.axes import Axes
  from matplotlib.figure import Figure

NETWORKS = ("ebm", "sbc")
MODELS = {"small": 512, "medium": 1024, "large": 4096}  # units of the hidden layer
LINES = {"small": ("-", "o"), "medium": ("--", "s"), "large": (":", "^")}


def describe(model: str, results: Mapping[str, Any]) -> dict[str, Any]:
  """Describes a finished run as a point of the curves; accuracies are percentages."""
  config = results["config"]
  return _point(model, config, results["seeds"], results["per_seed"]) | {
    "parameters": results["facts"]["parameters"],
    "iterations": config["stream"]["iterations"],
    "batch_size": config["stream"]["batch_size"],
    "learning_rate": config["optimiser"]["learning_rate"],
    "accuracy": results["average_accuracy"]["mean"],
    "sem": results["average_accuracy"]["sem"],
    "data_source": results["facts"]["data_source"],
  }


def curves(
  found: Sequence[Mapping[str, Any]], size: tuple[float, float] = (8.0, 4.8)
) -> "Figure":
  """Draws the curves of points: one colour per network, one line style per model size.

  A point has at least network, model, hidden, images, seeds and per_seed.
  """
  figure, axes = plotting.new_figure(*size)
  axes.set_xscale("log")
  for network in NETWORKS:
    for model in MODELS:
      _curve(axes, network, model, found)
  axes.axhline(10, color="0.6", linewidth=0.8, zorder=0)
  edge = axes.get_yaxis_transform()  # x from 0 to 1 along the axis, y in percent
  axes.text(0.01, 9, "chance", color="0.4", fontsize=8, va="top", transform=edge)
  _images_axis(axes, sorted({point["images"] for point in found}))
  axes.set(ylabel="training accuracy (%)", ylim=(-3, 103))
  band = "; band: SEM over seeds" if any(len(p["seeds"]) > 1 for p in found) else ""
  axes.set_title(f"Random labels learned by heart{band}")
  columns = len({point["network"] for point in found})  # one per network
  figure.legend(
    loc="outside lower center", ncols=columns, frameon=False, handlelength=3.5
  )
  return figure


def from_runs(runs: Runs) -> "Figure":
  """Draws the curves of the runs that exist."""
  points = [
    _point(name.split()[1], run.config, run.history.seeds, run.per_seed)
    for name, found in runs.items()
    for run in found
  ]
  return curves(points, size=(5.5, 3.8))


def _point(
  model: str, config: Mapping[str, Any], seeds: Sequence[int], per_seed: Any
) -> dict[str, Any]:
  """Returns the part of a point that is drawn."""
  return {
    "network": config["network"]["name"].removesuffix("_capacity"),
    "model": model,
    "hidden": config["network"]["hidden"],
    "images": config["data"]["images"],
    "seeds": seeds,
    "per_seed": per_seed,
  }


def _curve(
  axes: "Axes", network: str, model: str, found: Sequence[Mapping[str, Any]]
) -> None:
  """Draws the points of one network and model, if any, by number of images."""
  mine = [p for p in found if (p["network"], p["model"]) == (network, model)]
  mine.sort(key=lambda point: point["images"])
  if not mine:
    return
  images = [point["images"] for point in mine]
  known = [metrics.mean_sem(np.array(point["per_seed"])) for point in mine]
  means = np.array([point.mean for point in known])
  sems = np.array([point.sem or 0.0 for point in known])  # one seed: no band
  line, marker = LINES[model]
  colour = COLOURS[network.upper()]
  axes.plot(
    images,
    means,
    color=colour,
    linestyle=line,
    marker=marker,
    markersize=6,
    # Open marks, to distinguish the networks without colours too.
    markerfacecolor=colour if network == "ebm" else "white",
    label=f"{network.upper()} {model}, {mine[0]['hidden']:,} units",
  )
  if sems.any():
    axes.fill_between(
      images, means - sems, means + sems, color=colour, alpha=0.2, linewidth=0
    )


def _images_axis(axes: "Axes", sizes: list[int]) -> None:
  """Makes the x axis count images, with a tick at each size that has room for it."""
  low, high = sizes[0] / 1.2, sizes[-1] * 1.2
  room = (high / low) ** 0.12  # a number takes an eighth of the axis
  shown = sizes[:1]
  for size in sizes:
    if size > room * shown[-1]:
      shown.append(size)
  axes.set_xlim(low, high)
  axes.set_xticks(shown, [f"{size:,}" for size in shown])
  axes.minorticks_off()
  axes.set_xlabel("number of images")


def _role(network: str, model: str) -> Role:
  variants = [name for name in (model, network) if name not in ("small", "ebm")]
  return Role(
    name=f"{network.upper()} {model}",
    description=f"the {model} {network.upper()} of the capacity study",
    command=config_file("capacity", ",".join(variants)),
    make=f"python -m ebmjax capacity --networks {network} --models {model}",
    folder="capacity",
    split_by="data.images",
    keys=(*PROBLEM, "objective", "network.hidden"),
  )


SPEC = FigureSpec(
  title="Model capacity",
  caption="Accuracy on the training images, which are generated and have random "
  "labels, against their number, for the energy-based model (EBM) and the "
  "softmax-based classifier (SBC) of three sizes. Mean over seeds, band of one SEM.",
  roles=tuple(_role(network, model) for model in MODELS for network in NETWORKS),
  draw=from_runs,
  needs="final",
  allow_missing=True,
)
