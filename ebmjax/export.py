"""Writes the trunk of a finished run: python -m ebmjax.export RUN FILE.npz [SEED]

RUN is the workdir of an experiment whose network has a trunk of its own, such as
configs/pretrain_cifar10.py; SEED is one of its seeds (default: the first).
"""

import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict

from ebmjax import runner
from ebmjax.checkpoints import Checkpoints
from ebmjax.data import DATASETS
from ebmjax.errors import UserError, WorkdirError
from ebmjax.machine import make_learner
from ebmjax.networks.cifar100 import save_trunk
from ebmjax.workdir import Workdir


def export(run: Path, out: Path, seed: int | None = None) -> int:
  """Returns the step whose trunk was written to `out`."""
  with Workdir(run) as folder:
    results = folder.results()
  if results is None:
    raise WorkdirError(f"{run} holds no finished run; finish it first.")
  config = ConfigDict(results["config"])
  seeds = results["seeds"]
  if seed is not None and seed not in seeds:
    raise WorkdirError(f"{run} has no seed {seed}; its seeds are {seeds}.")
  step, states = _last_states(config, run, seeds, len(results["class_names"]))
  index = 0 if seed is None else seeds.index(seed)
  save_trunk(out, jax.tree.map(lambda leaf: leaf[index], _trunk(states, run)))
  return step


def _last_states(
  config: ConfigDict, run: Path, seeds: list[int], num_classes: int
) -> tuple[int, Any]:
  row = jax.ShapeDtypeStruct(DATASETS[config.data.name].image_shape, np.uint8)
  keys = jax.numpy.stack([jax.random.key(seed) for seed in seeds])
  one_task = np.ones(
    (1, num_classes), bool
  )  # only the number of classes shapes a state
  learner = make_learner(config, row, one_task, jax.vmap(runner.init_key)(keys))
  init = runner.make_init(learner, runner.choose_driver("auto", jax.default_backend()))
  with Checkpoints(run / "checkpoints", config.checkpoint.keep) as keeper:
    restored = keeper.restore(init(keys))
  if restored is None:
    raise WorkdirError(f"{run} has no checkpoints; they may have been removed.")
  return restored


def _trunk(states: Any, run: Path) -> dict[str, Any]:
  """Returns {"params", "batch_stats"} of a state's trunk, fine-tuned or frozen."""
  state = getattr(states, "model_state", {})
  for holder in (getattr(states, "params", {}), state):
    if "trunk" in holder:
      return {"params": holder["trunk"], "batch_stats": state["batch_stats"]}
  raise WorkdirError(
    f"the network of {run} has no trunk of its own; use configs/pretrain_cifar10.py."
  )


def main(argv: list[str]) -> int:
  """Returns the exit code of the command line `argv`."""
  if len(argv) not in (3, 4) or not all(word.isdigit() for word in argv[3:]):
    print((__doc__ or "").strip(), file=sys.stderr)
    return 2
  try:
    step = export(Path(argv[1]), Path(argv[2]), int(argv[3]) if argv[3:] else None)
  except UserError as error:
    print(f"ebmjax: {error}", file=sys.stderr)
    return 1
  print(f"The trunk after {step} steps is in {argv[2]}.")
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv))
