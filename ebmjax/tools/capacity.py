"""Runs the capacity study and draws its curves: training accuracy by number of images.

Every point is a run of configs/capacity.py in a folder of its own. You can give the
same command again, or with more sizes: finished points are read and interrupted ones
resume. After each point, capacity.csv, capacity.json, capacity.svg and capacity.png are
updated.

  ebmjax capacity --images 10000 30000 100000 --models small medium
  ebmjax capacity --images 1000 --config.stream.iterations=2000
"""

import argparse
import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from ebmjax import experiment
from ebmjax.config import loading
from ebmjax.config.validation import resolve
from ebmjax.main import require_device
from ebmjax.paper.figures import capacity as curves
from ebmjax.paper.figures.capacity import MODELS, NETWORKS
from ebmjax.paths import expand
from ebmjax.report import plotting
from ebmjax.runtime import atomic, failures
from ebmjax.runtime.console import show_messages
from ebmjax.runtime.tabular import csv_text
from ebmjax.runtime.terminal import Parser, run_cli

CONFIG = loading.root() / "configs" / "capacity.py"
COLUMNS = (
  *("network", "model", "hidden", "parameters", "images", "iterations", "batch_size"),
  *("learning_rate", "seeds", "accuracy", "sem"),
)


class Point(NamedTuple):
  """One run of the study that is yet to be made."""

  model: str
  config: ConfigDict
  workdir: Path


def main(arguments: Sequence[str]) -> int:
  """Runs the study of the command line and returns the exit code."""
  show_messages()

  def work() -> int:
    given, rest = _parser().parse_known_args(arguments)
    folder = study(_points(given, rest), given.out)
    print(f"Tables and figures: {folder}")
    return 0

  return run_cli("capacity", work)


def study(points: Sequence[Point], folder: Path) -> Path:
  """Runs every point, writes the study's files and returns their folder."""
  for point in points:  # finds a mistake in the last before the first one runs
    resolve(point.config)
  require_device()
  found = []
  for point in points:
    results = experiment.run(point.config, point.workdir)
    made = curves.describe(point.model, results) | {"workdir": point.workdir.name}
    found.append(made)
    print(
      f"{made['network'].upper()} {made['model']}, {made['images']:,} images: "
      f"{made['accuracy']:.2f} % training accuracy",
      flush=True,
    )
    write(folder, found)
  return folder


def write(folder: Path, found: Sequence[dict[str, Any]]) -> None:
  """Writes the results, one mapping for each point, as tables and figures."""
  figure = curves.curves(found)
  points = (point | {"seeds": len(point["seeds"])} for point in found)
  rows = [[point[name] for name in COLUMNS] for point in points]
  with failures.explain_write_errors(folder):
    atomic.write(folder / "capacity.csv", csv_text(COLUMNS, rows))
    atomic.write(
      folder / "capacity.json", json.dumps({"points": found}, indent=2) + "\n"
    )
    atomic.write(folder / "capacity.svg", plotting.svg(figure))
    atomic.write(folder / "capacity.png", plotting.png(figure))


def _points(given: argparse.Namespace, rest: list[str]) -> list[Point]:
  """Lists the runs of the study, small ones first; `rest` are changes of keys."""
  loading.require_overrides(rest)
  every = product(MODELS, sorted(set(given.images)), NETWORKS)
  return [
    Point(
      model,
      _config(network, model, images, rest),
      given.out / f"{network}-{model}-{images}",
    )
    for model, images, network in every
    if model in given.models and network in given.networks
  ]


def _config(network: str, model: str, images: int, rest: list[str]) -> ConfigDict:
  variants = [name for name in (network, model) if name in ("sbc", "medium", "large")]
  chosen = f"--config={CONFIG}:{','.join(variants)}"
  return loading.parse(["capacity", chosen, *rest, f"--config.data.images={images}"])[0]


def _parser() -> argparse.ArgumentParser:
  parser = Parser(
    prog="capacity",
    description=__doc__,
    usage="ebmjax capacity [flags] [--config.KEY=VALUE ...]",
    epilog="--config.KEY=VALUE changes a key of every run, such as --config.seeds=3;\n"
    "ebmjax --config=configs/capacity.py --help lists them all.",
    formatter_class=argparse.RawDescriptionHelpFormatter,
    allow_abbrev=False,
  )
  add = parser.add_argument
  several: dict[str, Any] = {"nargs": "+", "metavar": ("FIRST", "MORE")}
  sizes, models = [10_000, 30_000, 100_000], ["small", "medium"]
  text = "numbers of images (default: 10000 30000 100000)"
  add("--images", type=int, default=sizes, help=text, **several)
  text = "small: 512 units, medium: 1024, large: 4096 (default: small medium)"
  add("--models", choices=MODELS, default=models, help=text, **several)
  add(
    "--networks",
    choices=NETWORKS,
    default=NETWORKS,
    help="ebm, sbc (default: both)",
    **several,
  )
  folder = Path("runs") / "capacity"
  said = "the study's folder (default: %(default)s)"
  add("--out", "--workdir", type=expand, default=folder, metavar="DIR", help=said)
  return parser
