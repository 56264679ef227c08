"""GSS-Greedy: what is stored, by which gradients, and what each step descends on."""

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

from ebmjax import networks, objectives
from ebmjax.methods.gss_greedy import (
  FIRST_SCORE,
  ScoredStore,
  cosines,
  empty_store,
  gss_greedy,
  max_gradient_cosine,
  offer,
)
from ebmjax.types import Batch, Learner, Problem

PIXELS, CLASSES, SIZE, BUDGET = 6, 4, 4, 10


@cache  # the same functions again: nothing is compiled twice
def make(tx: Any = None, **changes: Any) -> tuple[Learner, Problem]:
  network = networks.make("sbc", input_shape=(PIXELS,), num_classes=CLASSES, hidden=5)
  row = jax.ShapeDtypeStruct((PIXELS,), jnp.uint8)
  objective = objectives.make("ce", "all_classes")
  problem = Problem(network, objective, tx or optax.sgd(0.1), row, 2)
  settings = {"budget": BUDGET, "repeats": 2, "directions": 3, **changes}
  return gss_greedy(problem, **settings), problem


def batch_of(number: int, size: int = SIZE) -> Batch:
  rng = np.random.default_rng(number)
  everything = jnp.ones(CLASSES, bool)
  return Batch(
    x=jnp.asarray(rng.integers(0, 256, (size, PIXELS)), jnp.uint8),
    y=jnp.asarray(rng.integers(0, CLASSES, size), jnp.int32),
    task=jnp.zeros(size, jnp.int32),
    seen=everything,
    negatives=everything,
    step=jnp.int32(number),
  )


def full_store(score: float = 0.0) -> ScoredStore:
  batch = batch_of(77, BUDGET)
  return ScoredStore(batch.x, batch.y, jnp.full(BUDGET, score), jnp.int32(BUDGET))


def stored_rows(store: ScoredStore) -> set[tuple[int, ...]]:
  return {tuple(row) for row in np.asarray(store.x[: store.taken]).tolist()}


def found_alike(
  problem: Problem, state: Any, store: ScoredStore, batch: Batch, directions: int
) -> tuple[jax.Array, jax.Array]:
  compiled = jax.jit(partial(max_gradient_cosine, problem, directions=directions))
  return compiled(state, store, jax.random.key(0), batch)


def flat_gradient(problem: Problem, state: Any, batch: Batch) -> np.ndarray:
  """Returns the gradient of the mean cross-entropy over all outputs, as one vector."""

  def loss(params: Any) -> jax.Array:
    energies, _ = problem.network.energies(
      params, state.model_state, batch.x, jnp.arange(CLASSES)
    )
    return -jnp.mean(jax.nn.log_softmax(-energies)[jnp.arange(len(batch.y)), batch.y])

  gradient = jax.jit(jax.grad(loss))(state.params)
  return np.asarray(ravel_pytree(gradient)[0])


def test_cosines_are_those_of_the_whole_trees():
  rng = np.random.default_rng(0)
  mine = {"a": rng.normal(size=(2, 3)), "b": rng.normal(size=4)}
  others = {"a": rng.normal(size=(5, 2, 3)), "b": rng.normal(size=(5, 4))}
  one = np.concatenate([mine["a"].ravel(), mine["b"]])
  many = np.concatenate([others["a"].reshape(5, -1), others["b"]], axis=1)
  expected = many @ one / np.linalg.norm(one) / np.linalg.norm(many, axis=1)
  np.testing.assert_allclose(cosines(mine, others), expected, rtol=1e-5)
  assert (cosines(jax.tree.map(np.zeros_like, mine), others) == 0).all()
  vanishing = jax.tree.map(lambda leaf: (1e-25 * leaf).astype(np.float32), mine)
  assert (np.abs(cosines(vanishing, others)) <= 1).all()


