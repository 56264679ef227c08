"""A variational autoencoder for each class, and the likelihood of a row under it."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ebmjax import methods, networks
from ebmjax.config import loading, with_settings
from ebmjax.config.constraints import require_classes
from ebmjax.config.validation import resolve
from ebmjax.errors import ConfigError
from ebmjax.methods import generative as module
from ebmjax.networks.strided_vae import StridedVariationalAutoencoder
from ebmjax.networks.vae import VariationalAutoencoder
from ebmjax.testing.methods import CHECKS, make_trial
from ebmjax.types import Learner, Problem, make_batch
from tests.helpers import SPLIT

PIXELS, CLASSES, ROWS = 6, 4, 7
KINDS = ("bernoulli", "gaussian", "sigmoid_gaussian")


def make(**keys: Any) -> Learner:
  network = networks.make("raw", input_shape=(PIXELS,), num_classes=CLASSES)
  row = jax.ShapeDtypeStruct((PIXELS,), jnp.float32)
  small: dict[str, Any] = {"hidden": 5, "latent": 1, "samples": 20}
  return methods.make("generative", Problem(network, Any, Any, row, 2), **small | keys)


def rows(seed: int = 0) -> jax.Array:
  return jnp.asarray(np.random.default_rng(seed).random((ROWS, PIXELS)), jnp.float32)


def autoencoder() -> tuple[VariationalAutoencoder, Any]:
  vae = VariationalAutoencoder(PIXELS, 5, 1)
  variables = vae.init(jax.random.key(2), rows(), jnp.zeros((ROWS, 1)))
  return vae, jax.tree.map(lambda leaf: 2 * leaf, variables)


@pytest.mark.parametrize("kind", KINDS)
def test_likelihoods_are_those_of_their_distributions(kind: str) -> None:
  x = np.asarray(rows(), np.float64)
  outputs = np.random.default_rng(1).normal(size=x.shape)
  p = 1 / (1 + np.exp(-outputs))
  wanted = {
    "bernoulli": (x * np.log(p) + (1 - x) * np.log(1 - p)).sum(axis=1),
    "gaussian": -np.square(x - outputs).sum(axis=1) / 2,
    "sigmoid_gaussian": -np.square(x - p).sum(axis=1) / 2,
  }[kind]
  found = module.log_likelihood(jnp.asarray(outputs), jnp.asarray(x), kind)
  np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_evidence_is_the_integral_over_codes(kind: str) -> None:
  vae, variables = autoencoder()
  x, z = rows(), np.linspace(-8, 8, 4001)
  outputs: Any = vae.apply(variables, jnp.asarray(z)[:, None], method="decode")
  log_p = module.log_likelihood(outputs[:, None], x[None], kind)
  prior = np.exp(-np.square(z) / 2) / np.sqrt(2 * np.pi)
  joint = np.exp(np.asarray(log_p, np.float64)) * prior[:, None]
  wanted = np.log(joint.sum(axis=0) * (z[1] - z[0]))
  noise = jax.random.normal(jax.random.key(0), (20_000, 1))
  found = module.log_evidence(vae, variables, x, noise, kind)
  np.testing.assert_allclose(found, wanted, atol=0.02)


def test_the_number_of_samples_matters_and_blocks_do_not(
  monkeypatch: pytest.MonkeyPatch,
) -> None:
  vae, variables = autoencoder()
  noise = jax.random.normal(jax.random.key(0), (50, 1))
  whole = module.log_evidence(vae, variables, rows(), noise, "bernoulli")
  monkeypatch.setattr(module, "_NUMBERS", 4 * ROWS * PIXELS)
  blocks = module.log_evidence(vae, variables, rows(), noise, "bernoulli")
  np.testing.assert_allclose(blocks, whole, rtol=1e-5)
  one = module.log_evidence(vae, variables, rows(), noise[:1], "bernoulli")
  assert np.abs(np.asarray(one - whole)).min() > 1e-5


def test_energies_hold_the_prior_and_no_other_label() -> None:
  learner = make()
  x, y = rows(), jnp.asarray([0, 0, 0, 0, 0, 1, 2], jnp.int32)
  batch = make_batch(x, y, jnp.ones(CLASSES, bool))
  start = learner.init(jax.random.key(0))
  state, metrics = learner.step(start, jax.random.key(1), batch)
  assert np.isfinite(metrics["loss"])
  found = np.asarray(learner.energies(state, x))
  vae = VariationalAutoencoder(PIXELS, 5, 1)
  noise = jax.random.normal(jax.random.key(0), (20, 1))
  for label, share in ((0, 5 / 7), (1, 1 / 7), (2, 1 / 7)):
    params = jax.tree.map(lambda leaf, label=label: leaf[label], state.params)
    evidence = module.log_evidence(vae, {"params": params}, x, noise, "bernoulli")
    wanted = -np.asarray(evidence) - np.log(share)
    np.testing.assert_allclose(found[:, label], wanted, rtol=1e-5)
  assert np.isfinite(found).all()
  assert (found[:, 3] > found[:, :3].max(axis=1)).all()
  assert np.isfinite(learner.energies(start, x)).all()


def test_training_raises_the_likelihood_of_own_rows_and_leaves_other_classes() -> None:
  learner = make(learning_rate=0.01)
  start = learner.init(jax.random.key(0))
  batch = make_batch(rows(), jnp.ones(ROWS, jnp.int32), jnp.ones(CLASSES, bool))
  state, _ = learner.step(start, jax.random.key(0), batch)
  first, step = learner.energies(state, batch.x)[:, 1], jax.jit(learner.step)
  for i in range(100):
    state, _ = step(state, jax.random.key(i), batch)
  assert np.mean(learner.energies(state, batch.x)[:, 1]) < np.mean(first) - 0.01
  for before, after in zip(
    jax.tree.leaves(start.params), jax.tree.leaves(state.params), strict=True
  ):
    np.testing.assert_array_equal(before[0], after[0])


def test_gaussian_scoring_is_around_the_shares_that_the_decoder_tells() -> None:
  """As the study scores MNIST: one code, and log p(x) by hand; no prior is added."""
  learner = make(samples=1, scoring="gaussian", prior=False)
  state = learner.init(jax.random.key(0))._replace(counts=jnp.asarray([5, 1, 1, 0]))
  x = np.asarray(rows(), np.float64)
  p = jax.tree.map(lambda leaf: np.asarray(leaf[0], np.float64), state.params)
  assert len([name for name in p if name.startswith("encoder")]) == 2
  draw = np.asarray(jax.random.normal(jax.random.key(0), (1, 1)))[0]

  def relu(h: np.ndarray, layer: dict[str, np.ndarray]) -> np.ndarray:
    return np.maximum(h @ layer["kernel"] + layer["bias"], 0)

  h = relu(relu(x, p["encoder_0"]), p["encoder_1"])
  mean = h @ p["coder"]["Dense_0"]["kernel"] + p["coder"]["Dense_0"]["bias"]
  log_variance = h @ p["coder"]["Dense_1"]["kernel"]
  z = mean + np.exp(log_variance / 2) * draw
  h = relu(relu(z, p["decoder"]["Dense_0"]), p["decoder"]["Dense_1"])
  last = p["decoder"]["Dense_2"]
  shares = 1 / (1 + np.exp(-(h @ last["kernel"] + last["bias"])))
  wanted = np.square(x - shares).sum(axis=1) / 2
  wanted += ((z**2 - (z - mean) ** 2 / np.exp(log_variance) - log_variance) / 2)[:, 0]
  found = np.asarray(learner.energies(state, rows()))
  np.testing.assert_allclose(found[:, :3], wanted[:, None].repeat(3, 1), rtol=1e-5)


def test_layers_are_those_on_either_side_of_the_code() -> None:
  params = make(layers=1).init(jax.random.key(0)).params
  assert "encoder_1" not in params
  shapes = {name: each["kernel"].shape[1:] for name, each in params["decoder"].items()}
  assert shapes == {"Dense_0": (1, 5), "Dense_1": (5, PIXELS)}


def conv(problem: Problem, **keys: Any) -> Learner:
  """Builds it of convolutions, over rows of 12 that are images of 3 x 4."""
  row = jax.ShapeDtypeStruct((3, 4, 1), problem.row.dtype)
  return module.generative(problem._replace(row=row), autoencoder="conv", **keys)


def test_the_battery_holds_for_convolutions() -> None:
  spec = methods.find("generative")
  keys = {"hidden": 4, "layers": 2, "latent": 2, "samples": 3}
  for name, check in CHECKS.items():
    if name not in spec.exempt:
      check(make_trial(spec._replace(make=conv, small=keys)))


def test_norms_take_the_statistics_of_own_rows_alone() -> None:
  vae = StridedVariationalAutoencoder((9, 8, 3), channels=2, latent=4, layers=3)
  x = jax.random.normal(jax.random.key(0), (6, 9 * 8 * 3))
  noise = jnp.zeros((6, 4))
  variables = vae.init(jax.random.key(1), x, noise)
  own = jnp.arange(6) < 4

  def trained(x: jax.Array) -> Any:
    return vae.apply(variables, x, noise, own, mutable=["batch_stats"])

  (outputs, code), moved = trained(x)
  assert outputs.shape == x.shape and code.mean.shape == (6, 4)
  (others, _), moved_alike = trained(x.at[4:].multiply(3.0))
  np.testing.assert_array_equal(outputs[:4], others[:4])
  for one, other in zip(
    jax.tree.leaves(moved), jax.tree.leaves(moved_alike), strict=True
  ):
    np.testing.assert_array_equal(one, other)
  first = x.reshape(6, 9, 8, 3)[:4]
  kernel = variables["params"]["inner_0"]["kernel"]
  strided = jax.lax.conv_general_dilated(
    first, kernel, (2, 2), [(1, 1)] * 2, dimension_numbers=("NHWC", "HWIO", "NHWC")
  )
  mean = np.mean(np.asarray(strided), axis=(0, 1, 2))
  found = moved["batch_stats"]["inner_norms_0"]["mean"]
  np.testing.assert_allclose(found, 0.1 * mean, rtol=1e-4)


def test_convolutions_take_images_alone() -> None:
  with pytest.raises(ConfigError, match="use 'dense'"):
    make(autoencoder="conv").init(jax.random.key(0))


@pytest.mark.parametrize("file", ["splitmnist", "cifar10"])
def test_the_source_trains_each_class_by_itself(file: str) -> None:
  config = resolve(loading.load(f"configs/{file}.py:generative,source"))
  classes = config.stream.tasks
  require_classes(config, np.ones(classes, int))
  with pytest.raises(ConfigError, match="leaves one class in a task"):
    require_classes(resolve(loading.load(SPLIT)), np.ones(classes, int))


def test_bernoulli_is_for_pixels_alone() -> None:
  config = loading.load(f"{SPLIT}:generative")
  assert resolve(config).method.likelihood == "bernoulli"
  shifted = with_settings(config, {"data.mean": (0.1,), "data.std": (0.3,)})
  with pytest.raises(ConfigError, match="use 'gaussian'"):
    resolve(shifted)
  resolve(with_settings(shifted, {"method.likelihood": "gaussian"}))
  resolve(loading.load(f"{SPLIT}:generative,boundary_free"))
