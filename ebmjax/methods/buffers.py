"""Stores of a fixed number of old images: pure functions over trees of arrays.

There are two kinds. A `Buffer` is filled at task boundaries: the owners so far (tasks
or classes) shrink to make room for an equal share of the task that just ended. A
`Reservoir` accepts a stream row by row and holds a uniform sample of all rows so far.
Shapes never change; `taken` says how many slots, always the first ones, are in use.
Here, five numbers are offered to three slots and two are drawn:

>>> import jax, jax.numpy as jnp
>>> from ebmjax.methods import buffers
>>> store = buffers.empty_reservoir(jax.ShapeDtypeStruct((), jnp.float32), budget=3)
>>> x, y = jnp.arange(5.0), jnp.arange(5)
>>> store = buffers.offer(store, jax.random.key(0), x, y)
>>> int(store.taken), int(store.offered), bool((store.x == store.y).all())
(3, 5, True)
>>> buffers.draw(jax.random.key(1), store, 2).valid.tolist()
[True, True]

Shape letters: K slots, N rows; the rest as in `types`.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array, lax

from ebmjax.methods.importance import task_images
from ebmjax.streams.augmentation import AUGMENTATIONS
from ebmjax.types import PyTree, TaskView

Quota = Literal["task", "class"]
_AUGMENT_TAG = 1  # fold_in tag: augmentation


class Buffer(NamedTuple):
  """Rows in equal shares of their owners; slots from `taken` on are empty."""

  x: Array  # [K, ...] as batches hold it: uint8 images or float features
  y: Array  # [K] int32
  owner: Array  # [K] int32, a task or a class; -1 in an empty slot
  rank: Array  # [K] int32, the row's place in the random order of its owner's rows
  taken: Array  # [] int32, how many slots are in use


class Reservoir(NamedTuple):
  """A uniform sample of all rows offered so far."""

  x: PyTree  # of arrays [K, ...], such as an input beside its energies
  y: Array  # [K] int32
  offered: Array  # [] int32, how many rows were offered so far

  @property
  def taken(self) -> Array:
    """Returns [] int32: how many slots are in use."""
    return jnp.minimum(self.offered, self.y.shape[0])


class Store(Protocol):
  """What rows can be drawn from."""

  @property
  def x(self) -> PyTree:
    """Returns arrays [K, ...]: the rows."""
    ...

  @property
  def y(self) -> Array:
    """Returns [K] int32: their labels."""
    ...

  @property
  def taken(self) -> Array:
    """Returns [] int32: how many slots are in use, the first ones."""
    ...


class Drawn(NamedTuple):
  """Rows drawn from a store; the contents of an invalid one have no meaning."""

  x: PyTree  # of arrays [N, ...]
  y: Array  # [N] int32
  valid: Array  # [N] bool


def empty_buffer(row: jax.ShapeDtypeStruct, budget: int) -> Buffer:
  """Returns a buffer of `budget` slots for rows like `row`, none of them taken."""
  return Buffer(
    x=jnp.zeros((budget, *row.shape), row.dtype),
    y=jnp.zeros(budget, jnp.int32),
    owner=jnp.full(budget, -1, jnp.int32),
    rank=jnp.zeros(budget, jnp.int32),
    taken=jnp.int32(0),
  )


def empty_reservoir(row: PyTree, budget: int) -> Reservoir:
  """Returns a reservoir of `budget` slots for rows like `row`, none of them taken.

  `row` is a jax.ShapeDtypeStruct, or a tree of them.
  """
  x = jax.tree.map(lambda part: jnp.zeros((budget, *part.shape), part.dtype), row)
  return Reservoir(x, jnp.zeros(budget, jnp.int32), jnp.int32(0))


def add_task(
  buffer: Buffer,
  key: Array,
  view: TaskView,
  quota: str,
  augment: Callable[[Array, Array], Array] = AUGMENTATIONS["none"],
) -> Buffer:
  """Returns the buffer after a task: every owner has at most q rows, q = floor(K / n).

  The n owners are the tasks finished so far (quota "task") or the classes seen so far
  ("class"). Old owners keep the first q of their rows, which were stored in random
  order; q random images of the finished task (of each class) join them, augmented once.
  """
  budget = buffer.y.shape[0]
  if quota == "task":
    owners, owner = view.task + 1, jnp.full_like(view.rows, view.task)
  else:
    owners, owner = jnp.sum(view.seen), view.y[view.rows]
  share = budget // owners
  order, rank = _shuffled_by_owner(key, owner, view.valid)
  chosen = view.valid[order] & (rank < share)
  first = _kept_first(chosen, budget)
  rows = view.rows[order[first]]
  x = augment(jax.random.fold_in(key, _AUGMENT_TAG), task_images(view, rows))
  new = (x, view.y[rows], owner[order[first]], rank[first])
  kept = (jnp.arange(budget) < buffer.taken) & (buffer.rank < share)
  return _joined(buffer, new, jnp.concatenate([kept, chosen[first]]))


def offer(reservoir: Reservoir, key: Array, x: PyTree, y: Array) -> Reservoir:
  """Returns the reservoir after rows x [N, ...] with labels y [N], one after another.

  Algorithm R (Vitter 1985): the n-th row ever takes slot n while there are free ones;
  later it takes a random one of n slots, if that is among the K. Every row offered so
  far is then held with the same probability. Here all rows are placed at once: of
  several that take the same slot the last one stays, as if they had come in turn.
  """
  budget, rows = reservoir.y.shape[0], jnp.arange(y.shape[0])
  number = reservoir.offered + rows  # counted from 0
  drawn = jax.random.randint(key, y.shape, 0, number + 1, dtype=jnp.int32)
  slot = jnp.where(number < budget, number, drawn)
  last = jnp.full(budget, -1, rows.dtype).at[slot].max(rows, mode="drop")
  stays = (slot < budget) & (last[jnp.minimum(slot, budget - 1)] == rows)
  slot = jnp.where(stays, slot, budget)  # out of range: dropped
  return Reservoir(
    x=jax.tree.map(lambda a, b: a.at[slot].set(b, mode="drop"), reservoir.x, x),
    y=reservoir.y.at[slot].set(y, mode="drop"),
    offered=reservoir.offered + y.shape[0],
  )


def draw(key: Array, store: Store, number: int) -> Drawn:
  """Returns `number` distinct rows at random, or all of them if there are fewer."""
  budget = store.y.shape[0]
  scores = jax.random.uniform(key, (budget,))
  scores = jnp.where(jnp.arange(budget) < store.taken, scores, -1.0)
  best, slots = lax.top_k(scores, min(number, budget))
  short = number - best.shape[0]
  slots, valid = jnp.pad(slots, (0, short)), jnp.pad(best >= 0, (0, short))
  return Drawn(jax.tree.map(lambda a: a[slots], store.x), store.y[slots], valid)


def _shuffled_by_owner(key: Array, owner: Array, valid: Array) -> tuple[Array, Array]:
  """Returns an order [M] of rows, and each one's rank [M] among the rows of its owner.

  The rows of an owner follow each other in random order; invalid rows come last.
  """
  # A number for each row, which does not depend on how many rows of padding follow:
  # seeds that run together are padded alike, and each must choose as it would alone.
  at_random = jnp.argsort(jax.random.bits(key, owner.shape))
  owner = jnp.where(valid, owner, jnp.iinfo(owner.dtype).max)[at_random]
  by_owner = jnp.argsort(owner, stable=True)
  owner = owner[by_owner]
  places = jnp.arange(owner.shape[0])
  changes = jnp.concatenate([jnp.ones(1, bool), owner[1:] != owner[:-1]])
  begins = lax.cummax(jnp.where(changes, places, 0))
  return at_random[by_owner], (places - begins).astype(jnp.int32)


def _kept_first(keep: Array, most: int) -> Array:
  """Returns at most `most` indices: those to keep in their order, then the others."""
  return jnp.argsort(~keep, stable=True)[:most]


def _joined(old: Buffer, new: tuple[Array, ...], keep: Array) -> Buffer:
  """Returns the rows to keep [K + N] of both in one buffer, the old ones first.

  `new` are the x, y, owner and rank of N rows.
  """
  budget = old.y.shape[0]
  order = _kept_first(keep, budget)
  x, y, owner, rank = (
    jnp.concatenate(parts)[order] for parts in zip(old[:-1], new, strict=True)
  )
  number = jnp.minimum(jnp.sum(keep), budget).astype(old.taken.dtype)
  taken = jnp.arange(budget) < number
  return Buffer(x, y, jnp.where(taken, owner, -1), jnp.where(taken, rank, 0), number)
