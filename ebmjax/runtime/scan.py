"""Runs learners over streams: compiled chunks of steps, with seeds as an axis.

Everything that differs between seeds is an argument with a leading axis [R]; images
are shared arguments, never captured constants. A step's key is a function of the seed
and the step's number, so neither the chunk size nor a restart can change a result.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ebmjax.runtime.sharding import ONE_DEVICE, SeedSharding
from ebmjax.streams import Stream
from ebmjax.streams.augmentation import AUGMENTATIONS
from ebmjax.types import Batch, Learner, PyTree, TaskView

DRIVERS = ("auto", "map", "vmap")
CompilerOptions = dict[str, str] | None  # of XLA; None: its own choice
_INIT, _STEP, _CONSOLIDATE, _AUGMENT = range(4)  # tags: one use of a seed's key each


class Images(NamedTuple):
  """A set of images, shared by all seeds: on the device, or NumPy's on the host."""

  # [N, P] or [N, H, W, 3]; generated images: [N, 1] uint32; features, also unfinished
  x: Any
  y: Array | np.ndarray  # [N] int32, raw classes


class SeedTables(NamedTuple):
  """What a seed's steps look up, on the device, with a leading axis [R]."""

  key: Array  # [] typed key
  labels: Array  # [T, G] int32
  permutation: Array  # [T, P] int32, or [T, 0]
  classes: Array  # [T, C] bool
  train_rows: Array  # [T, M] int32, -1 is padding
  test_rows: Array  # [T, M'] int32, -1 is padding


class Chunk(NamedTuple):
  """A fixed number of steps of every seed; the padding at the end is not active."""

  rows: np.ndarray  # [R, S, B] int32
  tasks: np.ndarray  # [R, S, B] int8
  horizon: np.ndarray  # [R, S] int32
  step: np.ndarray  # [S] int32
  active: np.ndarray  # [S] bool


class BatchView(NamedTuple):
  """Says how a learner sees its batches; static."""

  hides_task: bool = False  # as without boundaries, or all tasks at once
  own_task_only: bool = False  # task-incremental: only the task's own classes compete
  augment: str = "none"  # random changes of the images at every draw


def choose_driver(driver: str, backend: str) -> str:
  """Chooses how seeds are run: side by side on accelerators, in turn on a CPU.

  The rule does not look at the number of seeds, so on a CPU a seed gives the same bits
  alone and among others. (Except CIFAR-100's masked network: its seeds share the width
  of the widest mask, and sums of other widths may round otherwise.)
  """
  if driver != "auto":
    return driver
  return "map" if backend == "cpu" else "vmap"


class Compiler(NamedTuple):
  """How a function of one seed is compiled for all seeds of a run."""

  driver: str = "map"  # or "vmap"
  sharding: SeedSharding = ONE_DEVICE
  options: CompilerOptions = None

  def over_seeds(self, one: Callable[..., Any]) -> Callable[..., Any]:
    """Returns f(seeds, shared): `one` for each entry of the leading axis of `seeds`."""
    if self.driver == "vmap":
      return self.sharding.shard_map_seeds(jax.vmap(one, in_axes=(0, None)))
    return self.sharding.shard_map_seeds(
      lambda seeds, shared: lax.map(lambda seed: one(seed, shared), seeds)
    )

  def compile(
    self,
    one: Callable[..., Any],
    arguments: Callable[..., tuple[Any, Any]],
    *,
    donate: bool = False,
  ) -> Callable[..., Any]:
    """Compiles f(*given), of which `arguments(*given)` are (seeds, shared).

    With `donate` the states, which are given first, are moved on in place.
    """
    run = self.over_seeds(one)
    compiled = jax.jit(
      lambda *given: run(*arguments(*given)),
      donate_argnums=0 if donate else (),
      compiler_options=self.options,
    )
    return self.sharding.on_each(compiled)


IN_TURN = Compiler()  # on one device


def seed_tables(stream: Stream, seeds: list[int], *, test_multiple: int) -> SeedTables:
  """Puts a stacked stream's tables on the device; pads test rows to full blocks."""
  keys = jnp.stack([jax.random.key(seed) for seed in seeds])
  short = -stream.test_rows.shape[-1] % test_multiple
  test_rows = np.pad(stream.test_rows, [(0, 0), (0, 0), (0, short)], constant_values=-1)
  return SeedTables(
    keys,
    jnp.asarray(stream.labels),
    jnp.asarray(stream.permutation),
    jnp.asarray(stream.classes),
    jnp.asarray(stream.train_rows),
    jnp.asarray(test_rows),
  )


def chunks(stream: Stream, start: int, stop: int, size: int) -> Iterator[Chunk]:
  """Yields the steps from `start` to `stop` of a stacked stream, `size` at a time.

  Never more than the stream has: chunks are of one size, and filled up to it.
  """
  size = min(size, stream.rows.shape[1])
  for first in range(start, stop, size):
    last = min(first + size, stop)
    short = size - (last - first)

    def cut(table: np.ndarray, first=first, last=last, short=short) -> np.ndarray:
      padding = [(0, 0), (0, short)] + [(0, 0)] * (table.ndim - 2)
      return np.pad(table[:, first:last], padding)

    step = np.arange(first, first + size, dtype=np.int32)
    yield Chunk(
      cut(stream.rows), cut(stream.tasks), cut(stream.horizon), step, step < last
    )