def test_batches_fill_the_free_slots_and_no_more():
  store = empty_store(jax.ShapeDtypeStruct((PIXELS,), jnp.uint8), BUDGET)
  scores, like = jnp.linspace(-0.5, 0.5, SIZE), jnp.float32(1.0)
  for number in range(3):
    store = offer(store, jax.random.key(number), batch_of(number), scores, like)
  assert store.taken == BUDGET
  # The third batch of four found two slots; alike as it is, its rest is not stored.
  expected = np.concatenate([batch_of(i).x for i in range(3)])[:BUDGET]
  np.testing.assert_array_equal(store.x, expected)
  first = np.full(SIZE, FIRST_SCORE)
  np.testing.assert_allclose(
    store.score, np.concatenate([first, scores, scores[:2]]), rtol=1e-6
  )
  after = offer(store, jax.random.key(9), batch_of(9), scores, like)
  np.testing.assert_array_equal(after.x, store.x)


def test_only_a_batch_unlike_the_stored_ones_replaces_rows():
  store, batch = full_store(), batch_of(1)
  unlike = jnp.full(SIZE, -1.0)  # c_i = 0: each row is sure to win
  after = offer(store, jax.random.key(0), batch, unlike, jnp.float32(-0.1))
  new = {tuple(row) for row in np.asarray(batch.x).tolist()}
  assert len(stored_rows(after) & new) == SIZE
  assert (np.asarray(after.score) == -1).sum() == SIZE
  kept = offer(store, jax.random.key(0), batch, unlike, jnp.float32(0.0))
  np.testing.assert_array_equal(kept.x, store.x)


def test_rows_alike_are_replaced_with_the_published_chance():
  """P = c_j / (c_i + c_j): of stored 0.5 and new -0.5, 0.75 / (0.25 + 0.75)."""
  store, batch = full_store(0.5), batch_of(1)

  def replaced(key: jax.Array) -> jax.Array:
    after = offer(store, key, batch, jnp.full(SIZE, -0.5), jnp.float32(-1.0))
    return jnp.mean(after.score == -0.5) * BUDGET / SIZE

  keys = jax.random.split(jax.random.key(0), 2000)
  share = float(jnp.mean(jax.jit(jax.vmap(replaced))(keys)))
  assert abs(share - 0.75) < 4 * np.sqrt(0.75 * 0.25 / 2000 / SIZE)


def test_what_is_most_alike_is_drawn_to_be_replaced():
  store = full_store()._replace(score=jnp.where(jnp.arange(BUDGET) < 4, 0.9, -0.9))
  after = offer(
    store, jax.random.key(0), batch_of(1), jnp.full(SIZE, -1.0), jnp.float32(-1.0)
  )
  assert (np.asarray(after.score[:4]) == -1).all()
  np.testing.assert_array_equal(after.x[4:], store.x[4:])


def test_a_batch_larger_than_the_store_is_no_trouble():
  wide = batch_of(2, BUDGET + 3)
  scores = jnp.full(BUDGET + 3, -1.0)
  after = offer(full_store(), jax.random.key(0), wide, scores, jnp.float32(-1.0))
  first = {tuple(row) for row in np.asarray(wide.x[:BUDGET]).tolist()}
  assert stored_rows(after) == first


def test_a_score_is_the_greatest_cosine_to_the_stored_sets_gradients():
  learner, problem = make()
  state, batch = jax.jit(learner.init)(jax.random.key(0)), batch_of(3)
  # One set of the store's own size: its gradient does not depend on the draw.
  old = batch_of(5)
  store = ScoredStore(old.x, old.y, jnp.zeros(SIZE), jnp.int32(SIZE))
  rows, whole = found_alike(problem, state, store, batch, 1)
  direction = flat_gradient(problem, state, old)

  def cosine(vector: np.ndarray) -> float:
    return vector @ direction / np.linalg.norm(vector) / np.linalg.norm(direction)

  expected = [
    cosine(flat_gradient(problem, state, batch._replace(x=x[None], y=y[None])))
    for x, y in zip(batch.x, batch.y, strict=True)
  ]
  np.testing.assert_allclose(rows, expected, rtol=1e-4, atol=1e-5)
  mine = cosine(flat_gradient(problem, state, batch))
  np.testing.assert_allclose(whole, mine, rtol=1e-4, atol=1e-5)


