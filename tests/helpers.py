"""What the tests of whole runs share: a synthetic set, shrunken configurations."""

import errno
import json
import os
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict

from ebmjax.config import loading, with_settings
from ebmjax.data.arrays import idx_header
from ebmjax.tools.bench.cases import Training

ROOT = Path(__file__).parents[1]
SPLIT = str(ROOT / "configs" / "splitmnist.py")
PERMUTED = str(ROOT / "configs" / "permmnist.py")

# What differs between two runs that did the same, in the facts of results.json.
TIMINGS = (
  *("wall_time", "steps_per_second", "seconds_to_first_chunk", "seconds"),
  "finished",
)

# On top of `:smoke`: seconds become fractions of a second.
SMALL = {
  "stream.iterations": 12,
  "stream.batch_size": 16,
  "network.hidden": 8,
  "eval.batch_size": 100,
  "runner.chunk": 5,
}


def write_idx(folder: Path, seed: int = 0) -> Path:
  """Returns the folder, now with 600 and 200 images of ten patterns as idx files."""
  folder.mkdir(parents=True, exist_ok=True)
  rng = np.random.default_rng(seed)
  patterns = rng.integers(0, 200, (10, 28, 28))
  for prefix, count in (("train", 600), ("t10k", 200)):
    labels = rng.permutation(np.arange(count) % 10)
    images = patterns[labels] + rng.integers(0, 56, (count, 28, 28))
    for name, values in (("images-idx3", images), ("labels-idx1", labels)):
      content = idx_header(values.shape) + values.astype(np.uint8).tobytes()
      (folder / f"{prefix}-{name}-ubyte").write_bytes(content)
  return folder


def make_config(chosen: str, data_dir: Path, **changes: Any) -> ConfigDict:
  """Returns FILE[:variants], made small; `stream__tasks=5` sets stream.tasks."""
  given = {name.replace("__", "."): value for name, value in changes.items()}
  data = {"data.source": "files", "data.dir": str(data_dir)}
  return with_settings(loading.load(chosen), SMALL | data | given)


def overrides(data_dir: Path, **changes: Any) -> list[str]:
  """Returns the flags that say what `make_config` does."""
  given = {name.replace("__", "."): value for name, value in changes.items()}
  data = {"data.source": "files", "data.dir": str(data_dir)}
  return [f"--config.{key}={value}" for key, value in (SMALL | data | given).items()]


def command(*arguments: str) -> list[str]:
  """Returns the command line that runs ebmjax with these arguments."""
  return [sys.executable, "-m", "ebmjax.main", *arguments]


def environment(cache: Path) -> dict[str, str]:
  """Returns the variables of a child process, compiled programs going to `cache`."""
  places = {
    "JAX_COMPILATION_CACHE_DIR": str(cache),
    "PYTHONPATH": loading.python_path(),
  }
  return os.environ | places


def read_results(workdir: Path) -> dict[str, Any]:
  """Returns results.json less its checksum; it must be strict JSON."""

  def refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")

  text = (workdir / "results.json").read_text()
  results: dict[str, Any] = json.loads(text, parse_constant=refuse)
  del results["checksum"]
  return results


def assert_same_bits(tree: Any, other: Any) -> None:
  """Asserts that two trees have the same structure, types, shapes and bits."""
  structures: list[Any] = [jax.tree.structure(tree), jax.tree.structure(other)]
  assert structures[0] == structures[1]
  for a, b in zip(jax.tree.leaves(tree), jax.tree.leaves(other), strict=True):
    a, b = np.asarray(a), np.asarray(b)
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    assert a.tobytes() == b.tobytes()


class FullDisk:
  """Stands in for `ebmjax.runtime.atomic` on a disk without room."""

  @staticmethod
  def write(path: Path, content: bytes | str) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

  @staticmethod
  def remove_partial(folder: Path) -> None:
    """Finds nothing to remove."""


def tiny_training(steps: int) -> Training:
  """Returns a case of the speed benchmark that takes no time."""
  small = (("network.hidden", 8), ("stream.batch_size", 16))
  return Training("tiny", "splitmnist.py", steps, small)
