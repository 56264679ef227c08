"""Labels inputs with the model of a finished run, or with a saved model."""

import argparse
import os
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ebmjax.data import image_folder, npz
from ebmjax.data import labels as labelling
from ebmjax.errors import DataError, printable
from ebmjax.models import EnergyClassifier, Model, load
from ebmjax.paths import expand
from ebmjax.runtime import atomic, failures
from ebmjax.runtime.tabular import csv_text
from ebmjax.runtime.terminal import Parser, run_cli

_REMEDY = "write it again with np.savez"


class Inputs(NamedTuple):
  """The inputs to predict."""

  names: list[str]  # [N] file names or row numbers
  x: np.ndarray  # [N, ...]
  y: np.ndarray | None  # [N] labels, if they are known


def read_inputs(path: Path, *, colour: bool) -> Inputs:
  """Reads the inputs of an npz file (x, or x_test) or of a folder of images."""
  if path.is_dir():
    names, images = image_folder.read_images(path, "RGB" if colour else "L")
    return Inputs(names, images, None)
  if not path.is_file():  # reading a pipe would block forever
    raise DataError(f"{path} does not exist: give an npz file or a folder of images.")
  held = npz.names(path, _REMEDY)
  x_name, y_name = ("x", "y") if "x" in held else ("x_test", "y_test")
  wanted = [x_name, y_name] if y_name in held else [x_name]
  x, *ys = npz.read(path, wanted, _REMEDY, "x or x_test").values()
  y = labelling.check(ys[0], len(x), f"{path}[{y_name}]") if ys else None
  return Inputs([str(row) for row in range(len(x))], x, y)


def predict(
  model: Model, inputs: Inputs, reject: float | None, task: int | None
) -> tuple[str, np.ndarray]:
  """Returns a CSV table (input, label, probability) and the labels [N]."""
  labels = model.predict(inputs.x, reject, task=task)
  shares = model.predict_proba(inputs.x, task=task).max(axis=1)
  rows = zip(inputs.names, labels, (f"{share:.4f}" for share in shares), strict=True)
  return csv_text(("input", "label", "probability"), rows), labels


def main(arguments: list[str]) -> int:
  """Predicts the inputs of the command line and returns the exit code."""

  def work() -> int:
    given = _parser().parse_args(arguments)
    model = _load(given.model, given.seed)
    inputs = read_inputs(given.inputs, colour=len(model.form.shape) == 3)
    table, labels = predict(model, inputs, given.reject, given.task)
    if given.out is None:
      print(printable(table) if sys.stdout.isatty() else table, end="")
      return 0
    with failures.explain_write_errors(given.out, failures.ANOTHER):
      atomic.write(given.out, os.fsencode(table))
    print(f"{len(labels):,} labels are in {given.out}.")
    if inputs.y is not None:
      right = np.mean(labels.astype(str) == inputs.y.astype(str))
      print(f"{100 * right:.2f} % of them match the labels in {given.inputs}.")
    return 0

  return run_cli("ebmjax", work, "the same command starts again")


def _load(path: Path, seed: int | None) -> Model:
  if path.is_file():
    return EnergyClassifier.load(path, seed).model_
  return load(path, seed)


def _parser() -> argparse.ArgumentParser:
  parser = Parser("ebmjax predict", description=__doc__)
  add = parser.add_argument
  help = "the workdir of a finished run, or a file of EnergyClassifier.save"
  add("model", metavar="RUN", type=expand, help=help)
  help = "an npz file with x or x_test, or a folder of images"
  add("inputs", metavar="FILE.npz|FOLDER", type=expand, help=help)
  add("--out", type=expand, help="the CSV file to write (default: the terminal)")
  help = "one seed of the run (default: all of them, as an ensemble)"
  add("--seed", type=int, help=help)
  help = "reject inputs with a higher energy than this share of training inputs, "
  help += "such as 0.95"
  add("--reject", type=float, metavar="SHARE", help=help)
  add("--task", type=int, help="for permuted pixels: the task whose order inputs have")
  return parser


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
