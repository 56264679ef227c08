"""Experience replay: what is replayed, with which weight, against which classes."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ebmjax import networks, objectives
from ebmjax.methods._replay import joint, row_weights
from ebmjax.methods.buffers import Drawn
from ebmjax.methods.er import ER, er
from ebmjax.methods.finetune import finetune
from ebmjax.types import Batch, Network, Problem, TaskView

PIXELS, CLASSES, SIZE = 6, 4, 8


def make_problem(
  name: str = "sbc", objective: str = "ce", negatives: str = "all_seen", tx: Any = None
) -> Problem:
  network = networks.make(name, input_shape=(PIXELS,), num_classes=CLASSES, hidden=10)
  row = jax.ShapeDtypeStruct((PIXELS,), jnp.uint8)
  tx = tx or optax.adam(1e-2)
  return Problem(network, objectives.make(objective, negatives), tx, row, 2)


def make(problem: Problem, **changes: Any) -> Any:
  return er(problem, **{"budget": SIZE, **changes})


def batch_of(task: int, seed: int = 0) -> Batch:
  rng = np.random.default_rng(10 * task + seed)
  return Batch(
    x=jnp.asarray(rng.integers(0, 256, (SIZE, PIXELS)), jnp.uint8),
    y=jnp.asarray(2 * task + rng.integers(0, 2, SIZE), jnp.int32),
    task=jnp.full(SIZE, task, jnp.int32),
    seen=jnp.arange(CLASSES) < 2 * task + 2,
    negatives=jnp.arange(CLASSES) // 2 == task,
    step=jnp.int32(seed),
  )


def view_of(task: int, valid: int = 24, permutation: Any = ()) -> TaskView:
  rng = np.random.default_rng(100 + task)
  return TaskView(
    x=jnp.asarray(rng.integers(0, 256, (24, PIXELS)), jnp.uint8),
    y=jnp.asarray(2 * task + np.arange(24) % 2, jnp.int32),
    permutation=jnp.asarray(permutation, jnp.int32),
    rows=jnp.arange(24),
    valid=jnp.arange(24) < valid,
    task=jnp.int32(task),
    seen=jnp.arange(CLASSES) < 2 * task + 2,
  )


def surprises(network: Network, state: Any, x: Any, y: Any, seen: int) -> np.ndarray:
  """Returns -log p(y | x) [B] in NumPy, over the first `seen` classes."""
  labels = jnp.arange(CLASSES)
  found, _ = network.energies(state.params, state.model_state, jnp.asarray(x), labels)
  z = -np.asarray(found, np.float64)[:, :seen]
  return np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(z)), np.asarray(y)]


@pytest.mark.parametrize(
  ("network", "objective", "negatives"),
  [("sbc", "ce", "all_seen"), ("ebm", "contrastive", "one_of_task")],
)
@pytest.mark.parametrize("every", [0, 1])
def test_with_nothing_stored_it_is_plain_training(network, objective, negatives, every):
  """Three steps of the first task; without boundaries the first step alone."""
  problem = make_problem(network, objective, negatives)
  learners = make(problem, consolidate_every=every), finetune(problem)
  states = [learner.init(jax.random.key(0)) for learner in learners]
  for i in range(1 if every else 3):
    for j, learner in enumerate(learners):
      states[j], _ = jax.jit(learner.step)(states[j], jax.random.key(i), batch_of(0, i))
  chex.assert_trees_all_equal(states[0].params, states[1].params)
  chex.assert_trees_all_equal(states[0].opt_state, states[1].opt_state)


@pytest.mark.parametrize("mode", ER.keys["replay_weights"].choices)
@pytest.mark.parametrize("stored", [SIZE, 5])
def test_the_loss_of_each_mode(mode, stored):
  """As many are stored as are drawn, or fewer: all of them are replayed."""
  problem = make_problem()
  learner = make(problem, replay_weights=mode)
  state = learner.init(jax.random.key(0))
  state = learner.consolidate(state, jax.random.key(1), view_of(0, valid=stored))
  batch = batch_of(1)
  _, metrics = jax.jit(learner.step)(state, jax.random.key(2), batch)
  view = view_of(0)
  old = surprises(problem.network, state, view.x[:stored], view.y[:stored], 4)
  new = surprises(problem.network, state, batch.x, batch.y, 4)
  expected = {
    "by_task": new.mean() / 2 + old.mean() / 2,
    "mean": np.concatenate([new, old]).mean(),
    "sum": new.mean() + old.mean(),
  }
  np.testing.assert_allclose(metrics["loss"], expected[mode], rtol=1e-5)


def test_weights_follow_the_number_of_the_task():
  valid = jnp.arange(4) < 3
  found = row_weights("by_task", valid, jnp.int32(5))
  np.testing.assert_allclose(found[:4], 1 / 5 / 4)
  np.testing.assert_allclose(found[4:], [0.8 / 3, 0.8 / 3, 0.8 / 3, 0])
  hidden = row_weights("by_task", valid, None)
  np.testing.assert_allclose([hidden[:4].sum(), hidden[4:].sum()], 0.5)
  np.testing.assert_allclose(row_weights("mean", valid, None)[:7], 1 / 7)
  np.testing.assert_allclose(row_weights("sum", valid, None)[:4], 1 / 4)


def test_both_halves_stand_against_all_seen_classes():
  drawn = Drawn(
    x=jnp.full((SIZE, PIXELS), 7, jnp.uint8),
    y=jnp.zeros(SIZE, jnp.int32),
    valid=jnp.arange(SIZE) < 3,
  )
  batch = batch_of(1)._replace(seen=jnp.array([True, False, True, True]))
  both = joint(batch, drawn)
  np.testing.assert_array_equal(both.negatives, both.seen)
  np.testing.assert_array_equal(both.seen, batch.seen)
  np.testing.assert_array_equal(both.x[:SIZE], batch.x)
  np.testing.assert_array_equal(both.x[SIZE : SIZE + 3], drawn.x[:3])
  np.testing.assert_array_equal(both.y[SIZE : SIZE + 3], 0)
  # Places that nothing stored can fill hold current rows, which are real images.
  np.testing.assert_array_equal(both.x[SIZE + 3 :], batch.x[3:])
  np.testing.assert_array_equal(both.y[SIZE + 3 :], batch.y[3:])
  # A stored class that the batch has not seen is seen now.
  ahead = batch._replace(seen=jnp.arange(CLASSES) >= 2)
  np.testing.assert_array_equal(joint(ahead, drawn).seen, [True, False, True, True])


def test_replay_keeps_old_classes():
  """After a second task, with replay the first is still known, and without it is not.

  An image's class is its bright pixel.
  """
  problem = make_problem(tx=optax.adam(2e-2))
  view = view_of(0)
  bright = 40 * jax.nn.one_hot(view.y, PIXELS) * 5
  view = view._replace(x=bright.astype(jnp.uint8))
  right = {}
  for name, learner in (("er", make(problem)), ("finetune", finetune(problem))):
    state, step = learner.init(jax.random.key(0)), jax.jit(learner.step)
    for i in range(120):
      task = i // 60
      if i == 60:
        state = learner.end_task(state, jax.random.key(7), view)
      batch = batch_of(task, i)
      images = 40 * jax.nn.one_hot(batch.y, PIXELS) * 5
      batch = batch._replace(x=images.astype(jnp.uint8))
      state, _ = step(state, jax.random.key(i), batch)
    found = jnp.argmin(learner.energies(state, view.x), axis=1)
    right[name] = float((found == view.y).mean())
  assert right["er"] == 1 and right["finetune"] < 0.5


def test_a_permuted_task_is_stored_permuted():
  order = [5, 3, 1, 0, 2, 4]
  learner = make(make_problem(), budget=24)
  state = learner.init(jax.random.key(0))
  view = view_of(0, permutation=order)
  state = learner.consolidate(state, jax.random.key(1), view)
  stored = {row.tobytes() for row in np.asarray(state.own.x)}
  assert stored == {row.tobytes() for row in np.asarray(view.x)[:, order]}


@pytest.mark.parametrize("quota", ["task", "class"])
def test_the_budget_holds(quota):
  learner = make(make_problem(), budget=9, quota=quota)
  state = learner.init(jax.random.key(0))
  kept = []
  for task in (0, 1):
    state = learner.consolidate(state, jax.random.key(task), view_of(task))
    kept.append(int(state.own.taken))
  assert kept == ([9, 8] if quota == "task" else [8, 8])


def test_without_boundaries_every_batch_is_offered():
  problem = make_problem("ebm", "contrastive", "one_of_batch")
  learner = make(problem, consolidate_every=1, budget=12)
  assert not learner.consolidates
  state = learner.init(jax.random.key(0))
  step = jax.jit(learner.step)
  for i in range(3):
    batch = batch_of(i % 2, i)._replace(task=jnp.full(SIZE, -1, jnp.int32))
    state, metrics = step(state, jax.random.key(i), batch)
    assert np.isfinite(metrics["loss"])
    assert state.own.offered == SIZE * (i + 1)
    assert state.own.taken == min(SIZE * (i + 1), 12)
  shown = {row.tobytes() for i in range(3) for row in np.asarray(batch_of(i % 2, i).x)}
  assert {row.tobytes() for row in np.asarray(state.own.x)} <= shown


def test_without_boundaries_the_halves_weigh_the_same():
  """The second step replays the first one's rows, all of them."""
  problem = make_problem()
  learner = make(problem, consolidate_every=1, budget=SIZE)
  state = learner.init(jax.random.key(0))
  first, second = (
    batch_of(task)._replace(task=jnp.full(SIZE, -1, jnp.int32)) for task in (0, 1)
  )
  state, _ = learner.step(state, jax.random.key(0), first)
  _, metrics = learner.step(state, jax.random.key(1), second)
  old, new = (surprises(problem.network, state, b.x, b.y, 4) for b in (first, second))
  np.testing.assert_allclose(metrics["loss"], (old.mean() + new.mean()) / 2, rtol=1e-5)
