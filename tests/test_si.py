"""SI against a NumPy run with its own Adam, and consolidation at every step."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ebmjax.testing.tasks import CLASSES, batch_at, view_of
from tests.helpers import assert_same_bits
from tests.trials import make

SBC = ("sbc",)
RATE, STRENGTH, DAMPING = 1e-2, 5.0, 1e-3
STEPS = 5


def new_batch(step: int) -> Any:
  batch = batch_at(step, labels=(2, 3))
  return batch._replace(seen=jnp.ones(CLASSES, bool))


class NumpyAdam:
  """Adam (Kingma and Ba 2015), in float64."""

  def __init__(self, params: Any) -> None:
    self.mean = self.square = jax.tree.map(lambda p: np.zeros(p.shape), params)
    self.count = 0

  def movement(self, gradient: Any) -> Any:
    self.count += 1
    self.mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, self.mean, gradient)
    self.square = jax.tree.map(
      lambda v, g: 0.999 * v + 0.001 * g**2, self.square, gradient
    )
    bias, bias_square = 1 - 0.9**self.count, 1 - 0.999**self.count
    return jax.tree.map(
      lambda m, v: -RATE * (m / bias) / (np.sqrt(v / bias_square) + 1e-8),
      self.mean,
      self.square,
    )


def run_by_hand(learner: Any, state: Any, path_gradient: str) -> Any:
  """Returns W after two tasks of five steps, and Omega of the first."""

  def task_loss(params, batch):
    energies = learner.energies(state._replace(params=params), batch.x)
    scores = jnp.where(batch.seen[None, :], -energies, -1e9)
    log_p = jax.nn.log_softmax(scores)
    return -jnp.mean(jnp.take_along_axis(log_p, batch.y[:, None], axis=1))

  gradient_of = jax.jit(jax.grad(task_loss))
  theta = jax.tree.map(lambda p: np.asarray(p, float), state.params)
  adam = NumpyAdam(theta)
  zeros = jax.tree.map(np.zeros_like, theta)
  anchor, omega, path = theta, zeros, zeros
  for i in range(2 * STEPS):
    batch = batch_at(i) if i < STEPS else new_batch(i)
    single = jax.tree.map(lambda p: jnp.asarray(p, jnp.float32), theta)
    task = jax.tree.map(lambda g: np.asarray(g, float), gradient_of(single, batch))
    total = jax.tree.map(
      lambda g, o, p, a: g + 2 * STRENGTH * o * (p - a), task, omega, theta, anchor
    )
    moved = adam.movement(total)
    used = total if path_gradient == "total" else task
    path = jax.tree.map(lambda w, g, d: w - g * d, path, used, moved)
    theta = jax.tree.map(np.add, theta, moved)
    if i == STEPS - 1:
      omega = jax.tree.map(
        lambda w, p, a: w / ((p - a) ** 2 + DAMPING), path, theta, anchor
      )
      anchor, path = theta, zeros
  return path, omega


def run(learner: Any, state: Any) -> Any:
  step = jax.jit(learner.step)
  for i in range(2 * STEPS):
    batch = batch_at(i) if i < STEPS else new_batch(i)
    state, _ = step(state, jax.random.key(i), batch)
    if i == STEPS - 1:
      state = jax.jit(learner.consolidate)(state, jax.random.key(9), view_of(0))
      assert_same_bits(state.own.penalty.anchor, state.params)
      assert all(np.all(leaf == 0) for leaf in jax.tree.leaves(state.own.path))
  return state


@pytest.mark.parametrize("path_gradient", ["total", "task"])
def test_path_and_importance_equal_a_numpy_run_with_adam(path_gradient):
  learner = make(
    ("si", *SBC),
    optax.adam(RATE),
    strength=STRENGTH,
    damping=DAMPING,
    path_gradient=path_gradient,
  )
  start = learner.init(jax.random.key(0))
  own = run(learner, start).own
  other = {"total": "task", "task": "total"}[path_gradient]
  path, omega = run_by_hand(learner, start, path_gradient)
  largest = max(np.abs(w).max() for w in jax.tree.leaves(path))
  chex.assert_trees_all_close(own.penalty.importance, omega, rtol=1e-3, atol=1e-4)
  chex.assert_trees_all_close(own.path, path, rtol=1e-3, atol=1e-4 * largest)
  wrong, _ = run_by_hand(learner, start, other)
  with pytest.raises(AssertionError):
    chex.assert_trees_all_close(own.path, wrong, rtol=1e-2, atol=1e-3 * largest)


def train(method: str, steps: int, compiled: bool = False, **changes: Any) -> Any:
  """Returns the parameters after training, operation by operation if not compiled.

  Compiled as a whole, products and sums are contracted as the rest of a program allows:
  adding an exact 0 to a gradient then may change last bits elsewhere.
  """
  learner = make((method, *SBC), **changes)
  state = learner.init(jax.random.key(0))
  step = jax.jit(learner.step) if compiled else learner.step
  for i in range(steps):
    state, _ = step(state, jax.random.key(i), batch_at(i))
  return state.params


@pytest.fixture(scope="module")
def plain():
  """Returns the parameters after 20 steps of plain training."""
  return train("finetune", 20)


def test_the_first_task_is_plain_training_to_the_bit(plain):
  """Importance comes only after the first boundary."""
  assert_same_bits(train("si", 20, strength=100.0), plain)


@pytest.mark.parametrize("method", ["si", "online_ewc", "mas"])
def test_consolidating_at_every_step_does_nothing_at_every_second_something(
  method, plain
):
  """The anchor is where the weights are, so the pull's gradient is exactly 0."""
  first = train(method, 20, strength=100.0, consolidate_every=1)
  assert_same_bits(first, plain)
  second = train(method, 20, compiled=True, strength=100.0, consolidate_every=2)
  distances = jax.tree.map(lambda a, b: jnp.abs(a - b).max(), second, plain)
  assert max(jax.tree.leaves(distances)) > 1e-3
