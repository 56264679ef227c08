"""Parameter generation and model adaptation: its parts, and what a step descends."""

import itertools
from functools import cache
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import lax

from ebmjax import networks, objectives
from ebmjax.methods.finetune import finetune
from ebmjax.methods.pgma import (
  INPUT_NOISE,
  Replay,
  autoencoder_loss,
  generate_replay,
  pgma,
)
from ebmjax.networks.adaptation import Adapted, WeightGenerator, as_rows
from ebmjax.networks.autoencoder import (
  ConvAutoencoder,
  make_autoencoder,
  mismatch,
)
from ebmjax.networks.strided import convolve, convolve_back
from ebmjax.types import Learner, Problem, num_params
from tests.two_tasks import (
  CLASSES,
  PIXELS,
  SIZE,
  after_first_task,
  batch_of,
  in_third_task,
)

HIDDEN, LATENT, REPLAYED, UNITS, RATE, STRENGTH = 7, 3, 5, 2, 0.1, 0.7
LAYOUT = ("NHWC", "HWIO", "NHWC")
SAME: dict[str, Any] = {"dimension_numbers": LAYOUT, "padding": "SAME"}


@cache  # the same functions again: nothing is compiled twice
def make(network_name: str = "sbc") -> tuple[Learner, Problem, Adapted]:
  network = networks.make(
    network_name, input_shape=(PIXELS,), num_classes=CLASSES, hidden=5
  )
  row = jax.ShapeDtypeStruct((PIXELS,), jnp.uint8)
  objective = objectives.make("ce", "all_classes")
  problem = Problem(network, objective, optax.sgd(RATE), row, 4)
  learner = pgma(
    problem,
    strength=STRENGTH,
    repeats=2,
    num_generated_units=UNITS,
    replay_batch=REPLAYED,
    latent=LATENT,
    generator_hidden=HIDDEN,
  )
  autoencoder = make_autoencoder(
    "dense", row.shape, hidden=HIDDEN, channels=1, latent=LATENT
  )
  generator = WeightGenerator(UNITS, CLASSES, HIDDEN)
  return learner, problem, Adapted(network, autoencoder, generator)


def larger(tree: Any, by: float = 30.0) -> Any:
  """Weights of 0.01 would leave nothing to see of what they do."""
  return jax.tree.map(lambda leaf: by * leaf, tree)


def grown(state: Any) -> Any:
  """Returns the state with all that is generated large, now and at the boundary."""
  old = state.own.teacher

  def grow(params: Any, model_state: Any, by: float) -> tuple[Any, Any]:
    generator = larger(params["generator"], by)
    autoencoder = larger(model_state["autoencoder"], by)
    return (
      params | {"generator": generator},
      model_state | {"autoencoder": autoencoder},
    )

  now = grow(state.params, state.model_state, 30.0)
  then = grow(old.params, old.model_state, 25.0)
  memory = state.own._replace(teacher=old._replace(params=then[0], model_state=then[1]))
  return state._replace(params=now[0], model_state=now[1], own=memory)


def normal(*shape: int) -> jax.Array:
  rng = np.random.default_rng(sum(shape))
  return jnp.asarray(rng.normal(size=shape), jnp.float32)


@pytest.mark.parametrize(("side", "stride"), [(28, 2), (7, 2), (8, 1)])
def test_the_product_of_patches_is_the_strided_convolution(side, stride):
  x, kernel = normal(2, side, side, 3), normal(4, 4, 3, 5)
  expected = lax.conv_general_dilated(x, kernel, (stride, stride), **SAME)
  chex.assert_trees_all_close(convolve(x, kernel, stride), expected, atol=1e-4)


@pytest.mark.parametrize(("side", "stride"), [(7, 2), (8, 1)])
def test_the_way_back_is_the_transposed_convolution(side, stride):
  x, kernel = normal(2, side, side, 5), normal(4, 4, 3, 5)

  def native(kernel: jax.Array) -> jax.Array:
    strides = (stride, stride)
    return lax.conv_transpose(x, kernel, strides, transpose_kernel=True, **SAME)

  def total(form: Any) -> Any:
    return jax.grad(lambda kernel: jnp.sum(form(kernel) ** 2))

  def ours(kernel: jax.Array) -> jax.Array:
    return convolve_back(x, kernel, stride)

  chex.assert_trees_all_close(ours(kernel), native(kernel), atol=1e-4)
  gradients = total(ours)(kernel), total(native)(kernel)
  chex.assert_trees_all_close(*gradients, rtol=1e-4, atol=1e-2)


