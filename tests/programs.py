"""A run's compiled functions as programs of any platform, without its device.

Arguments are shapes, so nothing is computed but what a run spec itself needs.
"""

from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ebmjax.config import loading, with_settings
from ebmjax.config.validation import resolve
from ebmjax.data import DATASETS
from ebmjax.networks.cifar100 import NormTrunk, trunk_file
from ebmjax.runtime import evaluation, scan
from ebmjax.runtime.trainer import RunSpec, batch_view, make_run_spec
from ebmjax.types import Dataset
from tests.helpers import ROOT


def noise(name: str, per_class: int = 4) -> Dataset:
  """Returns random images of a set's shape, as many to train on as to test on."""
  info, rng = DATASETS[name], np.random.default_rng(0)
  count = per_class * info.num_classes
  shape, dtype = ((1,), np.uint32) if info.generated else (info.image_shape, np.uint8)
  x = rng.integers(0, 256, (count, *shape)).astype(dtype)
  y = np.arange(count, dtype=np.int32) % info.num_classes
  return Dataset(name, "noise", False, x, y, x, y, info.num_classes)


def write_trunk(path: Path) -> Path:
  """Returns the file, now with the weights of a trunk that was never trained."""
  image = jax.ShapeDtypeStruct((1, 32, 32, 3), jnp.float32)
  shapes = jax.eval_shape(NormTrunk().init, jax.random.key(0), image)
  ones = jax.tree.map(lambda leaf: np.ones(leaf.shape, leaf.dtype), shapes)
  path.write_bytes(trunk_file(ones))
  return path


def spec_of(chosen: str, driver: str, **changes: Any) -> RunSpec:
  """Returns the parts of configs/FILE[:variants] on noise; `a__b=1` sets config.a.b."""
  config = loading.load(str(ROOT / "configs" / chosen))
  given = {name.replace("__", "."): value for name, value in changes.items()}
  config = with_settings(config, given)
  return make_run_spec(resolve(config), noise(config.data.name), driver)


def trace(
  spec: RunSpec, *, only_train: bool = False, device: Any = None
) -> dict[str, Any]:
  """Returns the traced functions by name: train, evaluate and, if any, consolidate.

  A `device` may be one that is not there, of a described topology.
  """
  learner, compiler = spec.learner, scan.Compiler(spec.driver)
  shapes = partial(_shapes, device)
  states = shapes(jax.eval_shape(scan.make_init(learner, compiler), spec.tables.key))
  tables, train, test = shapes((spec.tables, spec.train_images, spec.test_images))
  size, block = spec.config.runner.chunk, spec.config.eval.batch_size
  steps = min(size, spec.stream.rows.shape[1])
  chunk = shapes(next(scan.chunks(spec.stream, 0, steps, size)))
  task, candidates = shapes((np.int32(0), spec.stream.classes[0, 0]))
  view = batch_view(spec.config)
  train_chunk: Any = scan.make_train(learner, view, compiler)
  evaluate: Any = evaluation.make_evaluate(learner, block, compiler)
  consolidate: Any = scan.make_consolidate(learner, view, compiler)
  found = {"train": train_chunk.trace(states, tables, train, chunk)}
  if not only_train:
    found["evaluate"] = evaluate.trace(states, tables, test, task, candidates)
  if not only_train and learner.consolidates:
    found["consolidate"] = consolidate.trace(states, tables, train, task)
  return found


def _shapes(device: Any, tree: Any) -> Any:
  placed = device and jax.sharding.SingleDeviceSharding(device)
  return jax.tree.map(
    lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=placed), tree
  )
