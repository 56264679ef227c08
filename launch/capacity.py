"""Draws the curves of the capacity study: training accuracy against number of images.

Every point is a run of configs/capacity.py in a folder of its own; what has finished is
only read, and what broke off goes on, so the same command can be given again, or with
more sizes. After each point capacity.csv, capacity.json, capacity.svg and capacity.png
are written anew.

  python -m launch.capacity --images 10000 30000 100000 --models small medium
  python -m launch.capacity --images 1000 --config.stream.iterations=2000
"""

import argparse
import csv
import io
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from ml_collections import ConfigDict

from ebmjax import atomic, cli
from ebmjax.errors import ConfigError, UserError
from ebmjax.report import drawing

if TYPE_CHECKING:
  from matplotlib.axes import Axes
  from matplotlib.figure import Figure

CONFIG = Path(__file__).parents[1] / "configs" / "capacity.py"
NETWORKS = ("ebm", "sbc")
MODELS = ("small", "medium", "large")
COLOURS = {"ebm": drawing.PALETTE[0], "sbc": drawing.PALETTE[5]}
LINES = {"small": ("-", "o"), "medium": ("--", "s"), "large": (":", "^")}
COLUMNS = (
  *("network", "model", "hidden", "parameters", "images", "iterations", "batch_size"),
  *("learning_rate", "seeds", "accuracy", "sem"),
)


class Point(NamedTuple):
  """One run of the study, before it is made."""

  network: str
  model: str
  images: int
  config: ConfigDict
  workdir: Path


def main(argv: Sequence[str]) -> int:
  """Returns the exit code of the command line `argv`, the program's name included."""
  logging.basicConfig(format="%(message)s", stream=sys.stderr)
  logging.getLogger("ebmjax").setLevel(logging.INFO)
  try:
    arguments, rest = _parser().parse_known_args(argv[1:])
    folder = study(_points(arguments, rest), arguments.workdir)
  except UserError as error:
    print(f"capacity: {error}", file=sys.stderr)
    return 1
  except KeyboardInterrupt:
    print(
      "capacity: interrupted; the same command goes on from the last checkpoint.",
      file=sys.stderr,
    )
    return 130
  print(f"Tables and figures: {folder}")
  return 0


def study(points: Sequence[Point], folder: Path) -> Path:
  """Returns the folder, after running every point and writing the study's files."""
  # Later imports: --help and a mistyped key should not wait for JAX.
  from ebmjax import experiment
  from ebmjax.main import use_compilation_cache
  from ebmjax.validation import resolve

  for point in points:  # what is wrong with the last is told before the first runs
    resolve(point.config)
  use_compilation_cache()
  found = []
  for point in points:
    found.append(_describe(point, experiment.run(point.config, point.workdir)))
    print(_told(found[-1]), flush=True)
    write(folder, found)
  return folder


def write(folder: Path, found: Sequence[dict[str, Any]]) -> None:
  """Writes what was found, a mapping a point, as tables and figures."""
  figure = draw(found)
  atomic.write(folder / "capacity.csv", _csv(found))
  atomic.write(folder / "capacity.json", json.dumps({"points": found}, indent=2) + "\n")
  atomic.write(folder / "capacity.svg", drawing.svg(figure))
  atomic.write(folder / "capacity.png", drawing.png(figure))


def draw(found: Sequence[dict[str, Any]]) -> "Figure":
  """Returns the curves: a colour a network, a kind of line a size of model."""
  figure, axes = drawing.new_figure(8.0, 4.8)
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
  columns = len({point["network"] for point in found})  # one a network
  figure.legend(
    loc="outside lower center", ncols=columns, frameon=False, handlelength=3.5
  )
  return figure


def _curve(
  axes: "Axes", network: str, model: str, found: Sequence[dict[str, Any]]
) -> None:
  """Draws the points of one network and model, if there are any, by their images."""
  mine = [p for p in found if (p["network"], p["model"]) == (network, model)]
  mine.sort(key=lambda point: point["images"])
  if not mine:
    return
  line, marker = LINES[model]
  drawing.mean_line(
    axes,
    np.array([point["images"] for point in mine]),
    np.array([point["per_seed"] for point in mine]),
    color=COLOURS[network],
    linestyle=line,
    marker=marker,
    markersize=6,
    # Open marks, so that the networks are told apart without colours too.
    markerfacecolor=COLOURS[network] if network == "ebm" else "white",
    label=f"{network.upper()} {model}, {mine[0]['parameters'] / 1e6:.1f} M parameters",
  )