def test_the_autoencoder_of_split_mnist_has_the_published_layers():
  """64, 128, 256 channels of 4x4 to a code of 32; back from 7x7, twice doubled."""
  inner = 16 * (64 + 64 * 128 + 128 * 256) + 64 + 128 + 256
  code = (4 * 4 * 256) * 32 + 32
  start = 32 * (7 * 7 * 256) + 7 * 7 * 256
  outer = 16 * (256 * 128 + 128 * 64 + 64) + 128 + 64 + 1
  made = make_autoencoder("conv", (784,), hidden=1000, channels=64, latent=32)
  params = jax.eval_shape(made.init, jax.random.key(0), jnp.zeros((1, 784)))
  assert num_params(params) == inner + code + start + outer


@pytest.mark.parametrize("shape", [(784,), (28, 28), (32, 32, 3)])
def test_codes_and_images_have_their_sizes(shape):
  made = make_autoencoder("conv", shape, hidden=9, channels=2, latent=LATENT)
  assert isinstance(made, ConvAutoencoder)
  rows = jnp.zeros((2, int(np.prod(shape))))
  params: Any = made.init(jax.random.key(0), rows)
  assert jax.eval_shape(made.apply, params, rows).shape == rows.shape
  codes: Any = made.apply(params, rows, method="encode")
  assert codes.shape == (2, LATENT)


def test_eight_networks_generate_the_weights_of_ten_units_each():
  generator = WeightGenerator(80, 10, 1000)
  params = jax.eval_shape(generator.init, jax.random.key(0), jnp.zeros((1, 32)))
  each = (32 * 1000 + 1000) + (1000 * 1000 + 1000) + (1000 * 100 + 100)
  assert num_params(params) == 8 * each


def test_each_part_generates_from_the_code_alone_and_for_its_own_units():
  """Unlike in the authors' code, where rows of a batch get each other's weights."""
  generator, z = WeightGenerator(13, 4, 6), normal(3, LATENT)
  params = larger(generator.init(jax.random.key(0), z))
  weights: Any = generator.apply(params, z)
  alone: Any = generator.apply(params, z[1:2])
  chex.assert_trees_all_close(weights[1:2], alone, rtol=1e-5)
  second = jax.tree.map(lambda leaf: leaf.at[0].set(0.0), params)
  changed: Any = generator.apply(second, z)
  assert (changed[:, :10] == 0).all()  # the first ten units are the first part's
  chex.assert_trees_all_equal(changed[:, 10:], weights[:, 10:])
  assert weights.shape == (3, 13, 4) and (weights[:, 10:] != 0).all()


def test_the_mismatch_is_the_unbiased_mean_discrepancy():
  codes, draws = np.random.default_rng(0).normal(size=(2, 6, LATENT))

  def kernel(a: np.ndarray, b: np.ndarray) -> float:
    distance = ((a - b) ** 2).sum()
    scales = (0.1, 0.2, 0.5, 1, 2, 5, 10)
    return sum(c / (c + distance) for c in (2 * LATENT * s for s in scales))

  pairs = list(itertools.permutations(range(6), 2))
  within = np.mean([kernel(a[i], a[j]) for a in (codes, draws) for i, j in pairs])
  between = np.mean([kernel(a, b) for a in codes for b in draws])
  got = mismatch(jnp.asarray(codes), jnp.asarray(draws))
  np.testing.assert_allclose(got, 2 * within - 2 * between, rtol=1e-5)
  alone = mismatch(jnp.asarray(codes[:1]), jnp.asarray(draws[:1]))
  np.testing.assert_allclose(alone, -2 * kernel(codes[0], draws[0]), rtol=1e-5)


