"""Networks over features that never learn: what they are, and what stands over them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ebmjax import networks, objectives
from ebmjax.config import loading, with_settings
from ebmjax.config.validation import resolve
from ebmjax.errors import ConfigError
from ebmjax.methods import finetune, optimisers
from ebmjax.types import Network, Problem, make_batch
from tests.helpers import ROOT, SPLIT

PIXELS, CLASSES = 12, 4
NAMES = ("raw", "fourier", "relu")


def make(name: str, shape: tuple[int, ...] = (PIXELS,), **keys: Any) -> Network:
  if name in ("fourier", "relu"):
    keys = {"num_features": 40} | keys
  if name == "patches":
    keys = {"filters": 5, "grid": 2} | keys
  return networks.make(name, input_shape=shape, num_classes=CLASSES, **keys)


def images(count: int = 7, shape: tuple[int, ...] = (PIXELS,)) -> jax.Array:
  rng = np.random.default_rng(0)
  return jnp.asarray(rng.integers(0, 256, (count, *shape)), jnp.uint8)


def test_raw_features_are_the_prepared_pixels() -> None:
  network, x = make("raw", (4, 3, 1)), images(shape=(4, 3, 1))
  found = network.features(*network.init(jax.random.key(0)), x)
  np.testing.assert_allclose(found, np.asarray(x).reshape(7, 12) / 255, rtol=1e-6)


def test_fourier_features_approach_the_gaussian_kernel() -> None:
  network, x = make("fourier", num_features=20_000, gamma=0.3), images()
  phi = np.asarray(network.features(*network.init(jax.random.key(0)), x))
  pixels = np.asarray(x) / 255
  apart = np.square(pixels[:, None] - pixels[None]).sum(axis=2)
  np.testing.assert_allclose(phi @ phi.T / 20_000, np.exp(-0.3 * apart), atol=0.04)


def test_relu_features_approach_the_arc_cosine_kernel() -> None:
  network, x = make("relu", num_features=50_000), images()
  phi = np.asarray(network.features(*network.init(jax.random.key(0)), x))
  pixels = np.asarray(x) / 255
  length = np.linalg.norm(pixels, axis=1)
  angle = np.arccos(np.clip(pixels @ pixels.T / np.outer(length, length), -1, 1))
  shape = (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi)
  kernel = np.outer(length, length) * shape / PIXELS
  np.testing.assert_allclose(phi @ phi.T / 50_000, kernel, atol=0.01)


def test_patch_features_are_means_of_rectified_responses() -> None:
  network = make("patches", (11, 9, 3))
  x = images(2, (11, 9, 3))
  params, state = network.init(jax.random.key(0))
  kernel = np.asarray(state["fixed"]["extract"]["kernel"], np.float64)
  pixels = np.asarray(x, np.float64) / 255
  found = np.asarray(network.features(params, state, x)).reshape(2, 2, 2, 2, -1)
  for cell, rows in enumerate(((0, 2), (2, 4))):  # of positions 0, 2, 4: both have 2
    means = [np.zeros((2, kernel.shape[1])), np.zeros((2, kernel.shape[1]))]
    for i in range(rows[0], rows[1] + 1, 2):
      patch = pixels[:, i : i + 6, 0:6].reshape(2, -1)
      patch -= patch.mean(axis=1, keepdims=True)
      response = patch @ kernel / np.sqrt((patch**2).mean(axis=1, keepdims=True) + 0.02)
      means[0] += np.maximum(response, 0) / 2
      means[1] += np.maximum(-response, 0) / 2
    wanted = np.stack(means, axis=1).reshape(2, -1)
    np.testing.assert_allclose(
      found[:, cell, 0].reshape(2, -1), wanted, rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("name", ["fourier", "relu"])
def test_each_seed_draws_features_of_its_own_and_trains_none(name: str) -> None:
  network, x = make(name), images()
  draws = [network.init(jax.random.key(seed)) for seed in (0, 0, 1)]
  phi = [np.asarray(network.features(*drawn, x)) for drawn in draws]
  np.testing.assert_array_equal(phi[0], phi[1])
  assert np.abs(phi[0] - phi[2]).max() > 0.1
  problem = Problem(
    network,
    objectives.make("contrastive", "one_of_batch"),
    optimisers.adam(learning_rate=0.1),
    jax.ShapeDtypeStruct((PIXELS,), jnp.uint8),
    2,
  )
  learner = finetune.finetune(problem)
  before = learner.init(jax.random.key(0))
  batch = make_batch(x, jnp.arange(7) % CLASSES, jnp.ones(CLASSES, bool))
  after, _ = learner.step(before, jax.random.key(1), batch)
  moved = network.features(after.params, after.model_state, x)
  np.testing.assert_array_equal(moved, phi[0])
  assert np.abs(learner.energies(after, x) - learner.energies(before, x)).max() > 0.1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("gate", "skip"), [("l2", True), ("none", False)])
def test_energies_are_the_papers_gate_over_the_features(
  name: str, gate: str, skip: bool
) -> None:
  network, x = make(name, gate=gate, skip=skip), images()
  params, state = network.init(jax.random.key(3))
  phi = np.asarray(network.features(params, state, x), np.float64)
  s = np.asarray(params["label_gate"]["embedding"], np.float64)
  if gate == "l2":
    s = s / np.linalg.norm(s, axis=1, keepdims=True)
  s = s + skip
  w, b = params["head"]["kernel"][:, 0], params["head"]["bias"][0]
  expected = np.maximum(phi[:, None] * s[None], 0) @ w + b
  found, _ = network.energies(params, state, x, jnp.arange(CLASSES))
  np.testing.assert_allclose(found, expected, atol=2e-5)
  pairs = jnp.asarray(np.random.default_rng(1).integers(0, CLASSES, (7, 2)))
  some, _ = network.energies(params, state, x, pairs)
  np.testing.assert_allclose(
    some, np.take_along_axis(expected, np.asarray(pairs), axis=1), atol=2e-5
  )


def test_the_trunks_features_reach_the_network_as_they_are() -> None:
  network = make("raw", (16,), backbone="conv5")
  x = jnp.linspace(-3, 300, 32).reshape(2, 16)
  np.testing.assert_array_equal(
    network.features(*network.init(jax.random.key(0)), x), x
  )


@pytest.mark.parametrize(
  ("chosen", "changes", "said"),
  [
    (SPLIT, {"network.backbone": "conv5"}, "images of at least"),
    (SPLIT, {"network.pretrained": "some.npz"}, "network.backbone='conv5'"),
    (f"{ROOT}/configs/cifar100.py", {"network.pretrained": ""}, "network.pretrained"),
    (
      f"{ROOT}/configs/cifar100.py",
      {"network.pretrained": "some.npz", "data.augment": "crop_and_flip"},
      "data.augment='none'",
    ),
  ],
)
def test_a_trunk_that_cannot_be_is_refused_in_a_sentence(
  chosen: str, changes: dict[str, Any], said: str
) -> None:
  config = with_settings(loading.load(f"{chosen}:slda"), changes)
  with pytest.raises(ConfigError, match=said):
    resolve(config)
