"""EWC and Online EWC: their pull against sums and Fisher information by hand."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ebmjax.methods import _quadratic, importance
from ebmjax.testing.methods import SGD, make_problem
from ebmjax.testing.tasks import CLASSES, SIZE, batch_at, view_of
from tests.helpers import assert_same_bits
from tests.trials import make, trial_of

SBC = ("sbc",)
STRENGTH, DECAY = 30.0, 0.25


def new_batch(step: int) -> Any:
  """Returns a batch of the second task: other classes, all four seen."""
  batch = batch_at(step, labels=(2, 3))
  everything = jnp.ones(CLASSES, bool)
  return batch._replace(task=jnp.ones(SIZE, jnp.int32), seen=everything)


def steps(learner: Any, state: Any, numbers: Any, batches: Any) -> Any:
  step = jax.jit(learner.step)
  for i in numbers:
    state, _ = step(state, jax.random.key(i), batches(i))
  return state


def fisher_by_hand(state: Any, view: Any, kind: str = "argmax") -> Any:
  """Returns the mean Fisher information of a task's 38 images, all in one go."""
  network = make_problem(trial_of(("ewc", "sbc")), SGD).network
  block = importance.Block(view.x, view.y, view.valid, view.seen)
  total = importance.fisher_sum(network, state.params, {}, block, kind)
  return jax.tree.map(lambda leaf: np.asarray(leaf, float) / 38, total)


def pull_by_hand(terms: Any, params: Any) -> Any:
  """Returns sum_k F_k (theta - theta_k), from (F_k, theta_k), in float64."""
  total = jax.tree.map(lambda p: np.zeros(p.shape), params)
  for fisher, anchor in terms:
    total = jax.tree.map(
      lambda t, f, a, p: t + f * (np.asarray(p, float) - np.asarray(a, float)),
      total,
      fisher,
      anchor,
      params,
    )
  return total


def added_gradient(learner: Any, state: Any) -> Any:
  """Returns the gradient of one step beyond plain training's; rate 1, plain SGD."""
  plain = make(("finetune", *SBC), optax.sgd(1.0))
  start = plain.init(jax.random.key(0))
  start = start._replace(params=state.params, model_state=state.model_state)
  key, batch = jax.random.key(77), new_batch(77)
  (one, _), (two, _) = learner.step(state, key, batch), plain.step(start, key, batch)
  return jax.tree.map(lambda a, b: np.asarray(b - a), one.params, two.params)


def test_one_pull_equals_the_sum_of_three():
  """Also where a parameter does not matter to some task, or to none."""
  with jax.enable_x64(True):
    rng = np.random.default_rng(0)
    thetas = [{"w": jnp.asarray(rng.normal(size=(4, 5)))} for _ in range(5)]
    fishers = [{"w": 1e8 * rng.exponential(size=(4, 5)) ** 4} for _ in range(3)]
    for k in range(3):
      fishers[k]["w"][k] = 0
      fishers[k]["w"][3] = 0
    penalty = _quadratic.no_penalty(thetas[0])
    for fisher, theta in zip(fishers, thetas[1:4], strict=True):
      penalty = _quadratic.merge(penalty, jax.tree.map(jnp.asarray, fisher), theta)
    got = jax.grad(lambda p: _quadratic.quadratic_penalty(penalty, p))(thetas[4])["w"]
    terms = zip(fishers, thetas[1:4], strict=True)
    expected = 2 * pull_by_hand(terms, thetas[4])["w"]
  assert got.dtype == np.float64
  np.testing.assert_allclose(got[:3], expected[:3], rtol=1e-10)
  np.testing.assert_array_equal(got[3], 0)


@pytest.mark.parametrize("kind", ["argmax", "batch"])
def test_ewc_adds_half_the_strength_times_every_task(kind):
  learner = make(("ewc", *SBC), optax.sgd(0.1), strength=STRENGTH, fisher=kind)
  state = learner.init(jax.random.key(0))
  terms = []
  for task in range(2):
    state = steps(learner, state, range(3 * task, 3 * task + 3), new_batch)
    view = view_of(task)
    fisher = fisher_by_hand(state, view, kind)
    if kind == "batch":  # one block: its term is the mean, not one of 38
      fisher = jax.tree.map(lambda leaf: leaf * 38, fisher)
    terms.append((fisher, state.params))
    state = jax.jit(learner.consolidate)(state, jax.random.key(9), view)
  state = steps(learner, state, range(6, 9), new_batch)
  strict = make(("ewc", *SBC), optax.sgd(1.0), strength=STRENGTH, fisher=kind)
  pull = pull_by_hand(terms, state.params)
  expected = jax.tree.map(lambda g: STRENGTH * g, pull)
  assert max(np.abs(g).max() for g in jax.tree.leaves(expected)) > 1e-3
  got = added_gradient(strict, state)
  chex.assert_trees_all_close(got, expected, rtol=1e-3, atol=3e-6)