@pytest.mark.parametrize("network", ["sbc", "ebm"])
def test_energies_are_the_network_s_less_what_the_row_generates(network):
  learner, problem, adapted = make(network)
  state, x = jax.jit(learner.init)(jax.random.key(0)), batch_of(0).x
  params = state.params | {"generator": larger(state.params["generator"])}
  model_state = larger(state.model_state)
  got = learner.energies(state._replace(params=params, model_state=model_state), x)
  own = params["network"], model_state["network"]
  shared, _ = problem.network.energies(*own, x, jnp.arange(CLASSES))
  features = np.asarray(problem.network.features(*own, x))
  codes: Any = adapted.autoencoder.apply(
    model_state["autoencoder"], x.astype(jnp.float32) / 255, method="encode"
  )
  weights = np.asarray(adapted.generator.apply(params["generator"], codes))
  expected = np.array(shared)
  for row, unit, label in np.ndindex(SIZE, UNITS, CLASSES):
    place = features.shape[1] - UNITS + unit  # the last ones
    expected[row, label] -= features[row, place] * weights[row, unit, label]
  assert np.abs(expected - np.asarray(shared)).max() > 0.01
  np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4)


def test_the_first_task_trains_the_network_plainly():
  """With its generated weights, which the autoencoder's newest codes decide."""
  learner, problem, _ = make()
  state = jax.jit(learner.init)(jax.random.key(0))
  after, metrics = jax.jit(learner.step)(state, jax.random.key(1), batch_of(0))
  plain = finetune(problem)
  own = state.params["network"], state.model_state["network"]
  alone = state._replace(params=own[0], model_state=own[1], own=())
  alone = alone._replace(opt_state=problem.tx.init(own[0]))
  expected, same = jax.jit(plain.step)(alone, jax.random.key(1), batch_of(0))
  # Generated weights of 1e-6 are all that the network lacks.
  chex.assert_trees_all_close(after.params["network"], expected.params, atol=1e-5)
  np.testing.assert_allclose(metrics["loss"], same["loss"], rtol=1e-4)


def test_a_batch_of_one_class_moves_no_weight_but_the_autoencoder_s():
  """Without another label seen, the network and the generator have no gradient."""
  network = make()[1].network
  objective = objectives.make("ce", "all_seen")
  row = jax.ShapeDtypeStruct((PIXELS,), jnp.uint8)
  problem = Problem(network, objective, optax.sgd(RATE), row, 4)
  learner = pgma(
    problem, num_generated_units=UNITS, replay_batch=REPLAYED, generator_hidden=HIDDEN
  )
  only = batch_of(0)._replace(y=jnp.ones(SIZE, jnp.int32), seen=jnp.arange(4) == 1)
  state = jax.jit(learner.init)(jax.random.key(0))
  after, metrics = jax.jit(learner.step)(state, jax.random.key(1), only)
  assert metrics["loss"] == 0
  chex.assert_trees_all_equal(after.params, state.params)


def test_the_autoencoder_s_loss_is_that_of_the_docstring():
  """Written out for noise that is drawn by the same keys."""
  _, problem, adapted = make()
  rows, key = as_rows(batch_of(0).x), jax.random.key(3)
  params = larger(adapted.autoencoder.init(jax.random.key(1), rows))
  z, made, codes = normal(REPLAYED, LATENT), abs(normal(REPLAYED, PIXELS)), normal(5, 3)
  unused = jnp.zeros(())
  replay = Replay(z, made, codes, unused, unused, unused, weight=jnp.ones(()))

  def apply(x: jax.Array, method: str) -> np.ndarray:
    return np.asarray(adapted.autoencoder.apply(params, x, method=method))

  def noisy(key: jax.Array, x: jax.Array) -> np.ndarray:
    noise = jax.random.truncated_normal(key, -2, 2, x.shape)
    return apply(x + INPUT_NOISE * noise, "encode")

  def length(rows: np.ndarray) -> Any:
    return np.sqrt((rows**2).sum(axis=1)).mean()

  keys = jax.random.split(key, 3)
  new, encoded = noisy(keys[0], rows), noisy(keys[2], made)
  error = ((np.asarray(rows) - apply(jnp.asarray(new), "decode")) ** 2).sum(axis=1)
  fit = mismatch(jnp.asarray(new), jax.random.normal(keys[1], new.shape))
  returned = length(encoded - np.asarray(z)) + length(apply(z, "decode") - made)
  kept = length(encoded - np.asarray(codes))
  expected = 4 / 2 * error.mean() / 20 + fit + 0.01 * returned + kept
  given: dict[str, Any] = {"rows": rows, "num_tasks": problem.num_tasks}
  got = autoencoder_loss(adapted.autoencoder, params, key, replay=replay, **given)
  np.testing.assert_allclose(got, expected, rtol=1e-4)
  first = replay._replace(weight=jnp.zeros(()))
  got = autoencoder_loss(adapted.autoencoder, params, key, replay=first, **given)
  np.testing.assert_allclose(got, 0.1 * error.mean() / 20 + fit, rtol=1e-4)


