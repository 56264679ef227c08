"""Brain-inspired replay: feedback, gates by class, replay, the sum of its losses."""

from functools import cache, partial
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ebmjax import networks, objectives
from ebmjax.methods._gradient import all_energies
from ebmjax.methods.bir import (
  Replay,
  bir,
  generate_replay,
  generator_losses,
  with_feedback,
)
from ebmjax.methods.lwf import Teacher
from ebmjax.networks.feedback import Feedback, Reconstruction, divergences
from ebmjax.networks.vae import Code
from ebmjax.types import Batch, Learner, Network, Problem
from tests.two_tasks import (
  CLASSES,
  PIXELS,
  SIZE,
  after_first_task,
  batch_of,
  in_third_task,
)

HIDDEN, LATENT = 20, 3
TEMPERATURE = 2.0
FEEDBACK = Feedback(PIXELS, HIDDEN, LATENT, CLASSES, gate_off=0.5)


def plain_network() -> Network:
  return networks.make("sbc", input_shape=(PIXELS,), num_classes=CLASSES, hidden=5)


@cache  # the same functions again: nothing is compiled twice
def make(dtype: Any = jnp.uint8) -> tuple[Learner, Network]:
  network = plain_network()
  row = jax.ShapeDtypeStruct((PIXELS,), dtype)
  objective = objectives.make("ce", "all_seen")
  problem = Problem(network, objective, optax.sgd(0.1), row, 2)
  learner = bir(
    problem,
    temperature=TEMPERATURE,
    generator_hidden=HIDDEN,
    latent=LATENT,
    gate_off=0.5,
  )
  return learner, with_feedback(network, FEEDBACK, row)


def first(learner: Learner) -> Any:
  return jax.jit(learner.init)(jax.random.key(0))


@cache
def compiled(function: Any, network: Network, **fixed: Any) -> Any:
  return jax.jit(partial(function, network, FEEDBACK, **fixed))


def replay_of(network: Network, old: Teacher, key: jax.Array, batch: Batch) -> Replay:
  return compiled(generate_replay, network, temperature=TEMPERATURE)(old, key, batch)


def generated_losses(network: Network, state: Any, *given: Any) -> jax.Array:
  function = compiled(generator_losses, network)
  return function(state.params, state.model_state, *given)


def energies_of(network: Network, state: Any, x: Any) -> jax.Array:
  return all_energies(network, state.params, state.model_state, x)


def cross_entropies(network: Network, state: Any, x: Any, targets: Any) -> Any:
  """Returns [B] of targets [B, C], over all classes; T = 1."""
  found = energies_of(network, state, x)
  return -jnp.sum(targets * jax.nn.log_softmax(-found), axis=1)


def log_normal(z: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
  density = np.exp(-((z - mean) ** 2) / 2 / variance) / np.sqrt(2 * np.pi * variance)
  return np.log(density).sum(axis=-1)


def test_the_divergence_is_from_the_mixture_of_the_labels_modes():
  rng = np.random.default_rng(0)
  z, mean, log_variance = rng.normal(size=(3, SIZE, LATENT))
  mode_mean, mode_log_variance = rng.normal(size=(2, CLASSES, LATENT))
  labels = rng.dirichlet(np.ones(CLASSES), SIZE)
  labels[0] = [0, 1, 0, 0]
  of_class = np.stack(
    [log_normal(z, mode_mean[c], np.exp(mode_log_variance[c])) for c in range(CLASSES)],
    axis=1,
  )
  mixture = np.log((labels * np.exp(of_class)).sum(axis=1))
  expected = log_normal(z, mean, np.exp(log_variance)) - mixture
  made = Reconstruction(
    z, z, Code(mean, log_variance), Code(mode_mean, mode_log_variance)
  )
  made = jax.tree.map(jnp.asarray, made)
  np.testing.assert_allclose(
    divergences(made, jnp.asarray(labels)), expected, rtol=1e-4
  )


def test_a_class_switches_its_own_units_of_the_decoder_off():
  wide = Feedback(PIXELS, 500, LATENT, CLASSES, gate_off=0.8)
  given = jnp.zeros((1, 5)), jnp.zeros((1, CLASSES)), jnp.zeros((1, LATENT))
  gates = np.asarray(wide.init(jax.random.key(0), *given)["fixed"]["gates"])
  assert gates.shape == (2, CLASSES, 500)
  assert set(np.unique(gates)) == {0.0, 1.0}
  assert abs(gates.mean() - 0.2) < 4 * np.sqrt(0.2 * 0.8 / gates.size)
  assert (gates[0] != gates[1]).any() and (gates[:, 0] != gates[:, 1]).any()


def test_a_row_of_a_class_comes_from_its_mode_through_its_gates():
  given = jnp.zeros((1, 5)), jnp.zeros((1, CLASSES)), jnp.zeros((1, LATENT))
  variables = FEEDBACK.init(jax.random.key(0), *given)
  noise = np.random.default_rng(0).normal(size=(1, LATENT)).astype(np.float32)
  made: Any = FEEDBACK.apply(
    variables, jnp.array([2]), jnp.asarray(noise), method="generate"
  )
  params = jax.tree.map(np.asarray, variables["params"])
  spread = np.exp(params["mode_log_variance"][2] / 2)
  h = params["mode_mean"][2] + spread * noise
  for layer in range(2):
    dense = params["decoder"][f"Dense_{layer}"]
    gates = np.asarray(variables["fixed"]["gates"][layer, 2])
    h = np.maximum((h @ dense["kernel"] + dense["bias"]) * gates, 0)
  output = params["decoder"]["Dense_2"]
  expected = h @ output["kernel"] + output["bias"]
  np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)


