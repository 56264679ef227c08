r"""Contextual transformation networks: every task transforms the features its own way.

Pham et al. (2021). The network has a base that all tasks share and a context of each
task (`networks.context`), and either learns from images of its own. Of each batch the
first row goes into the semantic memory and is trained on one batch later; the others
go into the episodic memory. Both memories hold as many rows of each task. A step then
does `repeats` times: `inner_steps` descents of the base on

    L = CE(batch) + CE(old) + strength / O * KL(targets || softmax(outputs(old) / T))

where `old` are rows of the episodic memories of earlier tasks, each in the context of
its own task, and the targets, over the O labels of that task, are what the network said
of them when the task ended; and one of the context on

    CE(all of the semantic memory, the current task's too) / repeats

along the gradient clipped to [-1, 1]. Cross-entropies are over the O labels of a row's
own task: the method is made for streams that tell it at test time, too
(`config.stream.scenario=task`). With `class` all contexts compete, by their energies.

The authors descend plainly (`config.optimiser.name=sgd`), the base with the optimiser's
rate and the context with `context_rate`, on ten rows at a time, each image once.
Deviation: the batch's loss is computed anew at each descent, where their code goes on
with the graph of the first.

State: the base's optimiser, and the memories.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from ebmjax.methods._gradient import GradientState, all_energies
from ebmjax.types import Batch, Learner, Network, Problem, PyTree, TaskView

SEMANTIC = 0.2  # the share of a task's stored rows that the context learns from


class Rows(NamedTuple):
  """Rows in the context of their tasks."""

  x: Array  # [N, ...]
  y: Array  # [N] int32
  weight: Array  # [N], the shares of a mean over them; all 0: there are none


class Memory(NamedTuple):
  """What is stored of each task; `batches` and `place` are of the current one."""

  semantic_x: Array  # [T, N, ...] as batches hold it
  semantic_y: Array  # [T, N] int32
  episodic_x: Array  # [T, M, ...]
  episodic_y: Array  # [T, M] int32
  targets: Array  # [T, M, O], of finished tasks
  batches: Array  # [] int32, how many there were
  place: Array  # [] int32, the episodic slot that is next


def ctn(problem: Problem, config: Any) -> Learner:
  """Returns the two-level descent; the problem's objective is not used."""
  network, tx = problem.network, problem.tx
  outputs = _outputs(network)
  # Each of the repeats is a part of one step of the context.
  context_tx = optax.chain(
    optax.scale(1 / config.repeats), optax.clip(1.0), optax.sgd(config.context_rate)
  )

  def init(key: Array) -> GradientState:
    params, model_state = network.init(key)
    memory = empty_memory(problem, config.budget)
    return GradientState(params, model_state, tx.init(_parts(params)[0]), memory)

  def step(
    state: GradientState, key: Array, batch: Batch
  ) -> tuple[GradientState, dict[str, Array]]:
    memory, new = store(state.own, batch)
    task, fixed = batch.task[0], state.model_state
    semantic = semantic_rows(memory, task)

    def base_loss(base: PyTree, context: PyTree, key: Array) -> Array:
      old, targets = draw(key, memory, task)
      said = [outputs(base | context, fixed, rows) for rows in (new, old)]
      learned = cross_entropy(said[0], new) + cross_entropy(said[1], old)
      kept = distillation(said[1], targets, config.temperature)
      return learned + config.strength * jnp.sum(old.weight * kept)

    def context_loss(context: PyTree, base: PyTree) -> Array:
      return cross_entropy(outputs(base | context, fixed, semantic), semantic)

    def descend(carry: Any, key: Array) -> tuple[Any, Array]:
      base, context, opt_state = carry
      value, gradient = jax.value_and_grad(base_loss)(base, context, key)
      updates, opt_state = tx.update(gradient, opt_state, base)
      return (optax.apply_updates(base, updates), context, opt_state), value

    def repeat(carry: Any, keys: Array) -> tuple[Any, Array]:
      (base, context, opt_state), values = lax.scan(descend, carry, keys)
      gradient = jax.grad(context_loss)(context, base)
      updates, _ = context_tx.update(gradient, context_tx.init(context))
      return (base, optax.apply_updates(context, updates), opt_state), values

    keys = jax.random.split(key, (config.repeats, config.inner_steps))
    start = (*_parts(state.params), state.opt_state)
    (base, context, opt_state), values = lax.scan(repeat, start, keys)
    return GradientState(base | context, fixed, opt_state, memory), {
      "loss": values[0, 0]
    }

  def consolidate(state: GradientState, key: Array, view: TaskView) -> GradientState:
    del key
    memory = state.own
    rows = _rows(memory.episodic_x[view.task], memory.episodic_y[view.task])
    said = outputs(state.params, state.model_state, rows) / config.temperature
    memory = memory._replace(
      targets=memory.targets.at[view.task].set(jax.nn.softmax(said)),
      batches=jnp.zeros_like(memory.batches),
      place=jnp.zeros_like(memory.place),
    )
    return state._replace(own=memory)

  def energies(state: GradientState, x: Array) -> Array:
    return all_energies(network, state.params, state.model_state, x)

  return Learner(init, step, consolidate, energies, consolidates=True)


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
  """Returns the memory after a batch, and what is trained on in its place.

  That is all but its first row, and the first row of the batch before. A task's first
  batch fills both memories with copies, for there is nothing else yet.
  """
  task, first = batch.task[0], memory.batches == 0
  slots = memory.semantic_y.shape[1]
  late, now = (memory.batches - 1) % slots, memory.batches % slots
  new = _rows(
    jnp.concatenate([batch.x[1:], memory.semantic_x[task, late][None]]),
    jnp.concatenate([batch.y[1:], memory.semantic_y[task, late][None]]),
    ~first | (jnp.arange(batch.y.shape[0]) < batch.y.shape[0] - 1),
  )
  chosen = first | (jnp.arange(slots) == now)
  memory = memory._replace(
    semantic_x=_filled(memory.semantic_x, task, chosen, batch.x[0]),
    semantic_y=_filled(memory.semantic_y, task, chosen, batch.y[0]),
    batches=memory.batches + 1,
  )
  return _into_episodic(memory, task, new, first), new