def test_replay_is_what_the_old_ones_make_of_codes():
  learner, problem, adapted = make()
  state = in_third_task(learner)[0]
  old = state.own.teacher
  replay = generate_replay(adapted, old, jax.random.key(5), REPLAYED, problem.row)
  decoded: Any = adapted.autoencoder.apply(
    old.model_state["autoencoder"], replay.z, method="decode"
  )
  np.testing.assert_array_equal(replay.rows, decoded)
  np.testing.assert_array_equal(replay.x, np.round(255 * np.asarray(decoded)))
  assert replay.x.dtype == jnp.uint8 and replay.weight == 1
  expected = adapted.all_energies(old.params, old.model_state, replay.x, replay.z)
  np.testing.assert_array_equal(replay.energies, expected)
  first = jax.jit(learner.init)(jax.random.key(0)).own.teacher
  assert (
    generate_replay(adapted, first, jax.random.key(5), REPLAYED, problem.row).weight
    == 0
  )


def test_a_later_step_holds_features_and_energies_of_replay():
  learner, problem, adapted = make()
  (state, batch), key = in_third_task(learner), jax.random.key(7)
  state = grown(state)
  after, metrics = jax.jit(learner.step)(state, key, batch)
  replay = generate_replay(
    adapted, state.own.teacher, jax.random.split(key, 3)[0], REPLAYED, problem.row
  )
  codes_by = after.model_state  # the autoencoder goes first
  model_state = state.model_state["network"]

  def loss(params: Any) -> jax.Array:
    z = adapted.encode(codes_by, as_rows(batch.x))
    found = adapted.all_energies(params, state.model_state, batch.x, z)
    task = -jax.nn.log_softmax(-found)[jnp.arange(SIZE), batch.y]
    features = problem.network.features(params["network"], model_state, replay.x)
    energies = adapted.all_energies(params, codes_by, replay.x, replay.codes)
    change = jnp.sum((features - replay.features) ** 2) / REPLAYED
    change += jnp.sum((energies - replay.energies) ** 2) / REPLAYED
    return task.mean() + STRENGTH * 4 * change

  value, gradient = jax.jit(jax.value_and_grad(loss))(state.params)
  rate = RATE * jnp.minimum(1, 3 / optax.tree.norm(gradient))  # clipped
  moved = jax.tree.map(lambda p, g: p - rate * g, state.params, gradient)
  np.testing.assert_allclose(metrics["loss"], value, rtol=1e-4)
  chex.assert_trees_all_close(after.params, moved, rtol=1e-4, atol=1e-6)


def test_the_copies_stay_and_everything_else_moves_on():
  learner, _, _ = make()
  state = after_first_task(learner)
  assert state.own.teacher.classes.sum() == 2
  after, _ = jax.jit(learner.step)(state, jax.random.key(7), batch_of(1))
  chex.assert_trees_all_equal(after.own.teacher, state.own.teacher)
  for before, now in (
    (state.params, after.params),
    (state.model_state["autoencoder"], after.model_state["autoencoder"]),
  ):
    for one, other in zip(jax.tree.leaves(before), jax.tree.leaves(now), strict=True):
      assert (one != other).any()


def test_right_after_a_boundary_nothing_has_changed_and_gradients_are_finite():
  """G(z) is then exactly what G_old makes of it: a length of 0."""
  learner, _, _ = make()
  after, _ = jax.jit(learner.step)(
    after_first_task(learner), jax.random.key(7), batch_of(1)
  )
  chex.assert_tree_all_finite(after)