def test_of_several_directions_the_nearest_counts():
  """Sets of one row each, in whatever order; empty sets count for nothing."""
  learner, problem = make()
  state = jax.jit(learner.init)(jax.random.key(0))
  batch, old = batch_of(3, 1), batch_of(5, 3)
  store = ScoredStore(old.x, old.y, jnp.zeros(3), jnp.int32(3))
  mine = flat_gradient(problem, state, batch)
  found = []
  for x, y in zip(old.x, old.y, strict=True):
    other = flat_gradient(problem, state, batch._replace(x=x[None], y=y[None]))
    found.append(mine @ other / np.linalg.norm(mine) / np.linalg.norm(other))
  assert max(found) - np.mean(found) > 0.05
  for directions in (3, 5):
    rows, whole = found_alike(problem, state, store, batch, directions)
    np.testing.assert_allclose(rows, [max(found)], rtol=1e-4)
    np.testing.assert_allclose(whole, max(found), rtol=1e-4)


def test_to_an_empty_store_nothing_is_alike():
  learner, problem = make()
  state = jax.jit(learner.init)(jax.random.key(0))
  rows, whole = found_alike(problem, state, state.own, batch_of(3), 2)
  assert (rows == -1).all() and whole == -1


def test_the_first_step_is_descent_on_the_batch_alone():
  learner, problem = make(repeats=3)
  state, batch = jax.jit(learner.init)(jax.random.key(0)), batch_of(0)
  after, _ = jax.jit(learner.step)(state, jax.random.key(1), batch)
  expected = state
  for _ in range(3):
    flat, unravel = ravel_pytree(expected.params)
    moved = flat - 0.1 * flat_gradient(problem, expected, batch)
    expected = expected._replace(params=unravel(moved))
  for mine, theirs in zip(
    jax.tree.leaves(after.params), jax.tree.leaves(expected.params), strict=True
  ):
    np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)


def test_a_later_step_descends_on_stored_rows_too():
  """Once on the batch, once on the store, whose four rows are all drawn."""
  learner, problem = make(repeats=1, budget=SIZE)
  state, batch, old = jax.jit(learner.init)(jax.random.key(0)), batch_of(0), batch_of(5)
  state = state._replace(
    own=ScoredStore(old.x, old.y, jnp.zeros(SIZE), jnp.int32(SIZE))
  )
  after, metrics = jax.jit(learner.step)(state, jax.random.key(1), batch)
  expected = state
  for rows in (batch, old):
    flat, unravel = ravel_pytree(expected.params)
    moved = flat - 0.1 * flat_gradient(problem, expected, rows)
    expected = expected._replace(params=unravel(moved))
  for mine, theirs in zip(
    jax.tree.leaves(after.params), jax.tree.leaves(expected.params), strict=True
  ):
    np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)
  assert np.isfinite(metrics["loss"])


@pytest.mark.parametrize(("stored", "orders"), [(2, ((0, 1), (1, 0))), (1, ((0, 0),))])
def test_each_repeat_has_other_stored_rows_while_there_are_any(stored, orders):
  """Batches of one row: on it, on a stored one, on it, on the other or the same."""
  learner, problem = make(repeats=2, budget=stored)
  state = jax.jit(learner.init)(jax.random.key(0))
  batch, old = batch_of(0, 1), batch_of(5, stored)
  state = state._replace(
    own=ScoredStore(old.x, old.y, jnp.zeros(stored), jnp.int32(stored))
  )
  after, _ = jax.jit(learner.step)(state, jax.random.key(1), batch)
  got, unravel = ravel_pytree(after.params)
  distances = []
  for order in orders:
    flat = ravel_pytree(state.params)[0]
    for row in order:
      for x, y in ((batch.x, batch.y), (old.x[row : row + 1], old.y[row : row + 1])):
        now = state._replace(params=unravel(flat))
        shown = batch._replace(x=x, y=y)
        flat = flat - 0.1 * flat_gradient(problem, now, shown)
    distances.append(float(jnp.abs(got - flat).max()))
  assert min(distances) < 1e-5


def test_an_empty_store_leaves_the_optimiser_s_moments_alone():
  """Descent on no rows must not count as a step of Adam's."""
  learner, _ = make(optax.adam(0.1), repeats=2)
  state = jax.jit(learner.init)(jax.random.key(0))
  state, _ = jax.jit(learner.step)(state, jax.random.key(1), batch_of(0))
  assert state.opt_state[0].count == 2