def init_key(key: Array) -> Array:
  """Returns the key a learner's `init` gets, of a seed's key."""
  return jax.random.fold_in(key, _INIT)


def make_init(learner: Learner, compiler: Compiler = IN_TURN) -> Callable[..., PyTree]:
  """Compiles init(keys [R]) -> states [R, ...].

  After the keys comes what else the learner's own takes. Compiling also gives every
  leaf a buffer of its own, which donating states needs.
  """

  def one(seed: tuple[Array, ...], shared: None) -> PyTree:
    del shared
    key, *rest = seed
    return learner.init(init_key(key), *rest)

  return compiler.compile(one, lambda *seeds: (seeds, None))


def of_chunk(
  states: PyTree, tables: SeedTables, images: Images, chunk: Chunk
) -> tuple[Any, Any]:
  """Returns what a run of steps takes of each seed, and what all seeds share."""
  return (
    (states, tables, chunk.rows, chunk.tasks, chunk.horizon),
    (images, chunk.step, chunk.active),
  )


def make_train(
  learner: Learner,
  view: BatchView,
  compiler: Compiler = IN_TURN,
  arguments: Callable[..., tuple[Any, Any]] = of_chunk,
) -> Callable[..., tuple[PyTree, dict[str, Array]]]:
  """Compiles train(states, tables, images, chunk) -> (states, metrics [R, S]).

  Other `arguments` than those of `of_chunk` are for callers that hold batches in
  another form, which is then brought into that of a chunk by the compiled call.
  """

  def one(seed: Any, shared: Any) -> tuple[PyTree, dict[str, Array]]:
    state, tables, *where = seed
    images, step, active = shared
    step_key = jax.random.fold_in(tables.key, _STEP)

    def body(state: PyTree, inputs: Any) -> tuple[PyTree, dict[str, Array]]:
      rows, tasks, horizon, number, is_active = inputs

      def work(state: PyTree) -> tuple[PyTree, dict[str, Array]]:
        batch = make_batch(tables, images, view, rows, tasks, horizon, number)
        batch = _split(batch, compiler.sharding)
        return learner.step(state, jax.random.fold_in(step_key, number), batch)

      def rest(state: PyTree) -> tuple[PyTree, dict[str, Array]]:
        _, metrics = jax.eval_shape(work, state)
        return state, jax.tree.map(lambda m: jnp.zeros(m.shape, m.dtype), metrics)

      # The flag is shared by all seeds, so under vmap this stays a real branch.
      return lax.cond(is_active, work, rest, state)

    return lax.scan(body, state, (*where, step, active))

  return compiler.compile(one, arguments, donate=True)


def make_consolidate(
  learner: Learner, view: BatchView, compiler: Compiler = IN_TURN
) -> Callable[..., PyTree]:
  """Compiles consolidate(states, tables, images, task) -> states, at a boundary."""

  def one(seed: Any, shared: Any) -> PyTree:
    state, tables = seed
    images, task = shared
    rows = tables.train_rows[task]
    key = jax.random.fold_in(jax.random.fold_in(tables.key, _CONSOLIDATE), task)
    labels = tables.labels[task][images.y]
    order = tables.permutation[task]
    seen = competing_classes(tables.classes, task, view)
    finished = TaskView(
      images.x, labels, order, jnp.maximum(rows, 0), rows >= 0, task, seen
    )
    return learner.end_task(state, key, finished)

  return compiler.compile(
    one, lambda states, tables, *shared: ((states, tables), shared), donate=True
  )


def make_batch(
  tables: SeedTables,
  images: Images,
  view: BatchView,
  rows: Array,
  tasks: Array,
  horizon: Array,
  step: Array,
) -> Batch:
  """Builds the batch of rows [B] of tasks [B], as the learner may see it."""
  tasks = tasks.astype(jnp.int32)
  y = tables.labels[tasks, images.y[rows]]
  x = permuted(images.x[rows], tables.permutation, tasks)
  if view.augment != "none":
    key = jax.random.fold_in(jax.random.fold_in(tables.key, _AUGMENT), step)
    x = AUGMENTATIONS[view.augment](key, x)
  if view.hides_task:
    negatives = jnp.bincount(y, length=tables.classes.shape[1]) > 0
    task = jnp.full_like(tasks, -1)
  else:
    negatives, task = tables.classes[tasks[0]], tasks
  seen = competing_classes(tables.classes, horizon, view)
  return Batch(x, y, task, seen, negatives, step)


def _split(batch: Batch, sharding: SeedSharding) -> Batch:
  x, y, task = (sharding.split(rows) for rows in (batch.x, batch.y, batch.task))
  return batch._replace(x=x, y=y, task=task)


def permuted(x: Array, permutation: Array, tasks: Array) -> Array:
  """Returns x [B, ...], each row in its task's order of pixels [T, P], if any."""
  if permutation.shape[1] == 0:
    return x
  return jnp.take_along_axis(x, permutation[tasks], axis=1)


def competing_classes(classes: Array, horizon: Array, view: BatchView) -> Array:
  """Returns [C] bool: what a learner may normalise over; classes [T, C]."""
  return classes[horizon] if view.own_task_only else seen_classes(classes, horizon)


def seen_classes(classes: Array, horizon: Array) -> Array:
  """Returns [C] bool: the classes of tasks 0 to `horizon`; classes [T, C]."""
  revealed = jnp.arange(classes.shape[0]) <= horizon
  return jnp.any(classes & revealed[:, None], axis=0)
