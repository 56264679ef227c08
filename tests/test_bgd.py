"""BGD: both updates by hand, the batch's size, and deviations that stay above 0."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ebmjax.methods.bgd import bgd, shrink
from ebmjax.testing.tasks import SIZE, batch_at
from ebmjax.types import Batch, Network, Problem
from tests.trials import make

SBC = ("sbc",)


def test_draws_close_together_make_gradient_descent_on_the_sum():
  """With a tiny sigma, mu moves by step_size * sigma^2 * batch size * mean gradient."""
  std, rate = 1e-4, 1e6  # so near that no unit goes on or off
  learner = make(("bgd", *SBC), std_init=std, step_size=rate, mc_samples=50)
  state = learner.init(jax.random.key(0))
  batch = batch_at(0)

  def mean_loss(params):
    energies = learner.energies(state._replace(params=params), batch.x)[:, :2]
    log_p = jax.nn.log_softmax(-energies)
    return -jnp.mean(jnp.take_along_axis(log_p, batch.y[:, None], axis=1))

  after, metrics = jax.jit(learner.step)(state, jax.random.key(1), batch)
  loss, gradient = jax.value_and_grad(mean_loss)(state.params)
  expected = jax.tree.map(lambda g: -rate * std**2 * SIZE * g, gradient)
  moved = jax.tree.map(jnp.subtract, after.params, state.params)
  largest = max(float(jnp.abs(e).max()) for e in jax.tree.leaves(expected))
  chex.assert_trees_all_close(moved, expected, rtol=0.01, atol=0.01 * largest)
  np.testing.assert_allclose(metrics["loss"], loss, rtol=1e-3)


def test_twice_the_rows_are_twice_the_evidence():
  learner = make(("bgd", *SBC), std_init=0.1, mc_samples=3)
  state = learner.init(jax.random.key(0))
  batch = batch_at(0)
  double = batch._replace(
    x=jnp.tile(batch.x, (2, 1)), y=jnp.tile(batch.y, 2), task=jnp.tile(batch.task, 2)
  )
  once, twice = (
    learner.step(state, jax.random.key(1), each) for each in (batch, double)
  )
  moved, further = (
    jax.tree.map(jnp.subtract, after.params, state.params) for after, _ in (once, twice)
  )
  chex.assert_trees_all_close(
    further, jax.tree.map(lambda m: 2 * m, moved), rtol=1e-3, atol=1e-6
  )
  np.testing.assert_allclose(once[1]["loss"], twice[1]["loss"], rtol=1e-5)


def parabola(**changes: Any) -> Any:
  """Returns BGD of one weight under loss_b = x_b w^2 / 2.

  Its model state tells the weight that was drawn, and counts the passes.
  """

  def energies(params, model_state, x, labels, train=False):
    del labels, train
    out = x.astype(jnp.float32) * jnp.square(params["w"])[None, :] / 2
    return out, {"drawn": params["w"], "passes": model_state["passes"] + 1}

  def init(key):
    del key
    w = jnp.array([0.7])
    return {"w": w}, {"drawn": w, "passes": jnp.int32(0)}

  def objective(energies, key, batch):
    del key
    found, model_state = energies(batch.y[:, None])
    return found[:, 0], model_state

  def features(params, model_state, x):
    pytest.fail("the method has no use for features")

  row = jax.ShapeDtypeStruct((1,), jnp.uint8)
  network = Network(init, energies, features, 1)
  # No optimiser: it must not be missed.
  return bgd(Problem(network, objective, None, row, 2), **changes)


def weights_batch(*weights: int) -> Batch:
  zeros = jnp.zeros(len(weights), jnp.int32)
  one = jnp.ones(1, bool)
  x = jnp.array(weights, jnp.uint8)[:, None]
  return Batch(x, zeros, zeros, one, one, jnp.int32(0))


def test_one_step_of_one_weight_by_hand():
  """Both updates take the old sigma, and the noise that made the weight."""
  std, rate = 0.4, 1.5
  learner = parabola(std_init=std, step_size=rate, mc_samples=1)
  state = learner.init(jax.random.key(0))
  mean = 0.7
  changes = []
  for seed in range(8):
    after, metrics = learner.step(state, jax.random.key(seed), weights_batch(1, 2, 3))
    drawn = float(after.model_state["drawn"][0])
    noise = (drawn - mean) / std
    gradient = (1 + 2 + 3) * drawn
    a = std * gradient * noise / 2
    new_std = std * np.sqrt(1 + a**2) - std * a
    new_mean = mean - rate * std**2 * gradient
    np.testing.assert_allclose(after.std["w"], [new_std], rtol=1e-4)
    np.testing.assert_allclose(after.params["w"], [new_mean], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(metrics["loss"], 2 * drawn**2 / 2, rtol=1e-4)
    changes.append(abs(new_std / std - 1))
  assert max(changes) > 0.3  # the new sigma in mu's update would have shown


def test_draws_differ_and_their_mean_is_taken():
  """Of this loss E1 tends to 6 mu, and E2, the curvature times sigma, to 6 sigma."""
  std = 0.4
  learner = parabola(std_init=std, step_size=1.0, mc_samples=4000)
  state = learner.init(jax.random.key(0))
  after, _ = jax.jit(learner.step)(state, jax.random.key(3), weights_batch(1, 2, 3))
  np.testing.assert_allclose(after.params["w"], [0.7 - std**2 * 6 * 0.7], atol=0.03)
  a = std * 6 * std / 2
  np.testing.assert_allclose(after.std["w"], [std * (np.sqrt(1 + a**2) - a)], rtol=0.05)


def test_a_step_moves_running_statistics_once():
  learner = parabola(mc_samples=5)
  state = learner.init(jax.random.key(0))
  for i in range(3):
    state, _ = learner.step(state, jax.random.key(i), weights_batch(1, 2))
  assert state.model_state["passes"] == 3


def test_deviations_follow_the_formula_and_stay_above_0():
  stds = np.array([1e-4, 0.02, 0.5, 3.0])[:, None]
  curvatures = np.linspace(-20, 20, 41)[None, :]
  a = stds * curvatures / 2
  expected = stds * np.sqrt(1 + a**2) - stds * a
  stds32, curvatures32 = (
    jnp.asarray(np.broadcast_to(v, a.shape), jnp.float32) for v in (stds, curvatures)
  )
  np.testing.assert_allclose(shrink(stds32, curvatures32), expected, rtol=1e-4)
  extreme = shrink(jnp.full(4, 0.02), jnp.array([1e6, 1e9, 1e20, -1e9]))
  assert (extreme > 0).all() and np.isfinite(extreme).all()
  flat = jnp.full(3, 0.02)
  np.testing.assert_array_equal(shrink(flat, jnp.zeros(3)), flat)


@pytest.mark.parametrize("case", [SBC, ("ebm",)])
def test_weights_grow_certain_and_never_entirely_so(case):
  learner = make(("bgd", *case), std_init=0.15, mc_samples=4)
  state = learner.init(jax.random.key(0))
  step = jax.jit(learner.step)
  for i in range(60):
    state, _ = step(state, jax.random.key(i), batch_at(i))
    assert all((leaf > 0).all() for leaf in jax.tree.leaves(state.std))
  stds = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(state.std)])
  assert np.isfinite(stds).all()
  assert np.median(stds) < 0.15
  assert stds.min() < 0.8 * 0.15


def test_nothing_happens_at_a_boundary():
  assert make(("bgd", *SBC)).consolidate is None
