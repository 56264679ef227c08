"""A student for each class: its own rows train it, and nothing else touches it."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ebmjax import methods, networks
from ebmjax.config import loading
from ebmjax.config.validation import resolve
from ebmjax.methods.pec import _apply
from ebmjax.types import Batch, Learner, Problem, make_batch
from tests.helpers import SPLIT

PIXELS, CLASSES = 6, 5


def make(**keys: Any) -> Learner:
  network = networks.make("raw", input_shape=(PIXELS,), num_classes=CLASSES)
  row = jax.ShapeDtypeStruct((PIXELS,), jnp.float32)
  small: dict[str, Any] = {"student": 4, "teacher": 8, "outputs": 3}
  return methods.make("pec", Problem(network, Any, Any, row, 2), **small | keys)


def batch_of(labels: list[int], seed: int = 0) -> Batch:
  rng = np.random.default_rng(seed)
  x = jnp.asarray(rng.normal(size=(len(labels), PIXELS)), jnp.float32)
  return make_batch(x, jnp.asarray(labels, jnp.int32), jnp.ones(CLASSES, bool))


def model(tree: Any, label: int) -> Any:
  return jax.tree.map(lambda leaf: np.asarray(leaf[label]), tree)


def test_energies_are_prediction_errors() -> None:
  learner = make()
  batch = batch_of([0, 1, 2, 3, 4, 0, 1])
  state, _ = learner.step(learner.init(jax.random.key(0)), jax.random.key(1), batch)
  goal = np.asarray(_apply(state.shared, batch.x))
  found = np.asarray(learner.energies(state, batch.x))
  for label in range(CLASSES):
    predicted = np.asarray(_apply(model(state.params, label), batch.x))
    wanted = np.square(predicted - goal).mean(axis=1)
    np.testing.assert_allclose(found[:, label], wanted, rtol=1e-4, atol=1e-7)


def test_a_step_is_adams_on_each_classs_own_rows() -> None:
  learner = make(learning_rate=0.01)
  before = learner.init(jax.random.key(0))
  batch = batch_of([1, 3, 1, 1, 3, 1])
  after, metrics = learner.step(before, jax.random.key(1), batch)
  goal, tx, values = _apply(before.shared, batch.x), optax.adam(0.01), []
  for label in (1, 3):
    mine = np.flatnonzero(np.asarray(batch.y) == label)

    def loss(params: Any, mine: np.ndarray = mine) -> Any:
      return jnp.mean(jnp.square(_apply(params, batch.x[mine]) - goal[mine]))

    start = model(before.params, label)
    value, gradient = jax.value_and_grad(loss)(start)
    updates, _ = tx.update(gradient, tx.init(start), start)
    wanted = optax.apply_updates(start, updates)
    jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6),
      model(after.params, label),
      wanted,
    )
    values += [float(value)] * len(mine)
  np.testing.assert_allclose(metrics["loss"], np.mean(values), rtol=1e-5)


def test_absent_classes_keep_their_bits() -> None:
  learner = make()
  state = learner.init(jax.random.key(0))
  state, _ = learner.step(state, jax.random.key(1), batch_of([0, 1, 2, 2]))
  after, _ = learner.step(state, jax.random.key(2), batch_of([3, 3, 4, 3], seed=1))
  for label in (0, 1, 2):
    for name in ("params", "moments"):
      old, new = (model(getattr(each, name), label) for each in (state, after))
      jax.tree.map(np.testing.assert_array_equal, old, new)
  np.testing.assert_array_equal(after.counts, [1, 1, 2, 3, 1])
  jax.tree.map(np.testing.assert_array_equal, state.shared, after.shared)


def test_unseen_classes_are_finite_and_last() -> None:
  learner = make()
  state = learner.init(jax.random.key(0))
  batch = batch_of([0, 1, 0])
  assert np.isfinite(learner.energies(state, batch.x)).all()
  state, _ = learner.step(state, jax.random.key(1), batch)
  found = np.asarray(learner.energies(state, batch.x))
  assert np.isfinite(found).all()
  assert (found[:, 2:].min(axis=1) > found[:, :2].max(axis=1)).all()


def test_the_rate_falls_with_the_steps_of_a_class_to_nothing() -> None:
  learner = make(decay_steps=2)
  state = learner.init(jax.random.key(0))
  for step in range(2):
    state, _ = learner.step(state, jax.random.key(step), batch_of([0, 0]))
  after, _ = learner.step(state, jax.random.key(9), batch_of([0, 1]))
  jax.tree.map(
    np.testing.assert_array_equal, model(after.params, 0), model(state.params, 0)
  )
  moved = [
    np.abs(a - b).max()
    for a, b in zip(
      jax.tree.leaves(model(after.params, 1)),
      jax.tree.leaves(model(state.params, 1)),
      strict=True,
    )
  ]
  assert max(moved) > 1e-4


@pytest.mark.parametrize("setting", ["", ",boundary_free"])
def test_it_needs_no_boundaries(setting: str) -> None:
  config = resolve(loading.load(f"{SPLIT}:pec{setting}"))
  assert (config.network.name, config.optimiser.name) == ("raw", "none")


def test_a_step_copies_no_class_that_it_does_not_train() -> None:
  """Its cost must not grow with the number of classes."""
  network = networks.make("raw", input_shape=(8,), num_classes=300)
  row = jax.ShapeDtypeStruct((8,), jnp.float32)
  learner = methods.make("pec", Problem(network, Any, Any, row, 2))
  batch = make_batch(jnp.ones((4, 8)), jnp.zeros(4, jnp.int32), num_classes=300)
  state = jax.eval_shape(learner.init, jax.random.key(0))

  def train(state: Any) -> Any:
    def body(state: Any, i: jax.Array) -> Any:
      return learner.step(state, jax.random.key(i), batch)[0], None

    return jax.lax.scan(body, state, jnp.arange(3))[0]

  compiled = jax.jit(train, donate_argnums=0).lower(state).compile()
  kept = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state.params))
  needed: Any = compiled.memory_analysis()
  assert needed.temp_size_in_bytes < kept / 10
