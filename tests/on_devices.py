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
# name: devices, devices of a batch
FAULTS = {"too many": (5, 1), "too many of a batch": (2, 4), "uneven": (3, 3)}


def run(base: Path, variants: str, driver: str, **changes: Any) -> dict[str, Any]:
  """Returns the leaves of the states, losses and counts after 12 steps of task 1."""
  chosen = f"{SPLIT}:smoke{variants}"
  config = resolve(make_config(chosen, base / "data", **changes))
  spec = make_run_spec(config, data.load(config.data), driver)
  machine = Trainer(spec)
  losses = [machine.train(chunk) for chunk in scan.chunks(spec.stream, 0, 12, 5)]
  machine.consolidate(0)
  found = machine.evaluate(Milestone(12, 0, ends_task=True, evaluate=True))
  saved = machine.saved()
  machine.load(saved)  # as after a restart
  leaves = jax.tree.leaves(machine.saved())
  about = spec.sharding.describe() | {"told": str(spec.sharding)}
  return {
    "about": json.dumps(about | memory.describe(spec)),
    "loss": np.concatenate(losses, axis=1),
    **found._asdict(),
    **{f"leaf{i:03d}": np.asarray(leaf) for i, leaf in enumerate(leaves)},
  }


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
    found = run(base, variants, driver, seeds=seeds, **changes)
    np.savez(base / f"{name}.npz", **found)
  told = {name: fault(base, *wish) for name, wish in FAULTS.items()}
  (base / "faults.json").write_text(json.dumps(told))


if __name__ == "__main__":
  main(Path(sys.argv[1]))
