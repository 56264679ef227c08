"""The command line of the benchmarks."""

import argparse
import json
import sys
from pathlib import Path

from ebmjax import bench, environment
from ebmjax.bench import inference, training
from ebmjax.bench.cases import INFERENCE, TRAINING
from ebmjax.bench.measuring import Row
from ebmjax.bench.tables import table
from ebmjax.errors import UserError

_TITLES = {
  "rows": "Training, steps per second",
  "inference": "Inference, images per second",
}


def main(arguments: list[str] | None = None) -> None:
  """Runs the command line, or the arguments given."""
  given = _parse(arguments)
  try:
    figures = _measure(given)
  except UserError as error:
    sys.exit(f"ebmjax: {error}")
  for name, rows in figures.items():
    if rows:
      print(f"{_TITLES[name]}\n\n{table(rows)}\n")
  if given.out:
    content = figures | {"environment": environment.describe()}
    given.out.write_text(json.dumps(content, indent=1))


def _measure(given: argparse.Namespace) -> dict[str, list[Row]]:
  """Returns the rows of the cases asked for: of training, and of inference."""
  train = [case for case in TRAINING if given.only in case.name]
  infer = [case for case in INFERENCE if given.only in case.name]
  if not train and not infer:
    names = "; ".join(case.name for case in (*TRAINING, *INFERENCE))
    raise UserError(f"no case has {given.only!r} in its name; the names are {names}.")
  return {
    "rows": [training.measure(case, given.peer, given.rounds) for case in train],
    "inference": [inference.measure(case, given.peer, given.rounds) for case in infer],
  }


def _parse(arguments: list[str] | None) -> argparse.Namespace:
  names = "\n".join(f"  {case.name}" for case in (*TRAINING, *INFERENCE))
  parser = argparse.ArgumentParser(
    "python -m ebmjax.bench",
    description=bench.__doc__,
    epilog=f"cases:\n{names}",
    formatter_class=argparse.RawTextHelpFormatter,
  )
  parser.add_argument(
    "--peer",
    metavar="PYTHON",
    help="an interpreter that has torch, to time PyTorch in turn with ours",
  )
  parser.add_argument(
    "--rounds",
    metavar="N",
    type=_positive,
    default=7,
    help="alternating rounds, whose medians are reported (default 7)",
  )
  parser.add_argument(
    "--only",
    metavar="TEXT",
    default="",
    help="only the cases whose name contains this, of training and of inference",
  )
  parser.add_argument(
    "--out", metavar="FILE", type=Path, help="also writes the figures as JSON"
  )
  return parser.parse_args(arguments)


def _positive(text: str) -> int:
  number = int(text)
  if number < 1:
    raise argparse.ArgumentTypeError(f"{number} is too small; give 1 or more")
  return number


if __name__ == "__main__":
  main()
