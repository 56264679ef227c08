"""Writes the trunk of a finished run: python -m ebmjax.tools.export RUN FILE.npz [SEED]

RUN is the workdir of an experiment whose network has a trunk of its own, such as
configs/pretrain_cifar10.py; SEED is one of its seeds (default: the first).
"""

import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from ml_collections import ConfigDict

from ebmjax.config import default, flat_keys
from ebmjax.config.identity import nested
from ebmjax.config.validation import resolve
from ebmjax.data import DATASETS
from ebmjax.errors import ConfigError, WorkdirError
from ebmjax.networks import caches_features
from ebmjax.networks.cifar100 import save_trunk
from ebmjax.runtime import scan
from ebmjax.runtime.checkpoints import Checkpoints
from ebmjax.runtime.terminal import answer
from ebmjax.runtime.trainer import make_learner
from ebmjax.runtime.workdir import Workdir


class _Run(NamedTuple):
  """What a finished run says of itself."""

  config: ConfigDict
  image_shape: tuple[int, ...]
  seeds: list[int]
  classes: int


def export(run: Path, out: Path, seed: int | None = None) -> int:
  """Returns the step whose trunk was written to `out`."""
  if out.suffix != ".npz":
    raise ConfigError(f"{out} is to hold arrays; give it a name that ends in .npz.")
  found = _read(run)
  if seed is not None and seed not in found.seeds:
    raise WorkdirError(f"{run} has no seed {seed}; its seeds are {found.seeds}.")
  network = found.config.network
  if network.trunk != "conv5" or caches_features(network):
    raise WorkdirError(
      f"the network of {run} has no trunk of its own; use configs/pretrain_cifar10.py."
    )
  step, states = _last_states(found, run)
  index = 0 if seed is None else found.seeds.index(seed)
  trunk = jax.tree.map(lambda leaf: leaf[index], _trunk(states))
  try:
    save_trunk(out, trunk)
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
    keys = flat_keys(default()) | flat_keys(ConfigDict(results["config"]))
    config = resolve(ConfigDict(nested(keys)))
    shape = DATASETS[config.data.name].image_shape
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
    f"{run} has no checkpoints; put them back, or run it anew in another --workdir."
  )


def _trunk(states: Any) -> dict[str, Any]:
  """Returns {"params", "batch_stats"} of a state's trunk, fine-tuned or frozen."""
  tuned, fixed = states.params, states.model_state
  params = tuned["trunk"] if "trunk" in tuned else fixed["trunk"]
  return {"params": params, "batch_stats": fixed["batch_stats"]}


def main(argv: list[str]) -> int:
  """Returns the exit code of the command line `argv`."""
  if len(argv) not in (3, 4) or not all(word.isdecimal() for word in argv[3:]):
    print((__doc__ or "").strip(), file=sys.stderr)
    return 2

  def work() -> int:
    step = export(Path(argv[1]), Path(argv[2]), int(argv[3]) if argv[3:] else None)
    print(f"The trunk after {step} steps is in {argv[2]}.")
    return 0

  return answer("ebmjax", work, "the same command writes the file anew")


if __name__ == "__main__":
  sys.exit(main(sys.argv))
