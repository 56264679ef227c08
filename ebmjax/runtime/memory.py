"""Counts the memory that a run holds on a device, before anything is compiled.

What a step needs for activations and gradients is only known to the compiler and not
counted: it grows with the batch, and with vmap also with the seeds.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from jax.errors import JaxRuntimeError

from ebmjax.errors import UserError
from ebmjax.runtime import feeding, scan
from ebmjax.runtime.trainer import RunSpec
from ebmjax.types import PyTree

_log = logging.getLogger("ebmjax")


class Memory(NamedTuple):
  """Bytes on one device, of the seeds that it runs."""

  state: int  # parameters, optimiser, what the method keeps
  copies: int  # of the state, while the seeds take turns
  images: int  # to train and to test on, or their features, with their classes
  tables: int  # what the steps look up: labels, permutations, rows of the tasks
  chunk: int  # the rows and tasks of the steps of one call


def count(spec: RunSpec) -> Memory:
  """Returns the bytes of a run's arrays.

  States are updated in place, except that a loop over several seeds writes the new
  states beside the old ones and holds a copy of one seed's.
  """
  init = scan.make_init(spec.learner, scan.Compiler(spec.driver))
  seeds, runs = len(spec.seeds), len(spec.seeds) * len(spec.configs)
  block = spec.sharding.block(runs)
  a_seed = num_bytes(jax.eval_shape(init, spec.tables.key)) // seeds
  loops = spec.driver == "map" and block > 1
  stream = spec.stream
  size = min(spec.config.runner.chunk, stream.rows.shape[1])
  a_step = (stream.rows[:, :1], stream.tasks[:, :1], stream.horizon[:, :1])
  shared = np.dtype(np.int32).itemsize + np.dtype(bool).itemsize  # number, active
  return Memory(
    state=block * a_seed,
    copies=(block + 1) * a_seed if loops else 0,
    images=_image_bytes(spec.train_images, size * runs * stream.rows.shape[2])
    + _image_bytes(
      spec.test_images, spec.tables.test_rows[:, 0].size * len(spec.configs)
    ),
    tables=num_bytes(spec.tables) // seeds * block,
    chunk=size * (num_bytes(a_step) // seeds * block + shared),
  )


def _image_bytes(images: scan.Images, rows: int) -> int:
  """Returns the bytes of a set of images that a call with so many rows holds."""
  return num_bytes(images) // len(images.y) * feeding.part_size(images, rows)


def describe(spec: RunSpec) -> dict[str, Any]:
  """Returns the counts for the results of a run."""
  return {"memory_bytes": count(spec)._asdict()}


def announce(spec: RunSpec, device: jax.Device | None = None) -> None:
  """Logs what a device of the run holds, and warns if it has less memory."""
  found = count(spec)
  seeds = spec.sharding.block(len(spec.seeds) * len(spec.configs))
  _log.info(
    "Memory: %s of state for %d seed%s, %s to copy it, %s of images, %s of tables and "
    "steps; what a step computes with is not included.",
    in_words(found.state),
    seeds,
    "" if seeds == 1 else "s",
    in_words(found.copies),
    in_words(found.images),
    in_words(found.tables + found.chunk),
  )
  device = device or jax.local_devices()[0]
  limit = (device.memory_stats() or {}).get("bytes_limit")  # a CPU says nothing
  if limit is not None and sum(found) > limit:
    _log.warning(
      "That is more than the %s of the %s; lower config.seeds.",
      in_words(limit),
      device.device_kind,
    )


@contextmanager
def explain_oom() -> Iterator[None]:
  """Re-raises out-of-memory errors, naming the keys to lower."""
  try:
    yield
  except (MemoryError, JaxRuntimeError) as error:
    message = str(error).strip()
    other = not re.search("out of memory|RESOURCE_EXHAUSTED", message, re.IGNORECASE)
    if isinstance(error, JaxRuntimeError) and other:
      raise
    line = message.splitlines()[0][:120].rstrip(". ") if message else "on the host"
    raise UserError(
      f"there is not enough memory for this run ({line}); lower config.seeds, "
      "config.stream.batch_size or config.network.hidden."
    ) from error


def num_bytes(tree: PyTree) -> int:
  """Returns the bytes of all leaves: arrays of the device or the host, or shapes."""
  return sum(_leaf_bytes(leaf) for leaf in jax.tree.leaves(tree))


def in_words(number: int) -> str:
  """Returns "35.2 MB", or the same in GB from a thousand of them on."""
  return f"{number / 1e6:.1f} MB" if number < 1e9 else f"{number / 1e9:.1f} GB"


def _leaf_bytes(leaf: Array | np.ndarray | jax.ShapeDtypeStruct) -> int:
  if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
    leaf = jax.eval_shape(jax.random.key_data, leaf)
  return int(np.prod(leaf.shape, dtype=np.int64)) * np.dtype(leaf.dtype).itemsize
