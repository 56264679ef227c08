"""Attacks the package with faults and prints a table: python -m tests.faults

Kills, damaged files, random configurations and servers that cheat, on this machine and
in a temporary folder alone; bounded in time. Exit code 1 where something is left.
"""

import argparse
import importlib
import logging
import math
import os
import random
import sys
import tempfile
import time
import warnings
from pathlib import Path

from tests.faults.tally import Tally

QUICK = {  # as in the tests: compiling takes a fifth of the time
  "XLA_FLAGS": "--xla_cpu_use_fusion_emitters=false "
  "--xla_cpu_parallel_codegen_split_count=1 --xla_cpu_multi_thread_eigen=false",
  "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
}

PARTS = {  # each a module; its attacks, and how often they are tried
  "configurations": {"random configurations": 1000},
  "servers": {"servers that cheat": 42},
  "damage": {
    "damaged records of a run": 1200,
    "damaged checkpoints": 600,
    "damaged files of data": 300,
    "damaged saved models": 200,
  },
  "kills": {"SIGKILL during a run": 120},
}


def main() -> int:
  """Runs all attacks and returns the exit code."""
  parser = argparse.ArgumentParser("python -m tests.faults", description=__doc__)
  parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="(default: all)")
  parser.add_argument("--minutes", type=float, default=25.0, help="the bound of all")
  parser.add_argument("--share", type=float, default=1.0, help="of the tries")
  parser.add_argument("--seed", type=int, default=0, help="of what is random")
  given = parser.parse_args()
  random.seed(given.seed)
  end = time.monotonic() + 60 * given.minutes
  os.environ |= QUICK
  logging.getLogger("ebmjax").setLevel(logging.CRITICAL)
  warnings.simplefilter("ignore")
  with tempfile.TemporaryDirectory(prefix="faults-") as base:
    os.environ["JAX_COMPILATION_CACHE_DIR"] = f"{base}/cache"
    tallies = attack(given.parts or list(PARTS), Path(base), given.share, end)
  print("| attack | tries | as before | one sentence | left |")
  print("|---|---:|---:|---:|---|")
  print("\n".join(tally.row() for tally in tallies))
  examples = [example for tally in tallies for example in tally.examples]
  print("\n".join(["", *examples]) if examples else "\nNothing is left.")
  return 1 if examples else 0


def attack(parts: list[str], base: Path, share: float, end: float) -> list[Tally]:
  """Returns the tallies of the parts."""
  found: list[Tally] = []
  kinds = sum(len(PARTS[part]) for part in parts)
  for part in parts:
    folder, begun = base / part, time.monotonic()
    folder.mkdir()
    tallies = [
      Tally(name, math.ceil(share * limit), end, kinds - len(found) - place)
      for place, (name, limit) in enumerate(PARTS[part].items())
    ]
    importlib.import_module(f"tests.faults.{part}").attack(*tallies, folder)
    print(f"{part}: {time.monotonic() - begun:.0f} s", file=sys.stderr)
    found += tallies
  return found


if __name__ == "__main__":
  sys.exit(main())
