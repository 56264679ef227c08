"""States of learners after six steps and a boundary, as they were at version 0.1.0.

states.json has them for every method, network and command of the paper's tables. The
test of this fixture takes some of them; all, with their bits, on one core:

  taskset -c 0 python -m tests.states TRUNK

TRUNK is the npz file of the published trunk, for CIFAR-100. Bits depend on the
processor; norms and losses only by rounding.
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ebmjax import data
from ebmjax.config import loading, with_settings
from ebmjax.config.validation import resolve
from ebmjax.runtime import scan
from ebmjax.runtime.trainer import Trainer, make_run_spec
from ebmjax.streams import task_ends
from ebmjax.types import Dataset
from tests.helpers import ROOT

STATES: dict[str, dict[str, Any]] = json.loads(
  (Path(__file__).parent / "states.json").read_text()
)


def made(name: str) -> Dataset:
  """Returns random images of a set's shape."""
  spec, rng = data.find(name), np.random.default_rng(7)
  if spec.generated:
    numbers = np.arange(500, dtype=np.uint32)[:, None]
    labels = rng.integers(0, spec.num_classes, 500).astype(np.int32)
    both = (numbers, labels)
    return Dataset(name, "made", True, *both, *both, spec.num_classes)
  sizes = (600, 300) if spec.num_classes == 100 else (400, 200)
  y, test_y = (np.arange(size) % spec.num_classes for size in sizes)
  y, test_y = (rng.permutation(each).astype(np.int32) for each in (y, test_y))
  x, test_x = (
    rng.integers(0, 256, (size, *spec.image_shape)).astype(np.uint8) for size in sizes
  )
  return Dataset(name, "made", True, x, y, test_x, test_y, spec.num_classes)


def small(command: str, trunk: str = "") -> Any:
  """Returns the configuration of a command, made small as it was for the fixture."""
  path, _, variants = command.partition(":")
  smoke = f"{path}:{variants + ',' if variants else ''}smoke"
  config = loading.load(str(ROOT / smoke))
  changes: dict[str, Any] = {
    "stream.batch_size": min(config.stream.batch_size, 8),
    "stream.epochs_per_task": 1,
    "runner.chunk": 4,
  }
  if config.data.name == "cifar100":
    changes["network.pretrained"] = trunk
  if "pretrained" in config.network:
    changes["network.hidden"] = 64
  method = config.method
  if method.get("consolidate_every", 0) > 1:
    changes["method.consolidate_every"] = 3
  if method.get("fisher_samples"):
    changes["method.fisher_samples"] = 20
  if "budget" in method:
    changes["method.budget"] = 200
  if "mc_samples" in method:
    changes["method.mc_samples"] = 2
  if "permmnist" in path and variants.endswith("source"):
    # Only the rows of Three scenarios have changed since, to permute every task.
    kept = method.name in ("bgd", "gss_greedy", "ctn")
    before = config.stream.first_permutation if kept else "released"
    changes["stream.first_permutation"] = before
  return resolve(with_settings(config, changes))


def state_of(command: str, trunk: str = "") -> dict[str, Any]:
  """Returns hash and norm of a learner's state, and the losses on the way to it."""
  config = small(command, trunk)
  spec = make_run_spec(config, made(config.data.name), "map")
  trainer, steps = Trainer(spec), spec.stream.rows.shape[1]
  losses = [trainer.train(c) for c in scan.chunks(spec.stream, 0, min(4, steps), 4)]
  trainer.consolidate(0)
  end = task_ends(spec.stream)[0]
  start = end if end < steps else 0
  rest = scan.chunks(spec.stream, start, min(start + 2, steps), 4)
  losses += [trainer.train(chunk) for chunk in rest]
  leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(trainer.states)]
  total = hashlib.sha256()
  for leaf in leaves:
    total.update(f"{leaf.dtype}{leaf.shape}".encode() + leaf.tobytes())
  floats = [leaf.astype(np.float64) for leaf in leaves if leaf.dtype.kind == "f"]
  return {
    "sha256": total.hexdigest()[:16],
    "norm": float(sum(np.square(leaf).sum() for leaf in floats) ** 0.5),
    "losses": [float(loss) for part in losses for loss in part.ravel()],
  }


def main(trunk: str) -> int:
  """Prints every command whose bits have changed; returns 1 where there is one."""
  jax.config.update("jax_disable_most_optimizations", True)
  changed = []
  for number, (command, before) in enumerate(STATES.items()):
    now = state_of(command, trunk)
    if now["sha256"] != before["sha256"]:
      changed.append(command)
      print(f"{command}: norm {now['norm']:.9g}, was {before['norm']:.9g}", flush=True)
    if number % 20 == 0:
      jax.clear_caches()
  print(f"{len(STATES)} states, {len(changed)} changed")
  return int(bool(changed))


if __name__ == "__main__":
  sys.exit(main(*sys.argv[1:]))
