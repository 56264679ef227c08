"""The two memories of contextual transformation networks, of equal size in each task.

The first row of each batch goes into the semantic memory, from which the context
learns; the base trains on it one batch later. The other rows go into the episodic
memory, which the base replays.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from ebmjax.methods._replay import shares
from ebmjax.types import Batch, Problem

MOST_DRAWN = 64  # old rows of a step
SEMANTIC = 0.2  # the share of a task's stored rows that the context learns from


class Rows(NamedTuple):
  """Rows in the context of their tasks."""

  x: Array  # [N, ...]
  y: Array  # [N] int32
  weight: Array  # [N], weights of a mean over them; all 0 if there are none


class Memory(NamedTuple):
  """What is stored of each task; `batches` and `place` refer to the current one."""

  semantic_x: Array  # [T, N, ...] as batches hold it
  semantic_y: Array  # [T, N] int32
  episodic_x: Array  # [T, M, ...]
  episodic_y: Array  # [T, M] int32
  targets: Array  # [T, M, O], of finished tasks
  batches: Array  # [] int32, how many there have been
  place: Array  # [] int32, the next episodic slot


def empty_memory(problem: Problem, budget: int) -> Memory:
  """Returns memories of `budget` rows in all, at least two a task."""
  tasks, row = problem.num_tasks, problem.row
  each = budget // tasks
  semantic = max(round(SEMANTIC * each), 1)
  shapes = ((tasks, semantic), (tasks, each - semantic))
  x = [jnp.zeros((*shape, *row.shape), row.dtype) for shape in shapes]
  y = [jnp.zeros(shape, jnp.int32) for shape in shapes]
  targets = jnp.zeros((*shapes[1], problem.network.num_classes // tasks))
  return Memory(x[0], y[0], x[1], y[1], targets, jnp.int32(0), jnp.int32(0))


def store(memory: Memory, batch: Batch) -> tuple[Memory, Rows]:
  """Returns the memory after a batch, and the rows to train on instead of it.

  These are all rows but the first, and the first row of the batch before. A task's
  first batch fills both memories with copies, since nothing else is stored yet.
  """
  task, first = batch.task[0], memory.batches == 0
  slots = memory.semantic_y.shape[1]
  late, now = (memory.batches - 1) % slots, memory.batches % slots
  size = batch.y.shape[0]
  new = Rows(
    jnp.concatenate([batch.x[1:], memory.semantic_x[task, late][None]]),
    jnp.concatenate([batch.y[1:], memory.semantic_y[task, late][None]]),
    shares(~first | (jnp.arange(size) < size - 1)),
  )
  chosen = first | (jnp.arange(slots) == now)
  memory = memory._replace(
    semantic_x=_filled(memory.semantic_x, task, chosen, batch.x[0]),
    semantic_y=_filled(memory.semantic_y, task, chosen, batch.y[0]),
    batches=memory.batches + 1,
  )
  return _into_episodic(memory, task, new, first), new


def _into_episodic(memory: Memory, task: Array, new: Rows, first: Array) -> Memory:
  """Returns the memory with as many of the new rows as fit."""
  slots = memory.episodic_y.shape[1]
  copies = jnp.full(slots, first)
  x = _filled(memory.episodic_x, task, copies, new.x[0])
  y = _filled(memory.episodic_y, task, copies, new.y[0])
  slot = memory.place + jnp.arange(new.y.shape[0])
  slot = jnp.where(new.weight > 0, slot, slots)  # out of range: dropped
  end = memory.place + jnp.sum(new.weight > 0)
  return memory._replace(
    episodic_x=x.at[task, slot].set(new.x, mode="drop"),
    episodic_y=y.at[task, slot].set(new.y, mode="drop"),
    place=jnp.where(end >= slots, 0, end).astype(memory.place.dtype),
  )


def _filled(table: Array, task: Array, chosen: Array, row: Array) -> Array:
  """Returns table [T, N, ...] with `row` in the chosen [N] slots of the task."""
  mask = chosen.reshape(-1, *[1] * row.ndim)
  return table.at[task].set(jnp.where(mask, row[None], table[task]))


def end_task(memory: Memory, task: Array, targets: Array) -> Memory:
  """Returns the memory after a task, with targets [M, O] of its episodic rows."""
  return memory._replace(
    targets=memory.targets.at[task].set(targets),
    batches=jnp.zeros_like(memory.batches),
    place=jnp.zeros_like(memory.place),
  )


def draw(key: Array, memory: Memory, task: Array) -> tuple[Rows, Array]:
  """Returns distinct episodic rows of tasks before `task`, and their targets.

  As many as are stored of a task, at most MOST_DRAWN.
  """
  tasks, slots = memory.episodic_y.shape
  earlier = jnp.arange(tasks * slots) // slots < task
  scores = jnp.where(earlier, jax.random.uniform(key, earlier.shape), -1.0)
  best, chosen = lax.top_k(scores, min(slots, MOST_DRAWN))
  x, y, targets = (
    leaf.reshape(tasks * slots, *leaf.shape[2:])[chosen]
    for leaf in (memory.episodic_x, memory.episodic_y, memory.targets)
  )
  return Rows(x, y, shares(best >= 0)), targets


def semantic_rows(memory: Memory, task: Array) -> Rows:
  """Returns the semantic memory; rows of tasks after `task` have weight 0."""
  tasks, slots = memory.semantic_y.shape
  x = memory.semantic_x.reshape(tasks * slots, *memory.semantic_x.shape[2:])
  known = jnp.arange(tasks * slots) // slots <= task
  return Rows(x, memory.semantic_y.reshape(-1), shares(known))
