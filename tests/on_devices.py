"""Trains small runs on several devices; a process of its own, for test_devices.py.

XLA_FLAGS=--xla_force_host_platform_device_count=4 python -m tests.on_devices OUT
"""

import json
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ebmjax import data
from ebmjax.config.validation import resolve
from ebmjax.errors import ConfigError
from ebmjax.runtime import memory, scan
from ebmjax.runtime.plan import Milestone
from ebmjax.runtime.trainer import Trainer, make_run_spec
from tests.helpers import SPLIT, make_config, write_idx

# name: variants, driver, seeds, devices, devices of a batch
RUNS = {
  "si": (",si,sbc", "map", 5, 1, 1),
  "si on four": (",si,sbc", "map", 5, 0, 1),
  "si side by side on two": (",si,sbc", "vmap", 2, 2, 1),
  "si, split batches": (",si,sbc", "map", 1, 2, 2),
  "ebm": ("", "map", 2, 1, 1),
  "ebm, split batches": ("", "map", 2, 4, 2),
}
# name: what makes it another setting. All are also trained together, on four devices.
SETTINGS: dict[str, dict[str, Any]] = {
  "si": {},
  "si, faster": {"optimiser__learning_rate": 3e-3},
}
RUNS |= {name: RUNS["si"] for name in SETTINGS}
# name: devices, devices of a batch
FAULTS = {"too many": (5, 1), "too many of a batch": (2, 4), "uneven": (3, 3)}


def run(
  base: Path, variants: str, driver: str, *settings: dict[str, Any], **changes: Any
) -> list[dict[str, Any]]:
  """Returns the leaves of the states, losses and counts after 12 steps of task 1.

  Of each setting that is trained with the others.
  """
  chosen = f"{SPLIT}:smoke{variants}"
  configs = [
    resolve(make_config(chosen, base / "data", **changes, **setting))
    for setting in settings or ({},)
  ]
  spec = make_run_spec(configs, data.load(configs[0].data), driver)
  machine = Trainer(spec)
  losses = [machine.train(chunk) for chunk in scan.chunks(spec.stream, 0, 12, 5)]
  machine.consolidate(0)
  found = machine.evaluate(Milestone(12, 0, ends_task=True, evaluate=True))
  machine.load([machine.saved(i) for i in range(len(configs))])  # as after a restart
  about = spec.sharding.describe() | {"told": str(spec.sharding)}
  told = json.dumps(about | memory.describe(spec))
  joined = np.concatenate(losses, axis=1)

  def of_setting(point: int) -> dict[str, Any]:
    block, leaves = spec.block(point), jax.tree.leaves(machine.saved(point))
    return {
      "about": told,
      "loss": joined[block],
      **{name: values[block] for name, values in found._asdict().items()},
      **{f"leaf{i:03d}": np.asarray(leaf) for i, leaf in enumerate(leaves)},
    }

  return [of_setting(point) for point in range(len(configs))]


def fault(base: Path, devices: int, batch_devices: int) -> str:
  """Returns the sentence that such a wish is answered with."""
  changes = {"runner__devices": devices, "runner__batch_devices": batch_devices}
  try:
    run(base, "", "map", **changes)
  except ConfigError as error:
    return str(error)
  raise AssertionError("this was not refused")


def main(base: Path) -> None:
  """Writes an npz file for every run, and the sentences of the faults."""
  write_idx(base / "data")
  for name, (variants, driver, seeds, devices, batch) in RUNS.items():
    changes = {"runner__devices": devices, "runner__batch_devices": batch}
    changes |= SETTINGS.get(name, {})
    (found,) = run(base, variants, driver, seeds=seeds, **changes)
    np.savez(base / f"{name}.npz", **found)
  variants, driver, seeds, *_ = RUNS["si"]
  together = run(base, variants, driver, *SETTINGS.values(), seeds=seeds)
  for name, found in zip(SETTINGS, together, strict=True):
    np.savez(base / f"{name}, together.npz", **found)
  told = {name: fault(base, *wish) for name, wish in FAULTS.items()}
  (base / "faults.json").write_text(json.dumps(told))


if __name__ == "__main__":
  main(Path(sys.argv[1]))
