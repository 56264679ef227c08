"""iCaRL: herding, targets, the union with exemplars, and nearest means."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from ebmjax import networks, objectives
from ebmjax.methods._herding import herd
from ebmjax.methods.icarl import FARTHEST, binary_loss, icarl, mix_in_exemplars, targets
from ebmjax.streams.augmentation import AUGMENTATIONS
from ebmjax.types import Batch, Network, Problem, TaskView

PIXELS, CLASSES, SIZE, ROWS = 6, 4, 8, 30
AS_IT_IS = AUGMENTATIONS["none"]


def make(
  budget: int = 12, tx: Any = None, augment: Any = AS_IT_IS
) -> tuple[Any, Network]:
  network = networks.make("sbc", input_shape=(PIXELS,), num_classes=CLASSES, hidden=10)
  row = jax.ShapeDtypeStruct((PIXELS,), jnp.uint8)
  objective = objectives.make("ce", "all_seen")
  problem = Problem(network, objective, tx or optax.sgd(0.1), row, 2, augment)
  return icarl(problem, budget=budget), network


def batch_of(task: int, size: int = SIZE) -> Batch:
  rng = np.random.default_rng(task)
  return Batch(
    x=jnp.asarray(rng.integers(0, 256, (size, PIXELS)), jnp.uint8),
    y=jnp.asarray(2 * task + rng.integers(0, 2, size), jnp.int32),
    task=jnp.full(size, task, jnp.int32),
    seen=jnp.arange(CLASSES) < 2 * task + 2,
    negatives=jnp.arange(CLASSES) // 2 == task,
    step=jnp.int32(0),
  )


def view_of(task: int, permutation: Any = ()) -> TaskView:
  """Returns a task of 30 rows, of which 26 count."""
  rng = np.random.default_rng(100 + task)
  return TaskView(
    x=jnp.asarray(rng.integers(0, 256, (ROWS, PIXELS)), jnp.uint8),
    y=jnp.asarray(2 * task + rng.integers(0, 2, ROWS), jnp.int32),
    permutation=jnp.asarray(permutation, jnp.int32),
    rows=jnp.asarray(rng.permutation(ROWS), jnp.int32),
    valid=jnp.arange(ROWS) < 26,
    task=jnp.int32(task),
    seen=jnp.arange(CLASSES) < 2 * task + 2,
  )


def after_tasks(learner: Any, tasks: int) -> Any:
  state = learner.init(jax.random.key(0))
  for task in range(tasks):
    state, _ = learner.step(state, jax.random.key(task), batch_of(task))
    state = learner.consolidate(state, jax.random.key(9), view_of(task))
  return state


def unit(vectors: np.ndarray) -> np.ndarray:
  return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def unit_features(network: Network, state: Any, x: Any) -> np.ndarray:
  found = network.features(state.params, state.model_state, jnp.asarray(x))
  return unit(np.asarray(found, np.float64))


def herd_slowly(phi: np.ndarray, number: int) -> list[int]:
  """Returns the picks among rows of phi [N, F], by the definition."""
  mean = unit(phi.mean(axis=0))
  picks: list[int] = []
  for k in range(number):
    total = phi[picks].sum(axis=0)
    apart = [
      np.inf if i in picks else np.linalg.norm(mean - (phi[i] + total) / (k + 1))
      for i in range(len(phi))
    ]
    picks.append(int(np.argmin(np.array(apart))))
  return picks


def clouds() -> tuple[jax.Array, np.ndarray]:
  """Returns phi [60, 5] of length 1 and the rows' classes [60], -1 for padding."""
  rng = np.random.default_rng(0)
  owner = rng.choice([-1, 0, 1], 60)
  phi = unit(np.abs(rng.normal(size=(60, 5))) + np.eye(5)[owner] * 2)
  return jnp.asarray(phi, jnp.float32), owner


def test_herding_equals_the_naive_loop():
  phi, owner = clouds()
  members = jnp.asarray(np.arange(2)[:, None] == owner[None, :])
  picks = jax.jit(herd, static_argnums=3)(phi, members, 12, 15)
  assert picks.shape == (2, 15)
  for c in range(2):
    rows = np.flatnonzero(owner == c)
    expected = rows[herd_slowly(np.asarray(phi, np.float64)[rows], 12)]
    np.testing.assert_array_equal(picks[c, :12], expected)
    assert len({*np.asarray(picks[c, :12]).tolist()}) == 12
  # Not what one would get without the sum of the picks before.
  own = np.asarray(phi)[owner == 0]
  nearest = np.flatnonzero(owner == 0)[np.argsort(-own @ own.mean(axis=0))]
  assert (np.asarray(picks[0, :12]) != nearest[:12]).any()


def test_herding_fewer_gives_a_prefix():
  phi, owner = clouds()
  members = jnp.asarray(np.arange(2)[:, None] == owner[None, :])
  many, few = (herd(phi, members, number, 12) for number in (12, 4))
  np.testing.assert_array_equal(many[:, :4], few[:, :4])


