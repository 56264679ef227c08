"""The capacity study's networks: counts, the plain form, images drawn from numbers."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ebmjax import networks
from ebmjax.config import loading
from ebmjax.networks.capacity import CapacityEnergy
from ebmjax.types import num_params
from tests.helpers import ROOT

CONFIG = str(ROOT / "configs" / "capacity.py")


def make_network(variants: str, **changes):
  config = loading.load(f"{CONFIG}:{variants}").network
  config.update(changes)
  noise = networks.Noise()
  return networks.make(config, input_shape=(1,), num_classes=10, normalise=noise)


@pytest.mark.parametrize(
  ("variants", "count"),
  [
    ("", 2_348_545),
    ("medium", 5_221_377),
    ("large", 33_468_417),
    ("cifar10", 1_108_737),
    ("sbc", 2_349_032),
    ("medium,sbc", 5_221_352),
    ("large,sbc", 33_465_320),
    ("cifar10,sbc", 1_109_480),
  ],
)
def test_parameter_counts_are_the_paper_s(variants, count):
  network = make_network(variants)
  params, _ = jax.eval_shape(network.init, jax.random.key(0))
  assert num_params(params) == count
  assert network.num_classes == 10


def make_module():
  module = CapacityEnergy(num_inputs=7, hidden=6, num_classes=4, label_rows=9)
  x = jax.random.normal(jax.random.key(0), (5, 7))
  variables = module.init(jax.random.key(1), x, jnp.zeros((5, 1), int))
  return partial(module.apply, variables), variables["params"], x


def plain(params: Any, x: np.ndarray, label: int) -> np.ndarray:
  """Returns energies [B] of one label as the paper writes them, in double precision."""
  params = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)

  def layer(name: str, inputs: np.ndarray) -> np.ndarray:
    return inputs @ params[name]["kernel"] + params[name]["bias"]

  hidden = np.maximum(layer("layer", x), 0)
  gate = layer("label_layer", params["embedding"][label])
  return layer("head", np.maximum(hidden * gate[None, :], 0))[:, 0]


def test_energies_are_the_plain_form_s():
  apply, params, x = make_module()
  expected = np.stack([plain(params, np.asarray(x), label) for label in range(4)], 1)
  assert (expected.std(axis=1) > 1e-3).all()  # the label matters
  shared: Any = apply(x, jnp.arange(4))
  np.testing.assert_allclose(shared, expected, rtol=1e-5, atol=1e-6)
  some: Any = apply(x, jnp.array([2, 0]))
  np.testing.assert_allclose(some, expected[:, [2, 0]], rtol=1e-5, atol=1e-6)
  labels = np.random.default_rng(0).integers(0, 4, (5, 3))
  rows: Any = apply(x, jnp.asarray(labels))
  chosen = np.take_along_axis(expected, labels, axis=1)
  np.testing.assert_allclose(rows, chosen, rtol=1e-5, atol=1e-6)


def test_features_are_the_rectified_layer():
  apply, params, x = make_module()
  found: Any = apply(x, method="features")
  layer = jax.tree.map(np.asarray, params["layer"])
  expected = np.maximum(np.asarray(x) @ layer["kernel"] + layer["bias"], 0)
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_only_asked_labels_meet_the_label_s_layer():
  """No product has as many rows as the table has labels."""
  module = CapacityEnergy(num_inputs=7, hidden=6, num_classes=10, label_rows=1000)
  x, labels = jnp.zeros((5, 7)), jnp.zeros((5, 2), int)
  variables = jax.eval_shape(module.init, jax.random.key(0), x, labels)
  for asked in (labels, jnp.arange(10)):
    program = str(jax.make_jaxpr(module.apply)(variables, x, asked))
    results = [line for line in program.splitlines() if "dot_general" in line]
    assert len(results) == 3
    assert not any("f32[1000," in line.split("=")[0] for line in results)


def test_rows_without_a_label_are_never_moved():
  network = make_network("smoke")
  params, state = network.init(jax.random.key(0))
  x = jnp.arange(4, dtype=jnp.uint32)[:, None]

  def total(params):
    return jnp.sum(network.energies(params, state, x, jnp.arange(10))[0])

  gradient = np.asarray(jax.grad(total)(params)["embedding"])
  assert gradient.shape == (1000, 32)
  assert np.abs(gradient[:10]).max() > 0
  assert not gradient[10:].any()


def test_without_rows_of_its_own_the_table_has_a_row_a_class():
  params, _ = make_network("smoke", label_rows=0).init(jax.random.key(0))
  assert params["embedding"].shape == (10, 32)
  params, _ = make_network("sbc,smoke", label_rows=0).init(jax.random.key(0))
  assert params["head"]["kernel"].shape == (32, 10)


def test_a_number_alone_decides_its_image():
  noise = networks.Noise()
  numbers = jnp.array([[3], [4_999_999], [0]], jnp.uint32)
  images = np.asarray(jax.jit(noise.__call__)(numbers))
  assert images.shape == (3, *noise.output_shape((1,))) == (3, 3072)
  assert images.dtype == np.float32
  for position, number in enumerate(numbers):
    alone = np.asarray(noise(number[None]))[0]
    assert alone.tobytes() == images[position].tobytes()
  again = np.asarray(jax.vmap(noise.__call__)(jnp.stack([numbers, numbers[::-1]])))
  assert again[1, 2].tobytes() == images[0].tobytes()


def test_pixels_are_uniform_and_images_unrelated():
  images = np.asarray(networks.Noise()(jnp.arange(50, dtype=jnp.uint32)[:, None]))
  assert -1 <= images.min() < -0.999
  assert 0.999 < images.max() < 1
  shares = np.histogram(images, bins=4, range=(-1, 1))[0] / images.size
  np.testing.assert_allclose(shares, 0.25, atol=0.01)
  correlation = np.corrcoef(images) - np.eye(50)
  assert np.abs(correlation).max() < 0.1


def test_other_seeds_draw_other_images():
  numbers = jnp.arange(2, dtype=jnp.uint32)[:, None]
  assert (networks.Noise(seed=1)(numbers) != networks.Noise()(numbers)).any()