def test_online_ewc_fades_at_the_boundary_and_in_the_loss():
  changes = {"strength": STRENGTH, "decay": DECAY}
  learner = make(("online_ewc", *SBC), optax.sgd(0.1), **changes)
  state = learner.init(jax.random.key(0))
  fishers = []
  for task in range(2):
    state = steps(learner, state, range(3 * task, 3 * task + 3), new_batch)
    fishers.append(fisher_by_hand(state, view_of(task)))
    anchor = state.params
    state = jax.jit(learner.consolidate)(state, jax.random.key(9), view_of(task))
  fisher = jax.tree.map(lambda old, new: new + DECAY * old, *fishers)
  chex.assert_trees_all_close(
    state.own.penalty.importance, fisher, rtol=1e-4, atol=1e-8
  )
  assert_same_bits(state.own.penalty.anchor, anchor)
  state = steps(learner, state, range(6, 9), new_batch)
  strict = make(("online_ewc", *SBC), optax.sgd(1.0), **changes)
  pull = pull_by_hand([(fisher, anchor)], state.params)
  expected = jax.tree.map(lambda g: STRENGTH * DECAY * g, pull)
  assert max(np.abs(g).max() for g in jax.tree.leaves(expected)) > 1e-3
  got = added_gradient(strict, state)
  chex.assert_trees_all_close(got, expected, rtol=1e-3, atol=3e-6)


def test_without_boundaries_fisher_is_the_mean_over_the_batches_of_a_period():
  changes = {"strength": STRENGTH, "decay": DECAY, "consolidate_every": 2}
  learner = make(("online_ewc", *SBC), optax.sgd(0.1), **changes)
  state = learner.init(jax.random.key(0))
  expected = jax.tree.map(jnp.zeros_like, state.params)
  for period in range(2):
    found = []
    for i in (2 * period, 2 * period + 1):
      state = steps(learner, state, [i], batch_at)
      batch = batch_at(i)
      view = view_of(0)._replace(x=batch.x, y=batch.y, valid=jnp.ones(SIZE, bool))
      found.append(fisher_by_hand(state, view))
    # The helper divides by 38 images; a batch has 16.
    mean = jax.tree.map(lambda a, b: (a + b) / 2 * 38 / SIZE, *found)
    expected = jax.tree.map(lambda new, old: new + DECAY * old, mean, expected)
    got = state.own
    chex.assert_trees_all_close(got.penalty.importance, expected, rtol=1e-4, atol=1e-8)
    assert_same_bits(got.penalty.anchor, state.params)
    assert all(np.all(leaf == 0) for leaf in jax.tree.leaves(got.pending))


@pytest.mark.parametrize("method", ["ewc", "online_ewc"])
def test_strength_0_is_plain_training_to_the_bit(method):
  """Operation by operation: compiling as a whole may change last bits."""
  found = []
  for learner in (make((method, *SBC), strength=0.0), make(("finetune", *SBC))):
    state = learner.init(jax.random.key(0))
    for i in range(6):
      batch = batch_at(i) if i < 3 else new_batch(i)
      state, _ = learner.step(state, jax.random.key(i), batch)
      if i == 2:
        state = learner.end_task(state, jax.random.key(9), view_of(0))
    found.append(state.params)
  assert_same_bits(*found)


@pytest.mark.parametrize("method", ["ewc", "online_ewc"])
def test_what_mattered_is_held(method):
  """The tenth of the parameters with the most Fisher information stays, others go."""
  moved = {}
  for strength in (0.0, 1e6):
    learner = make((method, *SBC), optax.adam(3e-3), strength=strength)
    state = steps(learner, learner.init(jax.random.key(0)), range(30), batch_at)
    state = jax.jit(learner.consolidate)(state, jax.random.key(9), view_of(0))
    after = steps(learner, state, range(30, 70), new_batch)
    moved[strength] = _flat(jax.tree.map(jnp.subtract, after.params, state.params))
    fisher = _flat(state.own.penalty.importance)
  free, held = moved[0.0], moved[1e6]
  most, none = fisher > np.quantile(fisher, 0.9), fisher == 0
  assert most.any() and none.any()
  assert np.abs(held[most]).mean() < 0.3 * np.abs(free[most]).mean()
  assert np.abs(held[none]).mean() > 0.8 * np.abs(free[none]).mean()


def _flat(tree: Any) -> np.ndarray:
  return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])