def _images_axis(axes: "Axes", sizes: list[int]) -> None:
  """Makes the x axis count images, with a tick at each size that has the room."""
  shown = sizes[:1]
  for size in sizes:
    if size > 1.3 * shown[-1]:
      shown.append(size)
  axes.set_xlim(sizes[0] / 1.2, sizes[-1] * 1.2)
  axes.set_xticks(shown, [f"{size:,}" for size in shown])
  axes.minorticks_off()
  axes.set_xlabel("number of images")


def _describe(point: Point, results: dict[str, Any]) -> dict[str, Any]:
  """Returns what the tables say of a finished run; accuracies are percentages."""
  config = results["config"]
  return {
    "network": point.network,
    "model": point.model,
    "hidden": config["network"]["hidden"],
    "parameters": results["facts"]["parameters"],
    "images": point.images,
    "iterations": config["stream"]["iterations"],
    "batch_size": config["stream"]["batch_size"],
    "learning_rate": config["optimiser"]["learning_rate"],
    "seeds": results["seeds"],
    "accuracy": results["average_accuracy"]["mean"],
    "sem": results["average_accuracy"]["sem"],
    "per_seed": results["per_seed"],
    "data_source": results["facts"]["data_source"],
    "workdir": point.workdir.name,
  }


def _told(found: dict[str, Any]) -> str:
  return (
    f"{found['network'].upper()} {found['model']}, {found['images']:,} images: "
    f"{found['accuracy']:.2f} % training accuracy"
  )


def _csv(found: Sequence[dict[str, Any]]) -> str:
  """Returns a line a point; its seeds are their number."""
  buffer = io.StringIO()
  writer = csv.DictWriter(buffer, COLUMNS, extrasaction="ignore", lineterminator="\n")
  writer.writeheader()
  writer.writerows(point | {"seeds": len(point["seeds"])} for point in found)
  return buffer.getvalue()


def _points(arguments: argparse.Namespace, rest: list[str]) -> list[Point]:
  """Returns the runs asked for, small ones first; `rest` are changes of keys."""
  for argument in rest:
    if not argument.startswith(("--config.", "-config.")):
      raise ConfigError(f"the argument {argument!r} is not known; see --help.")
  points = []
  for model in MODELS:
    for images in sorted(set(arguments.images)):
      for network in NETWORKS:
        if model in arguments.models and network in arguments.networks:
          config = _config(network, model, images, rest)
          workdir = arguments.workdir / f"{network}-{model}-{images}"
          points.append(Point(network, model, images, config, workdir))
  return points


def _config(network: str, model: str, images: int, rest: list[str]) -> ConfigDict:
  variants = [name for name in (network, model) if name in ("sbc", "medium", "large")]
  chosen = f"--config={CONFIG}:{','.join(variants)}"
  return cli.parse(["capacity", chosen, *rest, f"--config.data.images={images}"])[0]


class _Parser(argparse.ArgumentParser):
  """A parser whose complaints are errors of ours, told in one sentence."""

  def error(self, message: str) -> NoReturn:
    raise ConfigError(f"{message}; see --help.")


def _parser() -> argparse.ArgumentParser:
  parser = _Parser(
    prog="capacity",
    description=__doc__,
    usage="python -m launch.capacity [flags] [--config.KEY=VALUE ...]",
    epilog="--config.KEY=VALUE changes a key of every run, such as --config.seeds=3;\n"
    "python -m ebmjax.main --config=configs/capacity.py --help lists them all.",
    formatter_class=argparse.RawDescriptionHelpFormatter,
    allow_abbrev=False,
  )
  add = parser.add_argument
  several: dict[str, Any] = {"nargs": "+", "metavar": ("FIRST", "MORE")}
  sizes, models = [10_000, 30_000, 100_000], ["small", "medium"]
  told = "numbers of images (10000 30000 100000)"
  add("--images", type=int, default=sizes, help=told, **several)
  told = "small: 512 units, medium: 1024, large: 4096 (small medium)"
  add("--models", choices=MODELS, default=models, help=told, **several)
  add("--networks", choices=NETWORKS, default=NETWORKS, help="(ebm sbc)", **several)
  folder = Path("runs") / "capacity"
  add("--workdir", type=Path, default=folder, help="the study's folder (%(default)s)")
  return parser


if __name__ == "__main__":
  sys.exit(main(sys.argv))
