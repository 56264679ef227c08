"""Measures training speed: python -m ebmjax.bench [--peer=PYTHON] [--rounds=N]

  --peer=PYTHON   an interpreter that has torch: the same mathematics as a bare PyTorch
                  step is timed in turn with ours (launch/torch_peer.py)
  --rounds=N      interleaved rounds; medians are reported (default 7)
  --out=FILE      also writes the figures as JSON

Our step is the whole of it: gathering and permuting the batch, drawing negatives,
forward, backward, Adam. The peer's batches are made beforehand. Machines are noisy:
read the ratios, which come from rounds that alternate, not the rates.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ebmjax import config as configuration
from ebmjax import environment, runner
from ebmjax.errors import UserError
from ebmjax.machine import Machine, make_setup
from ebmjax.types import Dataset
from ebmjax.validation import resolve

_PEER = Path(__file__).parent.parent / "launch" / "torch_peer.py"


class Case(NamedTuple):
  """A benchmark: which stream, which network, with or without boundaries."""

  name: str
  stream: str  # split, permuted
  variants: str
  hidden: int
  steps: int  # of one round


CASES = (
  Case("EBM split MNIST", "split", "", 400, 500),
  Case("SBC split MNIST", "split", "sbc", 400, 500),
  Case("EBM split MNIST, boundary-free", "split", "boundary_free", 400, 300),
  Case("EBM permuted MNIST", "permuted", "", 1000, 200),
  Case("SBC permuted MNIST", "permuted", "sbc", 1000, 200),
  Case("EBM permuted MNIST, boundary-free", "permuted", "boundary_free", 1000, 100),
)


def ours(case: Case) -> Callable[[], float]:
  """Returns a function that trains one round and returns its seconds."""
  config = configuration.default()
  tasks = 5 if case.stream == "split" else 10
  config.stream.update({"name": case.stream, "tasks": tasks, "iterations": case.steps})
  config.stream.epochs_per_task = 10
  config.network.hidden = case.hidden
  config.runner.chunk = case.steps
  configuration.apply_variants(config, case.variants, configuration.VARIANTS)
  config = resolve(config)
  driver = runner.choose_driver("auto", environment.describe()["backend"])
  setup = make_setup(config, _noise(), driver)
  machine = Machine(setup)
  chunk = next(runner.chunks(setup.stream, 0, case.steps, case.steps))
  machine.train(chunk)

  def one_round() -> float:
    begun = time.perf_counter()
    machine.train(chunk)
    return time.perf_counter() - begun

  return one_round


# How a PyTorch user may write the step: the released code's way, and the lean one.
FORMS = ("pass_per_label", "shared")


class Peer:
  """A process that makes bare PyTorch steps on request, in one of `FORMS`."""

  def __init__(self, python: str, case: Case, form: str) -> None:
    inputs, classes, per_task = (
      (784, 10, 2) if case.stream == "split" else (1024, 100, 10)
    )
    kind = "sbc" if "sbc" in case.variants else "ebm"
    layers = 2 if "boundary_free" in case.variants else 1
    sizes = [inputs, case.hidden, classes, per_task, layers]
    self._process = subprocess.Popen(
      [python, str(_PEER), kind, form, *map(str, sizes)],
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      text=True,
    )
    self._ask(None)  # it says when it is ready
    self._steps = case.steps

  def __call__(self) -> float:
    return float(self._ask(f"{self._steps}\n"))

  def close(self) -> None:
    """Ends the process."""
    self._process.kill()
    self._process.communicate()

  def _ask(self, line: str | None) -> str:
    assert self._process.stdin is not None and self._process.stdout is not None
    if line:
      self._process.stdin.write(line)
      self._process.stdin.flush()
    answer = self._process.stdout.readline().strip()
    if not answer:
      self.close()
      raise UserError(
        "the peer ended without an answer; --peer must name a Python that has torch."
      )
    return answer


def measure(case: Case, peer_python: str | None, rounds: int) -> dict[str, Any]:
  """Returns the rates of a case, in steps per second, and the ratios of its rounds."""
  runners: dict[str, Callable[[], float]] = {"ebmjax": ours(case)}
  peers = {form: Peer(peer_python, case, form) for form in FORMS} if peer_python else {}
  runners |= peers
  rates: dict[str, list[float]] = {name: [] for name in runners}
  try:
    for _ in range(rounds):
      for name, one_round in runners.items():
        rates[name].append(case.steps / one_round())
  finally:
    for peer in peers.values():
      peer.close()
  row: dict[str, Any] = {"case": case.name, "rounds": rounds}
  row["rate"] = {name: _spread(values) for name, values in rates.items()}
  row["ratio"] = {
    form: _spread([a / b for a, b in zip(rates["ebmjax"], rates[form], strict=True)])
    for form in peers
  }
  return row


def table(rows: list[dict[str, Any]]) -> str:
  """Returns a Markdown table of the rows: rates, and ratios with their range."""
  names = [form.replace("_", " ") for form in rows[0]["ratio"]]
  titles = ["benchmark", "ebmjax", *(f"PyTorch, {name}" for name in names)]
  titles += [f"ratio, {name}" for name in names]
  lines = [_line(titles), _line(["---"] * len(titles))]
  for row in rows:
    rates = [f"{spread['median']:.0f}" for spread in row["rate"].values()]
    ratios = [
      f"**{spread['median']:.2f}** ({spread['min']:.2f} to {spread['max']:.2f})"
      for spread in row["ratio"].values()
    ]
    lines.append(_line([row["case"], *rates, *ratios]))
  return "\n".join(lines)


def _line(cells: list[str]) -> str:
  return f"| {' | '.join(cells)} |"


def _spread(values: list[float]) -> dict[str, float]:
  return {
    "median": statistics.median(values),
    "min": min(values),
    "max": max(values),
  }


def _noise() -> Dataset:
  """Returns random images of MNIST's size: speed does not look at them."""
  rng = np.random.default_rng(0)
  x = rng.integers(0, 256, (20_000, 28, 28), dtype=np.uint8)
  y = np.tile(np.arange(10, dtype=np.int32), 2_000)
  return Dataset("noise", "noise", False, x, y, x[:100], y[:100], 10)


def main() -> None:
  """Runs the command line."""
  parser = argparse.ArgumentParser(
    "python -m ebmjax.bench",
    description=__doc__,
    formatter_class=argparse.RawTextHelpFormatter,
  )
  parser.add_argument("--peer")
  parser.add_argument("--rounds", type=int, default=7)
  parser.add_argument("--only", default="", help="cases whose name contains this")
  parser.add_argument("--out", type=Path)
  given = parser.parse_args()
  cases = [case for case in CASES if given.only in case.name]
  try:
    rows = [measure(case, given.peer, given.rounds) for case in cases]
  except UserError as error:
    sys.exit(f"ebmjax: {error}")
  print(table(rows))
  if given.out:
    given.out.write_text(
      json.dumps({"rows": rows, "environment": environment.describe()}, indent=1)
    )


if __name__ == "__main__":
  main()
