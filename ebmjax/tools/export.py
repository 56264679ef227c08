"""Writes the model of a finished run to one file that predicts with JAX alone.

With --trunk, writes the trunk of the run's network instead. The trunk of a run of
configs/pretrain_cifar10.py can be given as --config.network.pretrained for CIFAR-100.
"""

import argparse
from pathlib import Path
from typing import Any

import jax

from ebmjax import networks
from ebmjax.errors import ConfigError, UsageError, WorkdirError
from ebmjax.models.loading import FinishedRun, load, outputs, read_run, restore
from ebmjax.models.program import write_program
from ebmjax.networks.cifar100 import trunk_file
from ebmjax.paper import commands
from ebmjax.paths import expand
from ebmjax.runtime import atomic, failures
from ebmjax.runtime.terminal import Parser, run_cli


def export_trunk(
  run: Path, out: Path, seed: int | None = None, *, half: bool = False
) -> int:
  """Writes the final trunk of a run to `out` and returns its step."""
  found = read_run(run)
  seed = found.seeds[0] if seed is None else seed
  outputs(found, [seed])  # raises if there is no such seed
  network = found.config.network
  cached = networks.find(network.name).cached_trunk(network) is not None
  if "backbone_mode" not in network or cached:
    raise WorkdirError(
      f"the network of {run} has no trunk of its own; use configs/pretrain_cifar10.py."
    )
  trained = restore(found)
  place = found.seeds.index(seed)
  trunk = jax.tree.map(lambda leaf: leaf[place], _trunk(trained.states))
  with failures.explain_write_errors(out, "or give another file"):
    atomic.write(out, trunk_file(trunk, _origin(found, place), half=half))
  return trained.step


def _origin(run: FinishedRun, place: int) -> dict[str, Any]:
  """Returns the provenance of the weights, which the file stores."""
  facts = run.results["facts"]
  return {
    "command": commands.shortened(facts.get("command")),
    "commit": facts.get("commits"),
    "accuracy": run.results["per_seed"][place],
    "data": facts.get("data_source"),
  }


def _trunk(states: Any) -> dict[str, Any]:
  """Returns {"params", "batch_stats"} of a state's trunk, fine-tuned or frozen."""
  tuned, fixed = states.params, states.model_state
  params = tuned["trunk"] if "trunk" in tuned else fixed["trunk"]
  return {"params": params, "batch_stats": fixed["batch_stats"]}


def main(arguments: list[str]) -> int:
  """Writes the file of the command line and returns the exit code."""

  def work() -> int:
    given = _parser().parse_args(arguments)
    if given.half and not given.trunk:
      raise UsageError("--half is only for --trunk; give both, or leave --half out.")
    if given.trunk and given.task is not None:
      raise UsageError("--task does nothing with --trunk; leave one of them out.")
    if given.out.suffix != ".npz":
      raise ConfigError(
        f"{given.out} will hold arrays; give it a name that ends in .npz."
      )
    if given.trunk:
      step = export_trunk(given.run, given.out, given.seed, half=given.half)
      print(f"The trunk after {step} steps is in {given.out}.")
      return 0
    seed = read_run(given.run).seeds[0] if given.seed is None else given.seed
    model = load(given.run, seed)
    write_program(model, given.out, task=given.task)
    print(f"The model of {len(model.classes)} classes is in {given.out}.")
    return 0

  return run_cli("ebmjax", work, "the same command writes the file again")


def _parser() -> argparse.ArgumentParser:
  parser = Parser("ebmjax export", description=__doc__)
  add = parser.add_argument
  add("run", metavar="RUN", type=expand, help="the workdir of a finished run")
  add("out", metavar="FILE.npz", type=expand, help="the file to write")
  add("--seed", type=int, help="the seed to export (default: the first)")
  add("--task", type=int, help="for permuted pixels: the task whose order inputs have")
  add("--trunk", action="store_true", help="write only the trunk of the network")
  add("--half", action="store_true", help="with --trunk: write half precision")
  return parser
