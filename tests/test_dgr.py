"""Deep generative replay: the generator, its images, and what both halves weigh."""

from functools import cache, partial
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax

from ebmjax import networks, objectives
from ebmjax.methods._gradient import all_energies
from ebmjax.methods.buffers import Drawn
from ebmjax.methods.dgr import GenerativeTeacher, dgr, generate_replay
from ebmjax.methods.finetune import finetune
from ebmjax.networks.cifar100 import NormTrunk
from ebmjax.networks.conv_vae import ConvVariationalAutoencoder, squared_losses
from ebmjax.networks.generators import make_generator
from ebmjax.networks.vae import Code, VariationalAutoencoder, elbo_losses
from ebmjax.types import Batch, Network, Problem, num_params
from tests.two_tasks import (
  CLASSES,
  PIXELS,
  SIZE,
  after_first_task,
  batch_of,
  end_of,
  in_third_task,
)

HIDDEN, LATENT = 7, 3
RATE = 0.1
VAE = VariationalAutoencoder(PIXELS, HIDDEN, LATENT)
ROW = jax.ShapeDtypeStruct((PIXELS,), jnp.uint8)
GENERATOR = make_generator(ROW, HIDDEN, LATENT)


@cache  # the same functions again: nothing is compiled twice
def make(network_name: str = "sbc", tx: Any = None) -> tuple[Any, Problem]:
  network = networks.make(
    network_name, input_shape=(PIXELS,), num_classes=CLASSES, hidden=5
  )
  objective = objectives.make("ce", "all_seen")
  problem = Problem(network, objective, tx or optax.sgd(RATE), ROW, 2)
  return dgr(problem, generator_hidden=HIDDEN, latent=LATENT), problem


@cache
def compiled_replay(network: Network) -> Any:
  return jax.jit(partial(generate_replay, GENERATOR, network))


def replay(problem: Problem, state: Any, key: jax.Array, batch: Batch) -> Drawn:
  return compiled_replay(problem.network)(state.teacher, key, batch)


def test_the_bound_is_the_pixels_cross_entropy_and_the_codes_divergence():
  rng = np.random.default_rng(0)
  x, logits = rng.uniform(size=(5, PIXELS)), rng.normal(size=(5, PIXELS))
  mean, log_variance = rng.normal(size=(2, 5, LATENT))
  p = 1 / (1 + np.exp(-logits))
  likelihood = -(x * np.log(p) + (1 - x) * np.log(1 - p)).sum(axis=1)
  variance = np.exp(log_variance)
  divergence = 0.5 * (mean**2 + variance - 1 - np.log(variance)).sum(axis=1)
  got = elbo_losses(jnp.asarray(x), jnp.asarray(logits), Code(mean, log_variance))
  np.testing.assert_allclose(got, (likelihood + divergence) / PIXELS, rtol=1e-5)


def test_the_generator_of_split_mnist_has_the_published_layers():
  """784-400-400 and a code of 100, mirrored; no bias for the code's variance."""
  sides = (784 * 400 + 400) + (400 * 400 + 400), (100 * 400 + 400) + (400 * 400 + 400)
  code, output = (400 * 100 + 100) + 400 * 100, 400 * 784 + 784
  vae = VariationalAutoencoder(784, 400, 100)
  shapes = jnp.zeros((1, 784)), jnp.zeros((1, 100))
  params = jax.eval_shape(vae.init, jax.random.key(0), *shapes)
  assert num_params(params) == sum(sides) + code + output


def test_the_generator_of_colours_mirrors_the_trunk():
  """1024-2000-2000, a code of 100, back to 256 channels of 2x2, doubled four times."""
  trunk = jax.eval_shape(NormTrunk().init, jax.random.key(0), jnp.zeros((1, 32, 32, 3)))
  inner = (1024 * 2000 + 2000) + (2000 * 2000 + 2000)
  code = (2000 * 100 + 100) + 2000 * 100
  outer = (100 * 2000 + 2000) + (2000 * 2000 + 2000) + (2000 * 1024 + 1024)
  doubled = ((256, 128), (128, 64), (64, 32), (32, 16))
  doubling = sum(16 * i * o + o + 2 * o for i, o in doubled)  # with their norms
  image = 9 * 16 * 3 + 3
  vae = ConvVariationalAutoencoder(2000, 100)
  shapes = jnp.zeros((1, 32, 32, 3)), jnp.zeros((1, 100))
  made = jax.eval_shape(vae.init, jax.random.key(0), *shapes)
  total = num_params(trunk["params"]) + inner + code + outer + doubling + image
  assert num_params(made["params"]) == total


def test_the_bound_of_colours_is_a_squared_error_and_the_codes_divergence():
  rng = np.random.default_rng(0)
  x, made = rng.normal(size=(2, 5, 4, 4, 3))
  mean, log_variance = rng.normal(size=(2, 5, LATENT))
  variance = np.exp(log_variance)
  divergence = 0.5 * (mean**2 + variance - 1 - np.log(variance)).sum(axis=1)
  error = 0.5 * ((x - made) ** 2).sum(axis=(1, 2, 3))
  code = Code(jnp.asarray(mean), jnp.asarray(log_variance))
  got = squared_losses(jnp.asarray(x), jnp.asarray(made), code)
  np.testing.assert_allclose(got, (error + divergence) / 48, rtol=1e-5)


