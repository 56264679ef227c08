r"""GSS-Greedy: the stored rows are those whose gradients differ in direction.

Aljundi et al. (2019), gradient-based sample selection, the greedy form. It knows no
tasks. A step goes over its batch of B rows `repeats` times; each time it descends on
the batch, then on B rows of the store (other ones each time, if there are any). After
that, at the new weights, it decides what to store, by the cosine to G_r, the gradients
of up to `directions` disjoint sets of B stored rows:

    s_i = max_r cos(g_i, G_r)  of each row of the batch,  s = max_r cos(g, G_r)  of all

While there is room, the batch is stored with its s_i (0.1 for the very first rows).
When the store is full and s < 0, the batch brings something new: each row competes with
a stored one, drawn with a probability that grows with its score, and

    P(row i replaces row j) = c_j / (c_i + c_j),  c = (score + 1) / 2

so that similar rows make room for different ones. Otherwise nothing changes.

The authors use gradient descent without momentum (`config.optimiser.name=sgd`), on ten
rows at a time, over all outputs, each image once. Nothing happens at a boundary.

State: the optimiser's, and the store: x [budget, ...], labels and scores [budget], and
their number.
"""

from functools import partial
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from ebmjax.config.schema import Count
from ebmjax.methods import buffers, studies
from ebmjax.methods._gradient import GradientState, row_losses
from ebmjax.methods._replay import replayed, shares, weighted_learner
from ebmjax.methods.buffers import Drawn
from ebmjax.methods.spec import MethodSpec
from ebmjax.types import Batch, Learner, Problem, PyTree

FIRST_SCORE = 0.1  # of the first rows, which nothing can be compared with
ROWS_AT_ONCE = 10  # whose gradients are in memory together


class ScoredStore(NamedTuple):
  """Stored rows, each with its score on arrival; the first `taken` slots are in use."""

  x: Array  # [K, ...]
  y: Array  # [K] int32
  score: Array  # [K] float32, a cosine
  taken: Array  # [] int32


def gss_greedy(
  problem: Problem,
  *,
  budget: Annotated[Count, "total number of stored images"] = 1000,
  repeats: Annotated[Count, "updates per batch"] = 3,
  directions: Annotated[
    Count, "gradients of stored rows that a new one is compared with"
  ] = 10,
) -> Learner:
  """Returns descent on the batch and on rows that were stored for their gradients."""
  plain = weighted_learner(problem)

  def init(key: Array) -> GradientState:
    return plain.init(key)._replace(own=empty_store(problem.row, budget))

  def descend(
    state: GradientState, key: Array, batch: Batch, valid: Array
  ) -> tuple[GradientState, Array]:
    moved, metrics = plain.step(state._replace(own=shares(valid)), key, batch)
    # Without rows there is no step, not even one of the optimiser's momentum.
    chosen = partial(jnp.where, jnp.any(valid))
    return jax.tree.map(chosen, moved._replace(own=state.own), state), metrics["loss"]

  def step(
    state: GradientState, key: Array, batch: Batch
  ) -> tuple[GradientState, dict[str, Array]]:
    size, store = batch.y.shape[0], state.own
    draw_key, repeat_key, select_key = jax.random.split(key, 3)
    old = _cycle_filled(_sets(draw_key, store, repeats, size))

    def repeat(state: GradientState, inputs: Any) -> tuple[GradientState, Array]:
      (new_key, old_key), drawn = inputs
      state, value = descend(state, new_key, batch, jnp.ones(size, bool))
      state, _ = descend(state, old_key, replayed(batch, drawn), drawn.valid)
      return state, value

    keys = jax.random.split(repeat_key, (repeats, 2))
    # The store stays outside the loop: it would be copied every time.
    state, losses = lax.scan(repeat, state._replace(own=()), (keys, old))
    cosine_key, replace_key = jax.random.split(select_key)
    found = max_gradient_cosine(problem, state, store, cosine_key, batch, directions)
    store = offer(store, replace_key, batch, *found)
    return state._replace(own=store), {"loss": losses[0]}

  return Learner(init, step, None, plain.energies)


def empty_store(row: jax.ShapeDtypeStruct, budget: int) -> ScoredStore:
  """Returns a store of `budget` slots for rows like `row`, none of them taken."""
  x = jnp.zeros((budget, *row.shape), row.dtype)
  return ScoredStore(x, jnp.zeros(budget, jnp.int32), jnp.zeros(budget), jnp.int32(0))


