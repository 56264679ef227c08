"""Decides which devices run which seeds, and which share a batch.

Seeds lie along the mesh's axis "seeds": every place of it runs a block of seeds by the
same driver as a single device would, without communication. The devices along the axis
"batch" share each step of the seeds of their place: the rows of a batch are split over
them, and XLA sums what must be summed, so that the step is that of the whole batch. On
one device there is no mesh, and nothing here does anything.

Seeds side by side (vmap), or sharing their batches, are one program over the mesh
(shard_map). Seeds in turn (map) promise the bits of a single device, and XLA rounds a
program over many devices in other places than the same program for one. So each device
is then given the single device's own program; only the arrays lie on the mesh.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np
from jax import Array, lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from ml_collections import ConfigDict

from ebmjax.errors import ConfigError
from ebmjax.types import PyTree

SEEDS, BATCH = "seeds", "batch"


class SeedSharding:
  """Places seeds on a grid of devices [seeds, batch]; without a grid, on one device."""

  def __init__(
    self, grid: np.ndarray | None = None, seeds: int = 1, driver: str = "map"
  ) -> None:
    self.mesh = None if grid is None else Mesh(grid, (SEEDS, BATCH))
    self._seeds = seeds
    self._apart = grid is not None and driver == "map" and grid.shape[1] == 1
    if self.mesh is None:
      return
    self._local = list(self.mesh.local_devices)
    self._pool = ThreadPoolExecutor(len(self._local))
    places = self.mesh.shape[SEEDS]
    # The last seed stands in for the missing ones; what it gives there is dropped.
    self._order = np.minimum(np.arange(-(-seeds // places) * places), seeds - 1)
    self._along_seeds = NamedSharding(self.mesh, PartitionSpec(SEEDS))
    self._everywhere = NamedSharding(self.mesh, PartitionSpec())
    self._whole = jax.jit(
      lambda tree: jax.tree.map(lambda leaf: leaf[:seeds], tree),
      out_shardings=self._everywhere,
    )

  def shard_map_seeds(self, run: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps run(seeds, shared): each place runs it on its own block of seeds."""
    if self.mesh is None or self._apart:
      return run
    return jax.shard_map(
      run,
      mesh=self.mesh,
      in_specs=(PartitionSpec(SEEDS), PartitionSpec()),
      out_specs=PartitionSpec(SEEDS),
      axis_names={SEEDS},
      check_vma=False,  # a scan may start from constants, the same in all places
    )

  def on_each(self, compiled: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """Wraps compiled(*arguments) -> leaves [R, ...]: each device runs it by itself.

    Where the places run one program over the mesh, `compiled` as it is.
    """
    if not self._apart:
      return compiled

    def run(*arguments: PyTree) -> PyTree:
      # All before the first is run: a device that gives its part away deletes the tree.
      parts = [_on_device(arguments, device) for device in self._local]
      # Threads, because each device compiles its own program.
      blocks = self._pool.map(lambda part: compiled(*part), parts)
      return jax.tree.map(self._join, *blocks)

    return run

  def split(self, rows: Array) -> Array:
    """Splits rows [B, ...] of a batch over the devices of a place."""
    if self.mesh is None or self.mesh.shape[BATCH] == 1:
      return rows
    return lax.with_sharding_constraint(rows, PartitionSpec(BATCH))

  def shard_seeds(self, tree: PyTree) -> PyTree:
    """Puts leaves [R, ...], the same in all processes, on their seeds' devices."""
    if self.mesh is None:
      return tree
    return jax.tree.map(lambda leaf: self._put(leaf, self._order), tree)

  def replicate(self, tree: PyTree) -> PyTree:
    """Puts a tree, the same in all processes, on every device."""
    if self.mesh is None:
      return jax.tree.map(jax.numpy.asarray, tree)
    return jax.tree.map(lambda leaf: self._put(leaf, None), tree)

  def gather(self, tree: PyTree) -> PyTree:
    """Gathers leaves [R, ...] that are spread over the devices onto every device."""
    return tree if self.mesh is None else self._whole(tree)

  def like_gathered(self, tree: PyTree) -> PyTree:
    """Returns shapes, types and placement of `gather(tree)`, without computing it."""
    if self.mesh is None:
      return tree
    return jax.tree.map(
      lambda leaf: jax.ShapeDtypeStruct(
        (self._seeds, *leaf.shape[1:]), leaf.dtype, sharding=self._everywhere
      ),
      tree,
    )

  def block(self, seeds: int) -> int:
    """Returns how many of the run's seeds one device holds, at most."""
    if self.mesh is None:
      return seeds
    return len(self._order) // self.mesh.shape[SEEDS]

  def describe(self) -> dict[str, int]:
    """Returns how many processes and devices have a share in the run."""
    shape = {SEEDS: 1, BATCH: 1} if self.mesh is None else self.mesh.shape
    return {
      "processes": jax.process_count(),
      "devices": shape[SEEDS] * shape[BATCH],
      "batch_devices": shape[BATCH],
    }

  def __str__(self) -> str:
    if self.mesh is None:
      return "all seeds on one device"
    places, share = self.mesh.shape[SEEDS], self.mesh.shape[BATCH]
    block, spare = self.block(self._seeds), len(self._order) - self._seeds
    text = f"{block} {_plural('seed', block)} on each of {places} "
    text += _plural("device" if share == 1 else "group", places)
    text += "" if share == 1 else f" of {share} devices"
    if jax.process_count() > 1:
      text += f" of {jax.process_count()} processes"
    if spare:
      text += f"; {spare} {_plural('place', spare)} to spare, filled with the last "
      text += "seed again, whose results there are dropped"
    return text

  def _join(self, *blocks: Array) -> Array:
    """Returns [R, ...] over the mesh, of the blocks on this process's devices."""
    shape = (len(self._order), *blocks[0].shape[1:])
    return jax.make_array_from_single_device_arrays(
      shape, self._along_seeds, list(blocks)
    )

  def _put(self, leaf: Any, order: np.ndarray | None) -> Array:
    """Returns a global array; every process cuts its devices' parts out of `leaf`."""
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
      return jax.random.wrap_key_data(self._put(jax.random.key_data(leaf), order))
    host = np.asarray(leaf)
    host = host if order is None else host[order]
    sharding = self._everywhere if order is None else self._along_seeds
    return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])


