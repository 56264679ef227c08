"""LwF: distillation against NumPy, its weights, and what is kept of the old network."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ebmjax import objectives
from ebmjax.methods.lwf import distil, lwf
from ebmjax.testing.tasks import CLASSES, SIZE, batch_at, view_of
from ebmjax.types import Network, Problem
from tests.helpers import assert_same_bits
from tests.trials import make

SBC = ("sbc",)
EBM = ("ebm",)
TEMPERATURE = 3.0


def softmax(scores: Any) -> np.ndarray:
  powers = np.exp(np.asarray(scores, float))
  return powers / powers.sum(axis=1, keepdims=True)


def distil_by_hand(energies: Any, answers: Any, old: Any, seen: Any) -> np.ndarray:
  """Returns T^2 times the cross-entropy [B], classes cut out and not masked."""
  p = np.zeros(energies.shape)
  p[:, seen] = softmax(-np.asarray(energies)[:, seen] / TEMPERATURE)
  q = softmax(-np.asarray(answers)[:, old] / TEMPERATURE)
  return -(TEMPERATURE**2) * (q * np.log(p[:, old])).sum(axis=1)


def at_task(task: int, seen: int, step: int = 0) -> Any:
  """Returns a batch of the labels 0 and 1 at a task, the first `seen` classes seen."""
  return batch_at(step)._replace(
    task=jnp.full(SIZE, task, jnp.int32), seen=jnp.arange(CLASSES) < seen
  )


OLD, SEEN = np.array([0, 2]), np.array([0, 2, 3])  # class 1 is yet to come


def _mask(classes: Any) -> jax.Array:
  return jnp.zeros(CLASSES, bool).at[classes].set(True)


def _energies(seed: int) -> jax.Array:
  return 4 * jax.random.normal(jax.random.key(seed), (7, CLASSES))


def test_distillation_is_cross_entropy_of_masked_logits_times_squared_temperature():
  energies, answers = _energies(0), _energies(1)
  got = distil(energies, answers, _mask(OLD), _mask(SEEN), TEMPERATURE)
  expected = distil_by_hand(energies, answers, OLD, SEEN)
  np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_new_classes_are_pushed_down_and_future_ones_left_alone():
  answers = _energies(1)

  def total(energies, answers):
    return distil(energies, answers, _mask(OLD), _mask(SEEN), TEMPERATURE).sum()

  gradient, of_answers = jax.grad(total, argnums=(0, 1))(_energies(0), answers)
  np.testing.assert_array_equal(gradient[:, 1], 0)
  assert (gradient[:, 3] < -1e-3).all()  # descent raises a new class's energy
  assert (jnp.abs(gradient[:, OLD]) > 0).all()
  np.testing.assert_array_equal(of_answers[:, [1, 3]], 0)


def test_no_old_classes_is_no_loss_and_no_gradient():
  nothing = jnp.zeros(CLASSES, bool)

  def total(energies):
    return distil(energies, energies, nothing, _mask(SEEN), TEMPERATURE).sum()

  value, gradient = jax.value_and_grad(total)(_energies(0))
  assert value == 0
  np.testing.assert_array_equal(gradient, np.zeros((7, CLASSES)))


@pytest.mark.parametrize("case", [SBC, EBM], ids="-".join)
@pytest.mark.parametrize("every", [0, 10])
def test_the_first_task_is_plain_training_to_the_bit(case, every):
  """Operation by operation: compiling as a whole may change last bits."""
  found = []
  for learner in (
    make(("lwf", *case), consolidate_every=every),
    make(("finetune", *case)),
  ):
    state = learner.init(jax.random.key(0))
    for i in range(5):
      state, metrics = learner.step(state, jax.random.key(i), batch_at(i))
    found.append((state.params, state.opt_state, metrics))
  assert_same_bits(*found)


def cross_entropy(energies: Any, batch: Any) -> float:
  p = softmax(-np.asarray(energies)[:, np.asarray(batch.seen)])
  return -np.log(p[np.arange(SIZE), np.asarray(batch.y)]).mean()


@pytest.mark.parametrize("kind,share", [("sum", 1.0), ("mean", 1 / 4)])
@pytest.mark.parametrize("task", [1, 2])
def test_the_loss_weighs_the_task_by_its_number(kind, share, task):
  learner = make(("lwf", *SBC), temperature=TEMPERATURE, distillation=kind)
  old = learner.init(jax.random.key(0))
  kept = jax.jit(learner.consolidate)(old, jax.random.key(9), view_of(0))
  now = kept._replace(params=learner.init(jax.random.key(5)).params)
  batch = at_task(task, seen=4)
  _, metrics = jax.jit(learner.step)(now, jax.random.key(1), batch)
  energies, answers = (learner.energies(s, batch.x) for s in (now, old))
  distilled = distil_by_hand(energies, answers, np.arange(2), np.arange(4)).mean()
  weight = 1 / (task + 1)
  expected = weight * cross_entropy(energies, batch) + (1 - weight) * share * distilled
  np.testing.assert_allclose(metrics["loss"], expected, rtol=1e-5)


def test_without_boundaries_it_is_kept_every_n_steps_and_both_weigh_half():
  learner = make(("lwf", *SBC), temperature=TEMPERATURE, consolidate_every=2)
  step = jax.jit(learner.step)
  state = learner.init(jax.random.key(0))
  assert not learner.consolidates
  old = None
  # What is seen falls back in between, as it may without boundaries.
  for i, seen in enumerate((2, 3, 2, 2, 4, 4)):
    batch = at_task(-1, seen, i)
    before = state
    state, metrics = step(state, jax.random.key(i), batch)
    energies = learner.energies(before, batch.x)
    expected = cross_entropy(energies, batch)
    if old is not None:
      answers = learner.energies(old, batch.x)
      both = np.arange(max(3, seen))
      distilled = distil_by_hand(energies, answers, np.arange(3), both).mean()
      expected = expected / 2 + distilled / 2
    np.testing.assert_allclose(metrics["loss"], expected, rtol=1e-5)
    if i % 2:
      old = state
      assert_same_bits(state.own.params, state.params)
  np.testing.assert_array_equal(state.own.classes, [True] * 4)


def counting_network() -> Network:
  """Returns energies w_c * sum(x) in training, and times a count of passes in test."""

  def energies(params, model_state, x, labels, train=False):
    scale = 1.0 if train else model_state["count"]
    sums = jnp.mean(x.astype(jnp.float32), axis=1) / 100
    out = scale * sums[:, None] * params["w"][None, :]
    moved = {"count": model_state["count"] + 1} if train else model_state
    if labels.ndim == 1:
      return out[:, labels], moved
    return jnp.take_along_axis(out, labels, axis=1), moved

  def init(key):
    return {"w": jax.random.normal(key, (CLASSES,))}, {"count": jnp.float32(2)}

  def features(params, model_state, x):
    pytest.fail("the method has no use for features")

  return Network(init, energies, features, CLASSES)


def test_the_old_network_answers_as_at_test_time_with_its_own_statistics():
  objective = objectives.make("ce", "all_seen")
  row = jax.ShapeDtypeStruct((12,), jnp.uint8)
  network = counting_network()
  problem = Problem(network, objective, optax.sgd(0.1), row, 2)
  learner: Any = lwf(problem, temperature=TEMPERATURE)
  state = learner.init(jax.random.key(0))
  state, _ = learner.step(state, jax.random.key(0), batch_at(0))
  assert state.model_state["count"] == 3  # one pass a step
  state = old = learner.consolidate(state, jax.random.key(9), view_of(0))
  for i in range(1, 3):
    before = state
    batch = at_task(1, 4, i)
    state, metrics = learner.step(state, jax.random.key(i), batch)
    trained, _ = network.energies(
      before.params, before.model_state, batch.x, jnp.arange(CLASSES), train=True
    )
    answers = learner.energies(old, batch.x)
    distilled = distil_by_hand(trained, answers, np.arange(2), np.arange(4)).mean()
    expected = cross_entropy(trained, batch) / 2 + distilled / 2
    np.testing.assert_allclose(metrics["loss"], expected, rtol=1e-5)
  assert (state.model_state["count"], state.own.model_state["count"]) == (5, 3)


def test_new_data_stay_largely_the_old_classes():
  """The stationary point gives a new class about a third; plain training gives all."""
  left = {}
  for name in ("lwf", "finetune"):
    learner = make((name, *SBC), optax.adam(1e-2))
    step = jax.jit(learner.step)
    state = learner.init(jax.random.key(0))
    for i in range(40):
      state, _ = step(state, jax.random.key(i), batch_at(i))
    state = learner.end_task(state, jax.random.key(9), view_of(0))
    for i in range(40, 140):
      batch = batch_at(i, labels=(2, 3))._replace(
        task=jnp.ones(SIZE, jnp.int32), seen=jnp.ones(CLASSES, bool)
      )
      state, _ = step(state, jax.random.key(i), batch)
    p = softmax(-learner.energies(state, batch_at(500, labels=(2, 3)).x))
    left[name] = p[:, :2].sum(axis=1).mean()
  assert left["lwf"] == pytest.approx(2 / 3, abs=0.1)
  assert left["finetune"] < 0.1