def max_gradient_cosine(
  problem: Problem,
  state: GradientState,
  store: ScoredStore,
  key: Array,
  batch: Batch,
  directions: int,
) -> tuple[Array, Array]:
  """Returns scores [B] of the rows and [] of the whole batch; -1 if the store is empty.

  A score is the greatest cosine between its gradient and those of stored sets.
  """
  size = batch.y.shape[0]
  draw_key, old_key, whole_key, row_key = jax.random.split(key, 4)
  old = _sets(draw_key, store, directions, size)

  def gradient(key: Array, rows: Batch, valid: Array) -> PyTree:
    def loss(params: PyTree) -> Array:
      losses, _ = row_losses(problem, params, state.model_state, key, rows, train=False)
      return jnp.sum(shares(valid) * losses)

    return jax.grad(loss)(state.params)

  def of_set(inputs: tuple[Array, Drawn]) -> PyTree:
    key, drawn = inputs
    return gradient(key, replayed(batch, drawn), drawn.valid)

  stored = lax.map(of_set, (jax.random.split(old_key, directions), old))

  def greatest(new: PyTree) -> Array:
    return jnp.max(jnp.where(old.valid.any(axis=1), cosines(new, stored), -1.0))

  def of_row(inputs: tuple[Array, Array, Array, Array]) -> Array:
    key, x, y, task = inputs
    row = batch._replace(x=x[None], y=y[None], task=task[None])
    return greatest(gradient(key, row, jnp.ones(1, bool)))

  rows = (jax.random.split(row_key, size), batch.x, batch.y, batch.task)
  whole = greatest(gradient(whole_key, batch, jnp.ones(size, bool)))
  return lax.map(of_row, rows, batch_size=min(ROWS_AT_ONCE, size)), whole


def cosines(tree: PyTree, others: PyTree) -> Array:
  """Returns [R]: the cosines of a tree to R others, stacked along a leading axis."""
  dots = jax.vmap(optax.tree.vdot, in_axes=(None, 0))(tree, others)
  lengths = jax.vmap(optax.tree.norm)(others) * optax.tree.norm(tree)
  # The squares of a tiny gradient may underflow where its products do not.
  tiny = jnp.finfo(dots.dtype).tiny
  found = jnp.where(lengths > tiny, dots / jnp.maximum(lengths, tiny), 0)
  return jnp.clip(found, -1, 1)


def offer(
  store: ScoredStore, key: Array, batch: Batch, scores: Array, whole: Array
) -> ScoredStore:
  """Returns the store after a batch: scores [B] of its rows, `whole` [] of it."""
  budget, size = store.y.shape[0], batch.y.shape[0]
  rows, free = jnp.arange(size), budget - store.taken
  scores = jnp.where(store.taken == 0, FIRST_SCORE, scores)
  into_free = jnp.where(rows < free, store.taken + rows, budget)
  draw_key, replace_key = jax.random.split(key)
  rival, chance = _rivals(draw_key, store, scores)
  wins = (whole < 0) & (jax.random.uniform(replace_key, (size,)) < chance)
  slot = jnp.where(free > 0, into_free, jnp.where(wins, rival, budget))
  return ScoredStore(
    x=store.x.at[slot].set(batch.x, mode="drop"),
    y=store.y.at[slot].set(batch.y, mode="drop"),
    score=store.score.at[slot].set(scores, mode="drop"),
    taken=jnp.minimum(store.taken + size, budget),
  )


def _rivals(key: Array, store: ScoredStore, scores: Array) -> tuple[Array, Array]:
  """Returns distinct stored rows [B] for those of the batch, and their chances [B].

  Rows beyond the size of the store get a slot out of range.
  """
  budget, size = store.y.shape[0], scores.shape[0]
  low, high = jnp.min(store.score), jnp.max(store.score)
  weight = (store.score - low) / (high - low + 0.01)
  drawn = jnp.log(weight + 1e-12) + jax.random.gumbel(key, (budget,))
  _, slot = lax.top_k(drawn, min(size, budget))
  slot = jnp.pad(slot, (0, size - slot.shape[0]), constant_values=budget)
  old = (store.score.at[slot].get(mode="fill", fill_value=-1.0) + 1) / 2
  new = (scores + 1) / 2
  return slot, old / jnp.maximum(new + old, jnp.finfo(new.dtype).tiny)


def _sets(key: Array, store: ScoredStore, number: int, size: int) -> Drawn:
  """Returns disjoint sets of stored rows: every leaf is [number, size, ...]."""
  drawn = buffers.draw(key, store, number * size)
  return jax.tree.map(lambda leaf: leaf.reshape(number, size, *leaf.shape[1:]), drawn)


def _cycle_filled(sets: Drawn) -> Drawn:
  """Repeats the non-empty sets in place of the empty ones."""
  filled = jnp.sum(sets.valid.any(axis=1))
  place = jnp.arange(sets.valid.shape[0]) % jnp.maximum(filled, 1)
  return jax.tree.map(lambda leaf: leaf[place], sets)


GSS_GREEDY = MethodSpec(
  gss_greedy,
  title="GSS-Greedy",
  mixes_tasks=True,
  single_rows=True,
  all_outputs=True,
  published={
    "splitmnist": studies.ALJUNDI_2019.setting("splitmnist", budget=300, repeats=3),
    "permmnist": studies.ALJUNDI_2019.setting("permmnist", budget=300, repeats=3),
    "cifar10": studies.ALJUNDI_2019.setting("cifar10", budget=1000, repeats=10),
  },
  exempt={"one_class_keeps_state": "its rows may be stored"},
  cost=3.0,
)