def _on_device(tree: PyTree, device: Any) -> PyTree:
  """Returns the parts of a tree over the mesh that lie on one device."""

  def part(leaf: Any) -> Any:
    if not isinstance(leaf, Array):
      return leaf
    (shard,) = (s for s in leaf.addressable_shards if s.device == device)
    return shard.data

  return jax.tree.map(part, tree)


ONE_DEVICE = SeedSharding()


def make_sharding(config: ConfigDict, seeds: int, driver: str) -> SeedSharding:
  """Places a run of `seeds` seeds on the devices of all processes."""
  devices = _devices_by_process(config.runner.devices)
  batch = config.runner.batch_devices
  _check_batch(config, batch, devices.size)
  processes, local = devices.shape
  if batch > local:  # groups of whole processes, all in use
    grid = devices.reshape(-1, batch)
  else:
    groups = local // batch
    block = -(-seeds // (processes * groups))
    # No more than needed for this block, and as many in every process.
    used = -(-seeds // (block * processes))
    grid = devices[:, : used * batch].reshape(-1, batch)
  return SeedSharding(grid, seeds, driver) if grid.size > 1 else ONE_DEVICE


def _devices_by_process(asked: int) -> np.ndarray:
  """Returns [P, D] devices, as many in every process; `asked` in all, 0: every one."""
  rows: dict[int, list[Any]] = {}
  for device in jax.devices():
    rows.setdefault(device.process_index, []).append(device)
  counts, total = {len(row) for row in rows.values()}, len(jax.devices())
  if asked > total:
    raise ConfigError(
      f"config.runner.devices={asked} is too large: this run sees {total} "
      f"{_plural('device', total)}; give 0 for all. On a CPU "
      f"XLA_FLAGS=--xla_force_host_platform_device_count={asked} makes so many of it."
    )
  if asked % len(rows):
    raise ConfigError(
      f"config.runner.devices={asked} cannot be shared equally by {len(rows)} "
      f"processes; give 0 for all, or a multiple of {len(rows)}."
    )
  if len(counts) > 1:
    raise ConfigError(
      f"the processes have different numbers of devices ({sorted(counts)}); give "
      "every process the same number."
    )
  local = (asked or total) // len(rows)
  return np.array([rows[process][:local] for process in sorted(rows)])


def _check_batch(config: ConfigDict, batch: int, devices: int) -> None:
  size = config.stream.batch_size
  local = devices // jax.process_count()
  if batch > devices:
    raise ConfigError(
      f"config.runner.batch_devices={batch} is too large: the run has {devices} "
      f"{_plural('device', devices)}; give {devices} or less."
    )
  if size % batch:
    raise ConfigError(
      f"config.stream.batch_size={size} cannot be split over "
      f"config.runner.batch_devices={batch}; choose a divisor of {size}."
    )
  if batch > local and (batch % local or devices % batch):
    raise ConfigError(
      f"config.runner.batch_devices={batch} does not fit {jax.process_count()} "
      f"processes of {local} {_plural('device', local)}; give {devices}, or a divisor "
      f"of {local}."
    )


def _plural(noun: str, count: int) -> str:
  return noun if count == 1 else f"{noun}s"