def test_colours_come_back_as_they_are_stored_and_statistics_move():
  row = jax.ShapeDtypeStruct((32, 32, 3), jnp.uint8)
  generator = make_generator(row, HIDDEN, LATENT)
  variables = jax.jit(generator.init)(jax.random.key(0))
  z = jax.random.normal(jax.random.key(1), (2, LATENT))
  x = jax.jit(generator.decode)(variables, z)
  assert x.shape == (2, 32, 32, 3) and x.dtype == jnp.uint8
  assert 100 < float(x.mean()) < 156  # around the centre, before any training
  losses, moved = jax.jit(generator.losses)(variables, x, z)
  assert losses.shape == (2,) and (losses > 0).all()
  chex.assert_trees_all_equal(moved["params"], variables["params"])
  pairs = (jax.tree.leaves(v["batch_stats"]) for v in (variables, moved))
  assert all((one != other).any() for one, other in zip(*pairs, strict=True))


def test_the_first_task_is_plain_training():
  learner, problem = make()
  state = jax.jit(learner.init)(jax.random.key(0))
  after, metrics = jax.jit(learner.step)(state, jax.random.key(1), batch_of(0))
  plain = finetune(problem)
  expected, same = jax.jit(plain.step)(state.solver, jax.random.key(1), batch_of(0))
  chex.assert_trees_all_close(after.solver.params, expected.params, rtol=1e-5)
  np.testing.assert_allclose(metrics["loss"], same["loss"], rtol=1e-5)


def test_replay_is_images_with_labels_of_old_classes():
  learner, problem = make()
  state = after_first_task(learner)
  drawn = replay(problem, state, jax.random.key(5), batch_of(1))
  assert drawn.x.shape == (SIZE, PIXELS) and drawn.x.dtype == jnp.uint8
  assert len(np.unique(drawn.x)) > SIZE  # shades, not all the same
  assert drawn.valid.all()
  energies, _ = problem.network.energies(
    state.teacher.params, state.teacher.model_state, drawn.x, jnp.arange(CLASSES)
  )
  np.testing.assert_array_equal(drawn.y, np.argmin(energies[:, :2], axis=1))


def test_there_is_no_replay_before_the_first_boundary():
  learner, problem = make()
  state = jax.jit(learner.init)(jax.random.key(0))
  drawn = replay(problem, state, jax.random.key(5), batch_of(0))
  assert not drawn.valid.any()


def test_new_and_replayed_rows_weigh_by_the_number_of_tasks():
  """In a third task 1/3 and 2/3, in the network's loss and in the generator's.

  Replayed images are those of the boundary: a step has been taken since then.
  """
  learner, problem = make()
  (state, batch), key = in_third_task(learner), jax.random.key(7)
  after, metrics = jax.jit(learner.step)(state, key, batch)
  replay_key, _, generator_key = jax.random.split(key, 3)
  drawn = replay(problem, state, replay_key, batch)
  x = jnp.concatenate([batch.x, drawn.x])

  def solver_loss(params: Any) -> jax.Array:
    y = jnp.concatenate([batch.y, drawn.y])
    found = all_energies(problem.network, params, state.solver.model_state, x)
    return weighted(-jax.nn.log_softmax(-found)[jnp.arange(2 * SIZE), y])

  def generator_loss(generator: Any) -> jax.Array:
    pixels = x.astype(jnp.float32) / 255
    noise = jax.random.normal(generator_key, (2 * SIZE, LATENT))
    found: Any = VAE.apply({"params": generator}, pixels, noise)
    return weighted(elbo_losses(pixels, *found))

  networks = state.solver.params, after.solver.params
  generators = state.generator["params"], after.generator["params"]
  for loss, (old, new) in ((solver_loss, networks), (generator_loss, generators)):
    value, gradient = jax.jit(jax.value_and_grad(loss))(old)
    moved = jax.tree.map(lambda p, g: p - RATE * g, old, gradient)
    chex.assert_trees_all_close(new, moved, rtol=1e-4, atol=1e-6)
    if loss is solver_loss:
      np.testing.assert_allclose(metrics["loss"], value, rtol=1e-5)


def weighted(losses: jax.Array) -> jax.Array:
  return losses[:SIZE].mean() / 3 + losses[SIZE:].mean() * 2 / 3


def test_the_old_pair_stays_as_it_was_at_the_boundary():
  learner, _ = make()
  state = after_first_task(learner)
  kept = GenerativeTeacher(
    state.solver.params, state.solver.model_state, state.generator, batch_of(0).seen
  )
  chex.assert_trees_all_equal(state.teacher, kept)
  after, _ = jax.jit(learner.step)(state, jax.random.key(7), batch_of(1))
  chex.assert_trees_all_equal(after.teacher, kept)
  for mine, before in zip(
    jax.tree.leaves(after.generator), jax.tree.leaves(kept.generator), strict=True
  ):
    assert (mine != before).any()


def test_the_generator_learns_its_images():
  """One image alone: generated images become it."""
  learner, problem = make(tx=optax.adam(0.01))
  image = jnp.asarray([0, 255, 0, 255, 255, 0], jnp.uint8)
  batch = batch_of(0)._replace(x=jnp.tile(image[None, :], (SIZE, 1)))
  state, step = jax.jit(learner.init)(jax.random.key(0)), jax.jit(learner.step)
  for number in range(300):
    state, _ = step(state, jax.random.key(number), batch)
  state = learner.consolidate(state, jax.random.key(2), end_of(0))
  drawn = replay(problem, state, jax.random.key(5), batch)
  distance = jnp.abs(drawn.x.astype(jnp.float32) - image.astype(jnp.float32)[None, :])
  assert float(distance.mean()) < 25


def test_the_network_starts_from_the_run_s_own_key():
  """Weights that are known by it (`network.init=pytorch_seed`) depend on that."""
  learner, problem = make()
  params, _ = problem.network.init(jax.random.key(0))
  state = jax.jit(learner.init)(jax.random.key(0))
  chex.assert_trees_all_close(state.solver.params, params, rtol=1e-6)