def test_herding_knows_a_row_without_features():
  """Zeros are at 1 from the mean, here nearer than any of five rows at right angles.

  The product alone would not say so: lengths differ.
  """
  phi = jnp.concatenate([jnp.eye(5), jnp.zeros((1, 5))])
  picks = herd(phi, jnp.ones((1, 6), bool), 1, 1)
  assert picks[0, 0] == herd_slowly(np.asarray(phi), 1)[0] == 5


def test_exemplars_are_those_of_herding_and_within_budget():
  learner, network = make(budget=13)
  state = learner.init(jax.random.key(0))
  assert state.own.exemplars.shape == (CLASSES, 6, PIXELS)
  kept: dict[int, np.ndarray] = {}
  for task, number in ((0, 6), (1, 3)):
    state, _ = learner.step(state, jax.random.key(task), batch_of(task))
    view = view_of(task)
    state = jax.jit(learner.consolidate)(state, jax.random.key(9), view)
    rows = np.asarray(view.rows)[np.asarray(view.valid)]
    for c in (2 * task, 2 * task + 1):
      images = np.asarray(view.x)[rows[np.asarray(view.y)[rows] == c]]
      picks = herd_slowly(unit_features(network, state, images), number)
      kept[c] = images[picks]
    counts = np.asarray(state.own.counts)
    np.testing.assert_array_equal(counts, [number] * len(kept) + [0] * (4 - len(kept)))
    assert counts.sum() <= 13
    for c, images in kept.items():
      np.testing.assert_array_equal(state.own.exemplars[c, :number], images[:number])


def test_a_class_smaller_than_its_share():
  learner, _ = make(budget=40)
  view = view_of(0)
  few = jnp.cumsum(view.valid & (view.y[view.rows] == 1)) <= 3
  view = view._replace(valid=view.valid & ((view.y[view.rows] == 0) | few))
  state = learner.init(jax.random.key(0))
  state = learner.consolidate(state, jax.random.key(0), view)
  zeros = int((view.valid & (view.y[view.rows] == 0)).sum())
  np.testing.assert_array_equal(state.own.counts, [zeros, 3, 0, 0])
  ready = learner.ready(state)
  assert np.isfinite(ready.means).all()


def test_a_permuted_task_is_stored_permuted():
  learner, _ = make()
  order = [5, 3, 1, 0, 2, 4]
  view = view_of(0, permutation=order)
  state = learner.init(jax.random.key(0))
  state = learner.consolidate(state, jax.random.key(0), view)
  shown = {row.tobytes() for row in np.asarray(view.x)[:, order]}
  assert {row.tobytes() for row in np.asarray(state.own.exemplars[0])} <= shown


def test_prediction_is_the_nearest_mean_under_the_current_network():
  learner, network = make()
  state = after_tasks(learner, 1)
  # One more step: the features of the exemplars are not those they were chosen by.
  state, _ = learner.step(state, jax.random.key(5), batch_of(1))
  x = batch_of(3).x
  phi, own = unit_features(network, state, x), state.own
  means = [
    unit(unit_features(network, state, own.exemplars[c, : own.counts[c]]).mean(axis=0))
    for c in range(2)
  ]
  expected = np.square(phi[:, None, :] - np.stack(means)[None]).sum(axis=2)
  for ready in (learner.ready(state), state):
    found = learner.energies(ready, x)
    np.testing.assert_allclose(found[:, :2], expected, atol=1e-5)
    np.testing.assert_array_equal(found[:, 2:], FARTHEST)
  assert expected.max() <= 4 < FARTHEST


def test_before_any_exemplars_the_network_answers():
  learner, network = make()
  state = learner.init(jax.random.key(0))
  x = batch_of(0).x
  plain, _ = network.energies(state.params, state.model_state, x, jnp.arange(CLASSES))
  np.testing.assert_array_equal(learner.energies(learner.ready(state), x), plain)


def test_targets_are_soft_for_old_classes_and_hard_for_new():
  old = jnp.array([[1.0, -2.0, 3.0, 4.0], [0.0, 0.5, -1.0, 2.0]])
  known = jnp.array([True, True, False, False])
  found = targets(jnp.array([2, 0]), old, known, 2.0)
  soft = 1 / (1 + np.exp(-np.asarray(old) / 2))
  np.testing.assert_allclose(found[:, :2], soft[:, :2], rtol=1e-6)
  np.testing.assert_array_equal(found[:, 2:], [[1, 0], [0, 0]])


