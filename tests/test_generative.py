"""A variational autoencoder for each class, and the likelihood of a row under it."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ebmjax import methods, networks
from ebmjax.config import loading, with_settings
from ebmjax.config.validation import resolve
from ebmjax.errors import ConfigError
from ebmjax.methods import generative as module
from ebmjax.networks.vae import VariationalAutoencoder
from ebmjax.types import Learner, Problem, make_batch
from tests.helpers import SPLIT

PIXELS, CLASSES, ROWS = 6, 4, 7
KINDS = ("bernoulli", "gaussian")


def make(**keys: Any) -> Learner:
  network = networks.make("raw", input_shape=(PIXELS,), num_classes=CLASSES)
  row = jax.ShapeDtypeStruct((PIXELS,), jnp.float32)
  small: dict[str, Any] = {"hidden": 5, "latent": 1, "samples": 20}
  return methods.make("generative", Problem(network, Any, Any, row, 2), **small | keys)


def rows(seed: int = 0) -> jax.Array:
  return jnp.asarray(np.random.default_rng(seed).random((ROWS, PIXELS)), jnp.float32)


def autoencoder() -> tuple[VariationalAutoencoder, Any]:
  vae = VariationalAutoencoder(PIXELS, 5, 1)
  params = vae.init(jax.random.key(2), rows(), jnp.zeros((ROWS, 1)))["params"]
  return vae, jax.tree.map(lambda leaf: 2 * leaf, params)


@pytest.mark.parametrize("kind", KINDS)
def test_likelihoods_are_those_of_their_distributions(kind: str) -> None:
  x = np.asarray(rows(), np.float64)
  outputs = np.random.default_rng(1).normal(size=x.shape)
  p = 1 / (1 + np.exp(-outputs))
  wanted = {
    "bernoulli": (x * np.log(p) + (1 - x) * np.log(1 - p)).sum(axis=1),
    "gaussian": -np.square(x - outputs).sum(axis=1) / 2,
  }[kind]
  found = module.log_likelihood(jnp.asarray(outputs), jnp.asarray(x), kind)
  np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_evidence_is_the_integral_over_codes(kind: str) -> None:
  vae, params = autoencoder()
  x, z = rows(), np.linspace(-8, 8, 4001)
  outputs: Any = vae.apply({"params": params}, jnp.asarray(z)[:, None], method="decode")
  log_p = module.log_likelihood(outputs[:, None], x[None], kind)
  prior = np.exp(-np.square(z) / 2) / np.sqrt(2 * np.pi)
  joint = np.exp(np.asarray(log_p, np.float64)) * prior[:, None]
  wanted = np.log(joint.sum(axis=0) * (z[1] - z[0]))
  noise = jax.random.normal(jax.random.key(0), (20_000, 1))
  found = module.log_evidence(vae, params, x, noise, kind)
  np.testing.assert_allclose(found, wanted, atol=0.02)


def test_the_number_of_samples_matters_and_blocks_do_not(
  monkeypatch: pytest.MonkeyPatch,
) -> None:
  vae, params = autoencoder()
  noise = jax.random.normal(jax.random.key(0), (50, 1))
  whole = module.log_evidence(vae, params, rows(), noise, "bernoulli")
  monkeypatch.setattr(module, "_NUMBERS", 4 * ROWS * PIXELS)
  blocks = module.log_evidence(vae, params, rows(), noise, "bernoulli")
  np.testing.assert_allclose(blocks, whole, rtol=1e-5)
  one = module.log_evidence(vae, params, rows(), noise[:1], "bernoulli")
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
    evidence = module.log_evidence(vae, params, x, noise, "bernoulli")
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


def test_bernoulli_is_for_pixels_alone() -> None:
  config = loading.load(f"{SPLIT}:generative")
  assert resolve(config).method.likelihood == "bernoulli"
  shifted = with_settings(config, {"data.mean": (0.1,), "data.std": (0.3,)})
  with pytest.raises(ConfigError, match="use 'gaussian'"):
    resolve(shifted)
  resolve(with_settings(shifted, {"method.likelihood": "gaussian"}))
  resolve(loading.load(f"{SPLIT}:generative,boundary_free"))
