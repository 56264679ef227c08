"""Writes the trunk of a finished run to a file.

The run's network must have a trunk of its own, as that of configs/pretrain_cifar10.py.
"""

import argparse
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from ml_collections import ConfigDict

from ebmjax import data, networks
from ebmjax.config.upgrade import upgrade
from ebmjax.config.validation import resolve
from ebmjax.errors import ConfigError, WorkdirError
from ebmjax.networks.cifar100 import trunk_file
from ebmjax.runtime import atomic, scan
from ebmjax.runtime.checkpoints import Checkpoints
from ebmjax.runtime.terminal import Parser, path_arg, run_cli
from ebmjax.runtime.trainer import make_learner
from ebmjax.runtime.workdir import Workdir


class _Run(NamedTuple):
  """What a finished run says of itself."""

  config: ConfigDict
  image_shape: tuple[int, ...]
  seeds: list[int]
  classes: int


def export(run: Path, out: Path, seed: int | None = None) -> int:
  """Writes the last trunk of a run to `out` and returns its step."""
  if out.suffix != ".npz":
    raise ConfigError(f"{out} is to hold arrays; give it a name that ends in .npz.")
  found = _read(run)
  if seed is not None and seed not in found.seeds:
    raise WorkdirError(f"{run} has no seed {seed}; its seeds are {found.seeds}.")
  network = networks.find(found.config.network.name)
  if not network.compute_features or network.caches_features(found.config.network):
    raise WorkdirError(
      f"the network of {run} has no trunk of its own; use configs/pretrain_cifar10.py."
    )
  step, states = _last_states(found, run)
  index = 0 if seed is None else found.seeds.index(seed)
  trunk = jax.tree.map(lambda leaf: leaf[index], _trunk(states))
  try:
    atomic.write(out, trunk_file(trunk))
  except OSError as error:
    raise WorkdirError(
      f"{out} cannot be written ({error.strerror}); give another file."
    ) from error
  return step


def _read(run: Path) -> _Run:
  """Returns what results.json says; a key that it does not have is as by default."""
  results = Workdir(run).results()  # not entered: a mistyped folder is not made
  if results is None:
    raise WorkdirError(
      f"{run} holds no finished run; give the --workdir of a run that has ended."
    )
  try:
    config = resolve(ConfigDict(upgrade(results["config"])))
    shape = data.find(config.data.name).image_shape
    return _Run(config, shape, list(results["seeds"]), len(results["class_names"]))
  except (AttributeError, KeyError, TypeError, ValueError) as error:
    raise WorkdirError(
      f"{run / 'results.json'} is not the results of a run; give the --workdir of a "
      "run that has ended."
    ) from error


def _last_states(found: _Run, run: Path) -> tuple[int, Any]:
  if not (run / "checkpoints").is_dir():  # which would be made
    raise _no_checkpoints(run)
  config = found.config
  row = jax.ShapeDtypeStruct(found.image_shape, np.uint8)
  keys = jax.numpy.stack([jax.random.key(seed) for seed in found.seeds])
  # Only the number of classes shapes a state.
  one_task = np.ones((1, found.classes), bool)
  learner = make_learner(config, row, one_task, jax.vmap(scan.init_key)(keys))
  init = scan.make_init(learner, scan.choose_driver("auto", jax.default_backend()))
  with Checkpoints(run / "checkpoints", config.checkpoint.keep) as keeper:
    restored = keeper.restore(init(keys))
  if restored is None:
    raise _no_checkpoints(run)
  return restored


def _no_checkpoints(run: Path) -> WorkdirError:
  return WorkdirError(
    f"{run} has no checkpoints; put them back, or run it again in another --workdir."
  )


def _trunk(states: Any) -> dict[str, Any]:
  """Returns {"params", "batch_stats"} of a state's trunk, fine-tuned or frozen."""
  tuned, fixed = states.params, states.model_state
  params = tuned["trunk"] if "trunk" in tuned else fixed["trunk"]
  return {"params": params, "batch_stats": fixed["batch_stats"]}


def main(arguments: list[str]) -> int:
  """Writes the trunk that the command line names and returns the exit code."""

  def work() -> int:
    given = _parser().parse_args(arguments)
    step = export(given.run, given.out, given.seed)
    print(f"The trunk after {step} steps is in {given.out}.")
    return 0

  return run_cli("ebmjax", work, "the same command writes the file again")


def _parser() -> argparse.ArgumentParser:
  parser = Parser("ebmjax export", description=__doc__)
  add = parser.add_argument
  add("run", metavar="RUN", type=path_arg, help="the workdir of a finished run")
  add("out", metavar="FILE.npz", type=path_arg, help="the file to write")
  add("seed", metavar="SEED", type=int, nargs="?", help="one of its seeds (the first)")
  return parser


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