def _into_episodic(memory: Memory, task: Array, new: Rows, first: Array) -> Memory:
  """Returns the memory with as many of the new rows as there is room for."""
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


def draw(key: Array, memory: Memory, task: Array) -> tuple[Rows, Array]:
  """Returns M distinct episodic rows of tasks before `task`, and their targets."""
  tasks, slots = memory.episodic_y.shape
  earlier = jnp.arange(tasks * slots) // slots < task
  scores = jnp.where(earlier, jax.random.uniform(key, earlier.shape), -1.0)
  best, chosen = lax.top_k(scores, slots)
  x, y, targets = (
    leaf.reshape(tasks * slots, *leaf.shape[2:])[chosen]
    for leaf in (memory.episodic_x, memory.episodic_y, memory.targets)
  )
  return _rows(x, y, best >= 0), targets


def semantic_rows(memory: Memory, task: Array) -> Rows:
  """Returns the semantic memory; what comes after `task` has no weight."""
  tasks, slots = memory.semantic_y.shape
  x = memory.semantic_x.reshape(tasks * slots, *memory.semantic_x.shape[2:])
  known = jnp.arange(tasks * slots) // slots <= task
  return _rows(x, memory.semantic_y.reshape(-1), known)


def cross_entropy(outputs: Array, rows: Rows) -> Array:
  """Returns the mean over the rows that count; outputs [N, O] of their own tasks."""
  # Labels are numbered in the order of tasks, as many in each.
  place = rows.y % outputs.shape[1]
  losses = optax.softmax_cross_entropy_with_integer_labels(outputs, place)
  return jnp.sum(rows.weight * losses)


def distillation(outputs: Array, targets: Array, temperature: float) -> Array:
  """Returns KL(targets || softened outputs) / O of rows [N]; both [N, O]."""
  softened = jax.nn.log_softmax(outputs / temperature)
  return optax.kl_divergence(softened, targets) / targets.shape[1]


def _outputs(network: Network) -> Callable[[PyTree, PyTree, Rows], Array]:
  """Returns the function of rows to [N, O], in the contexts of the rows' tasks."""
  task_energies = network.task_energies
  if task_energies is None:
    raise ValueError("ctn needs a network with contexts; set config.network.context.")

  def outputs(params: PyTree, model_state: PyTree, rows: Rows) -> Array:
    return -task_energies(params, model_state, rows.x, rows.y)

  return outputs


def _rows(x: Array, y: Array, valid: Array | None = None) -> Rows:
  valid = jnp.ones(y.shape, bool) if valid is None else valid
  return Rows(x, y, valid / jnp.maximum(jnp.sum(valid), 1))


def _parts(params: PyTree) -> tuple[PyTree, PyTree]:
  """Returns the base's and the context's parameters."""
  context = {"context": params["context"]}
  return {name: params[name] for name in params if name not in context}, context
