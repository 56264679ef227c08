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
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from ebmjax.config import loading
from ebmjax.errors import ConfigError
from ebmjax.paper.figures import capacity as curves
from ebmjax.paper.figures.capacity import MODELS, NETWORKS
from ebmjax.report import drawing
from ebmjax.runtime import atomic, failures
from ebmjax.runtime.terminal import Parser, answer, place

CONFIG = Path(__file__).parents[1] / "configs" / "capacity.py"
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

  def work() -> int:
    arguments, rest = _parser().parse_known_args(argv[1:])
    folder = study(_points(arguments, rest), arguments.workdir)
    print(f"Tables and figures: {folder}")
    return 0

  return answer("capacity", work)


def study(points: Sequence[Point], folder: Path) -> Path:
  """Returns the folder, after running every point and writing the study's files."""
  # Later imports: --help and a mistyped key should not wait for JAX.
  from ebmjax import experiment
  from ebmjax.config.validation import resolve
  from ebmjax.main import require_device, use_compilation_cache

  for point in points:  # what is wrong with the last is told before the first runs
    resolve(point.config)
  use_compilation_cache()
  require_device()
  found = []
  for point in points:
    results = experiment.run(point.config, point.workdir)
    name = {"workdir": point.workdir.name}
    found.append(curves.describe(point.model, results) | name)
    print(_told(found[-1]), flush=True)
    write(folder, found)
  return folder


def write(folder: Path, found: Sequence[dict[str, Any]]) -> None:
  """Writes what was found, a mapping a point, as tables and figures."""
  figure = curves.curves(found)
  text = json.dumps({"points": found}, indent=2)
  with failures.writing(folder):
    atomic.write(folder / "capacity.csv", _csv(found))
    atomic.write(folder / "capacity.json", f"{text}\n")
    atomic.write(folder / "capacity.svg", drawing.svg(figure))
    atomic.write(folder / "capacity.png", drawing.png(figure))


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
  return loading.parse(["capacity", chosen, *rest, f"--config.data.images={images}"])[0]


def _parser() -> argparse.ArgumentParser:
  parser = Parser(
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
  add("--workdir", type=place, default=folder, help="the study's folder (%(default)s)")
  return parser


if __name__ == "__main__":
  sys.exit(main(sys.argv))
