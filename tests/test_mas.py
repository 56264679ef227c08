"""MAS: importance against loops of gradients, and what it adds to the loss."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ebmjax.testing.tasks import CLASSES, SIZE, batch_at, view_of
from tests.helpers import assert_same_bits
from tests.trials import make

SBC, EBM = ("sbc",), ("ebm",)
KINDS = ("batch", "per_row")
both_kinds = pytest.mark.parametrize("kind", KINDS)


def long_view(count: int, valid: int) -> Any:
  """Returns a task of `count` rows of which the first `valid` count."""
  rng = np.random.default_rng(7)
  view = view_of(0)
  return view._replace(
    rows=jnp.asarray(rng.integers(0, view.x.shape[0], count)),
    valid=jnp.arange(count) < valid,
  )


def by_hand(learner: Any, state: Any, blocks: Any, seen: int, kind: str) -> Any:
  """Returns the importance from blocks of images [n, P], by a loop of jax.grad."""

  def energies(params, x):
    return learner.energies(state._replace(params=params), x)[:, :seen]

  of_mean = jax.jit(jax.grad(lambda p, x: jnp.mean(energies(p, x) ** 2)))
  of_row = jax.jit(jax.grad(lambda p, x: jnp.sum(energies(p, x) ** 2)))
  if kind == "batch":
    found = [of_mean(state.params, block) for block in blocks]
  else:
    rows = np.concatenate([np.asarray(block) for block in blocks])
    found = [of_row(state.params, rows[i : i + 1]) for i in range(len(rows))]
  return jax.tree.map(
    lambda *parts: np.mean([np.abs(np.asarray(p, float)) for p in parts], axis=0),
    *found,
  )


def assert_close(tree: Any, other: Any) -> None:
  largest = max(np.abs(leaf).max() for leaf in jax.tree.leaves(other))
  assert largest > 0
  chex.assert_trees_all_close(tree, other, rtol=1e-3, atol=1e-6 * largest)


@both_kinds
@pytest.mark.parametrize("case", [SBC, EBM], ids="-".join)
def test_importance_equals_a_loop_over_blocks_or_rows(case, kind):
  """150 of 300 rows count: a block of 128, one of 22, and one of none."""
  learner = make(("mas", *case), importance=kind)
  state = learner.init(jax.random.key(0))
  view = long_view(300, 150)
  after = jax.jit(learner.consolidate)(state, jax.random.key(9), view)
  order = np.argsort(jax.random.uniform(jax.random.key(9), (300,))[:150])
  images = np.asarray(view.x)[np.asarray(view.rows)[order]]
  blocks = (images[:128], images[128:])
  expected = by_hand(learner, state, blocks, 2, kind)
  assert_close(after.own.penalty.importance, expected)
  assert_same_bits(after.own.penalty.anchor, state.params)


def test_absolute_values_before_the_mean_are_larger():
  """Of the same outputs: per_row sums over the two classes that batch averages."""
  found = []
  for kind in KINDS:
    learner = make(("mas", *SBC), importance=kind)
    state = learner.init(jax.random.key(0))
    after = learner.consolidate(state, jax.random.key(9), view_of(0))
    found.append(jax.tree.leaves(after.own.penalty.importance))
  batch, per_row = (np.concatenate([np.ravel(p) for p in tree]) for tree in found)
  assert (per_row >= 2 * batch * (1 - 1e-4) - 1e-7).all()
  assert (per_row > 2.1 * batch + 1e-6).any()


def test_labels_do_not_matter():
  learner = make(("mas", *SBC))
  state = learner.init(jax.random.key(0))
  view = view_of(0)
  one, two = (
    learner.consolidate(state, jax.random.key(9), v)
    for v in (view, view._replace(y=1 - view.y))
  )
  assert_same_bits(one.own, two.own)


@both_kinds
def test_importance_adds_up_and_pulls_without_a_half(kind):
  strength = 0.5
  changes = {"strength": strength, "importance": kind}
  learner = make(("mas", *SBC), optax.sgd(0.1), **changes)
  state = learner.init(jax.random.key(0))
  omega: Any = jax.tree.map(lambda p: np.zeros(p.shape), state.params)
  for task in range(2):
    images = [view_of(task).x[:38]]
    found = by_hand(learner, state, images, 2 * task + 2, kind)
    omega = jax.tree.map(np.add, omega, found)
    anchor = state.params
    state = learner.consolidate(state, jax.random.key(9), view_of(task))
    for i in range(2):
      state, _ = learner.step(state, jax.random.key(i), batch_at(i))
  assert_close(state.own.penalty.importance, omega)
  assert_same_bits(state.own.penalty.anchor, anchor)
  # One step at rate 1 against plain training's from the same place.
  key, batch = jax.random.key(5), batch_at(5)
  after = []
  for name, settings in (("mas", changes), ("finetune", {})):
    strict = make((name, *SBC), optax.sgd(1.0), **settings)
    start = strict.init(jax.random.key(0))
    start = start._replace(params=state.params)
    if name == "mas":
      start = start._replace(own=state.own)
    after.append(strict.step(start, key, batch)[0].params)
  got = jax.tree.map(lambda held, free: np.asarray(free - held), *after)
  expected = jax.tree.map(
    lambda o, p, a: 2 * strength * o * np.asarray(p - a, float),
    omega,
    state.params,
    anchor,
  )
  assert max(np.abs(g).max() for g in jax.tree.leaves(expected)) > 2e-4
  chex.assert_trees_all_close(got, expected, rtol=1e-3, atol=1e-6)


@both_kinds
def test_without_boundaries_importance_accumulates_over_a_period(kind):
  learner = make(("mas", *SBC), optax.sgd(0.01), importance=kind, consolidate_every=2)
  assert not learner.consolidates
  state = learner.init(jax.random.key(0))
  step = jax.jit(learner.step)
  omega: Any = jax.tree.map(lambda p: np.zeros(p.shape), state.params)
  for i in range(4):
    batch = batch_at(i)
    state, _ = step(state, jax.random.key(i), batch)
    found = by_hand(learner, state, [batch.x], 2, kind)
    omega = jax.tree.map(lambda o, f: o + f / 2, omega, found)
    if i % 2:
      assert_close(state.own.penalty.importance, omega)
      assert_same_bits(state.own.penalty.anchor, state.params)
      assert all(np.all(leaf == 0) for leaf in jax.tree.leaves(state.own.pending))


def test_what_mattered_is_held():
  """Parameters with the most importance move less than under plain training."""
  moved = {}
  for strength in (0.0, 1e3):
    learner = make(("mas", *SBC), optax.adam(3e-3), strength=strength)
    step = jax.jit(learner.step)
    state = learner.init(jax.random.key(0))
    for i in range(30):
      state, _ = step(state, jax.random.key(i), batch_at(i))
    state = jax.jit(learner.consolidate)(state, jax.random.key(9), view_of(0))
    before = state
    for i in range(30, 70):
      batch = batch_at(i, labels=(2, 3))._replace(
        task=jnp.ones(SIZE, jnp.int32), seen=jnp.ones(CLASSES, bool)
      )
      state, _ = step(state, jax.random.key(i), batch)
    change = jax.tree.map(jnp.subtract, state.params, before.params)
    moved[strength] = _flat(change)
    importance = _flat(before.own.penalty.importance)
  free, held = moved[0.0], moved[1e3]
  most = importance > np.quantile(importance, 0.9)
  assert np.abs(held[most]).mean() < 0.3 * np.abs(free[most]).mean()


def _flat(tree: Any) -> np.ndarray:
  return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])