def test_replay_is_of_old_classes_and_softly_labelled():
  learner, network = make()
  state, batch = after_first_task(learner), batch_of(1)
  got = replay_of(network, state.own, jax.random.key(5), batch)
  assert got.x.shape == batch.x.shape and got.x.dtype == jnp.uint8
  old = energies_of(network, state, got.x)
  np.testing.assert_allclose(got.energies, old, rtol=1e-5)
  expected = jax.nn.softmax(-old[:, :2] / TEMPERATURE)
  np.testing.assert_allclose(got.labels[:, :2], expected, rtol=1e-5)
  assert (got.labels[:, 2:] == 0).all()


def test_no_replayed_row_is_of_a_class_to_come():
  """A mode of a class to come would be seen: it is not a number."""
  learner, network = make()
  state, batch = after_first_task(learner), batch_of(1)
  feedback = state.params["feedback"] | {
    "mode_mean": jnp.where(jnp.arange(CLASSES)[:, None] < 2, 0.0, jnp.nan)
    * jnp.ones((1, LATENT))
  }
  old = state.own._replace(params=state.params | {"feedback": feedback})
  floats = batch._replace(x=batch.x.astype(jnp.float32))
  got = replay_of(network, old, jax.random.key(5), floats)
  assert np.isfinite(got.x).all()


@pytest.mark.parametrize("dtype", [jnp.uint8, jnp.float32])
def test_the_generator_s_losses(dtype):
  """Pixels: cross-entropy, over pixels. Features: squared error, over 3072 pixels."""
  learner, network = make(dtype)
  state, x = first(learner), batch_of(0, dtype).x
  labels = jax.nn.one_hot(batch_of(0).y, CLASSES)
  got = generated_losses(network, state, jax.random.key(3), x, labels)
  variables = {"params": state.params["feedback"]} | {
    "fixed": state.model_state["fixed"]
  }
  features = network.features(state.params, state.model_state, x)
  noise = jax.random.normal(jax.random.key(3), (SIZE, LATENT))
  made: Any = FEEDBACK.apply(variables, features, labels, noise)
  output = np.asarray(made.output, np.float64)
  if dtype == jnp.uint8:
    p, t = 1 / (1 + np.exp(-output)), np.asarray(x) / 255
    error, number = -(t * np.log(p) + (1 - t) * np.log(1 - p)), PIXELS
  else:
    error, number = (output - np.asarray(x)) ** 2 / 2, 3072
  expected = error.mean(axis=1) + np.asarray(divergences(made, labels)) / number
  np.testing.assert_allclose(got, expected, rtol=1e-4)