def test_the_loss_sums_over_seen_classes_and_leaves_future_ones_alone():
  rng = np.random.default_rng(0)
  logits = rng.normal(size=(5, CLASSES)).astype(np.float32)
  goal = rng.uniform(size=(5, CLASSES)).astype(np.float32)
  seen = jnp.array([True, True, True, False])
  value, gradient = jax.value_and_grad(binary_loss)(logits, goal, seen)
  p = 1 / (1 + np.exp(-logits))
  terms = -(goal * np.log(p) + (1 - goal) * np.log(1 - p))
  np.testing.assert_allclose(value, terms[:, :3].sum(axis=1).mean(), rtol=1e-5)
  np.testing.assert_allclose(gradient[:, :3], (p - goal)[:, :3] / 5, atol=1e-6)
  np.testing.assert_array_equal(gradient[:, 3], 0)


def test_a_step_distils_the_previous_network():
  """The first step of a task: old targets are the network's own outputs, softened."""
  learner, network = make(budget=4)
  state = after_tasks(learner, 1)
  # With a budget this small next to the task, check a step that replays nothing.
  state = state._replace(own=state.own._replace(counts=jnp.zeros(CLASSES, jnp.int32)))
  batch = batch_of(1)
  _, metrics = jax.jit(learner.step)(state, jax.random.key(3), batch)
  energies, _ = network.energies(
    state.params, state.model_state, batch.x, jnp.arange(CLASSES)
  )
  z = -np.asarray(energies, np.float64)
  goal = np.where(np.arange(4) < 2, 1 / (1 + np.exp(-z / 2)), np.eye(4)[batch.y])
  terms = np.log1p(np.exp(z)) - goal * z
  np.testing.assert_allclose(metrics["loss"], terms.sum(axis=1).mean(), rtol=1e-5)


def test_future_classes_are_not_trained():
  learner, _ = make()
  state = learner.init(jax.random.key(0))
  after, _ = learner.step(state, jax.random.key(1), batch_of(0))
  before, now = (np.asarray(s.params["head"]["kernel"]) for s in (state, after))
  np.testing.assert_array_equal(before[:, 2:], now[:, 2:])
  assert (before[:, :2] != now[:, :2]).any()


def test_exemplars_have_their_share_of_a_batch():
  learner, _ = make()
  own = after_tasks(learner, 1).own
  assert own.task_size == 26
  own = own._replace(counts=jnp.array([6, 3, 0, 0], jnp.int32))
  batch = batch_of(1, size=7000)
  x, y = mix_in_exemplars(own, jax.random.key(0), batch, AS_IT_IS)
  swapped = np.asarray(y) < 2
  # 9 / 35 of the rows, with a deviation of sqrt(0.26 * 0.74 / 7000) = 0.005.
  np.testing.assert_allclose(swapped.mean(), 9 / 35, atol=0.025)
  np.testing.assert_array_equal(np.asarray(x)[~swapped], np.asarray(batch.x)[~swapped])
  # Each valid exemplar as often as any other, under its own label; no other at all.
  stored = np.asarray(own.exemplars)
  often = []
  for c, count in ((0, 6), (1, 3)):
    rows = np.asarray(x)[np.asarray(y) == c]
    often += [(rows == image).all(axis=1).sum() for image in stored[c, :count]]
  assert sum(often) == swapped.sum()
  np.testing.assert_allclose(often, 200, atol=70)


def test_exemplars_are_changed_like_new_images_and_kept_as_they_are():
  learner, _ = make()
  own, batch = after_tasks(learner, 1).own, batch_of(1, size=200)
  key = jax.random.key(0)
  plain, y = mix_in_exemplars(own, key, batch, AS_IT_IS)
  changed, same = mix_in_exemplars(own, key, batch, lambda key, x: 255 - x)
  np.testing.assert_array_equal(y, same)
  old = np.asarray(y) < 2
  np.testing.assert_array_equal(changed[old], 255 - plain[old])
  np.testing.assert_array_equal(changed[~old], batch.x[~old])
  other, _ = make(augment=lambda key, x: 255 - x)
  state = after_tasks(learner, 1)
  one, two = (each.step(state, key, batch)[1]["loss"] for each in (learner, other))
  assert one != two


def test_the_first_task_is_not_mixed_with_anything():
  learner, _ = make()
  own, batch = learner.init(jax.random.key(0)).own, batch_of(0)
  x, y = mix_in_exemplars(own, jax.random.key(0), batch, AS_IT_IS)
  np.testing.assert_array_equal(x, batch.x)
  np.testing.assert_array_equal(y, batch.y)


def test_adam_goes_on_over_a_boundary():
  learner, _ = make(tx=optax.adam(1e-3))
  state = learner.init(jax.random.key(0))
  state, _ = learner.step(state, jax.random.key(1), batch_of(0))
  after = learner.consolidate(state, jax.random.key(2), view_of(0))
  assert after.opt_state[0].count == 1
  np.testing.assert_array_equal(
    after.own.old_params["head"]["kernel"], state.params["head"]["kernel"]
  )
  np.testing.assert_array_equal(after.own.known, [True, True, False, False])