def test_the_first_task_has_no_replay_in_its_loss():
  learner, network = make()
  state, batch, key = first(learner), batch_of(0), jax.random.key(1)
  _, metrics = jax.jit(learner.step)(state, key, batch)
  labels = jax.nn.one_hot(batch.y, CLASSES)
  noise_key = jax.random.fold_in(key, 4)
  # Of the noise's 2 B rows the first B belong to the batch.
  x, both = jnp.concatenate([batch.x] * 2), jnp.concatenate([labels] * 2)
  generated = generated_losses(network, state, noise_key, x, both)
  found = energies_of(network, state, batch.x)
  losses = -jax.nn.log_softmax(-found[:, :2])[jnp.arange(SIZE), batch.y]
  expected = (losses + generated[:SIZE]).mean()
  np.testing.assert_allclose(metrics["loss"], expected, rtol=1e-5)


def test_new_and_replayed_rows_weigh_by_the_number_of_tasks():
  """In a third task 1/3 and 2/3; all losses move all parameters.

  Replayed rows are those of the boundary: a step has been taken since then.
  """
  learner, network = make()
  (state, batch), key = in_third_task(learner), jax.random.key(7)
  after, metrics = jax.jit(learner.step)(state, key, batch)
  replay_key, noise_key = (jax.random.fold_in(key, use) for use in (2, 4))
  replay = replay_of(network, state.own, replay_key, batch)
  certain = jax.nn.one_hot(batch.y, CLASSES)
  x = jnp.concatenate([batch.x, replay.x])
  labels = jnp.concatenate([certain, replay.labels])

  def loss(params: Any) -> jax.Array:
    now = state._replace(params=params)
    generated = generated_losses(network, now, noise_key, x, labels)
    predicted = cross_entropies(network, now, batch.x, certain)
    log_p = jax.nn.log_softmax(-energies_of(network, now, replay.x) / TEMPERATURE)
    distilled = -(TEMPERATURE**2) * jnp.sum(replay.labels * log_p, axis=1)
    losses = jnp.concatenate([predicted, distilled]) + generated
    return losses[:SIZE].mean() / 3 + losses[SIZE:].mean() * 2 / 3

  value, gradient = jax.jit(jax.value_and_grad(loss))(state.params)
  np.testing.assert_allclose(metrics["loss"], value, rtol=1e-5)
  moved = jax.tree.map(lambda p, g: p - 0.1 * g, state.params, gradient)
  chex.assert_trees_all_close(after.params, moved, rtol=1e-4, atol=1e-6)


def test_modes_of_classes_that_no_row_has_stay_where_they_are():
  learner, _ = make()
  state = first(learner)
  after, _ = jax.jit(learner.step)(state, jax.random.key(1), batch_of(0))
  for name in ("mode_mean", "mode_log_variance"):
    before, now = (s.params["feedback"][name] for s in (state, after))
    np.testing.assert_array_equal(now[2:], before[2:])
    assert (now[:2] != before[:2]).all()


def test_the_divergence_has_a_gradient_where_a_weight_is_too_small_to_divide_by():
  """The likeliest mode has next to no weight, the other next to no density."""
  labels = jnp.array([[1.0, 1e-38]])
  z = jnp.array([[30.0]])

  def loss(means: jax.Array) -> jax.Array:
    modes = Code(means, jnp.zeros((2, 1)))
    made = Reconstruction(z, z, Code(z, jnp.zeros((1, 1))), modes)
    return jnp.sum(divergences(made, labels))

  assert np.isfinite(jax.grad(loss)(jnp.array([[0.0], [30.0]]))).all()


def test_the_network_starts_from_the_run_s_own_key():
  """Masks that are known by it (CIFAR-100's) depend on that."""
  learner, network = make()
  params, _ = network.init(jax.random.key(0))
  chex.assert_trees_all_close(first(learner).params, params, rtol=1e-6)
  own, _ = plain_network().init(jax.random.key(0))
  chex.assert_trees_all_close(params["network"], own, rtol=1e-6)


def test_gates_are_not_trained_and_the_old_copy_stays():
  learner, _ = make()
  state = after_first_task(learner)
  kept = Teacher(state.params, state.model_state, batch_of(0).seen)
  chex.assert_trees_all_equal(state.own, kept)
  after, _ = jax.jit(learner.step)(state, jax.random.key(7), batch_of(1))
  chex.assert_trees_all_equal(after.own, kept)
  chex.assert_trees_all_equal(after.model_state["fixed"], state.model_state["fixed"])
  for mine, before in zip(
    jax.tree.leaves(after.params), jax.tree.leaves(kept.params), strict=True
  ):
    assert (mine != before).any()
