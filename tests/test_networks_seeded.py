"""The weights that PyTorch draws for a seed, against numbers that it drew."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ebmjax import networks
from ebmjax.config import default, with_settings
from ebmjax.config.validation import resolve
from ebmjax.errors import ConfigError
from ebmjax.networks import Inputs, seeded
from ebmjax.runtime import scan
from ebmjax.types import Network

INPUTS, HIDDEN, CLASSES, SEED = 49, 20, 7, 3


def network(name: str, **settings: Any) -> Network:
  return networks.make(
    name, input_shape=(7, 7), num_classes=CLASSES, hidden=HIDDEN, **settings
  )


def like_of(network: Network) -> Any:
  """Returns the shapes of its parameters."""
  return jax.eval_shape(network.init, jax.random.key(0))[0]


def started(plain: Network, seeds: list[int]) -> Network:
  inputs = Inputs((7, 7), CLASSES, init_keys=keys_of(seeds), seeds=seeds)
  return seeded.start_from_seeds(plain, inputs)


def keys_of(seeds: list[int]) -> jax.Array:
  return jax.vmap(lambda seed: scan.init_key(jax.random.key(seed)))(jnp.array(seeds))


def test_weights_are_pytorch_s():
  """torch.manual_seed(3), Embedding(7, 20), Linear(49, 20), (20, 20), (20, 1).

  The embedding's 140 numbers are no multiple of 16.
  """
  like = like_of(network("ebm", gated_layers=2))
  params = seeded.draw(like, SEED)
  jax.tree.map(
    lambda p, drawn: np.testing.assert_equal(drawn.shape, p.shape), like, params
  )
  embedding = params["label_gate"]["embedding"]
  first, second, head = (params[name] for name in ("layers_0", "layers_1", "head"))
  for got, pytorch in (
    (embedding[0, :3], [-0.0766443, 0.3598815, -0.7820168]),
    (embedding[-1, -3:], [-0.0351312, -0.531359, 0.0776291]),
    (first["kernel"][0, :3], [0.1075469, -0.0474069, -0.0019253]),
    (first["bias"][:3], [0.1394773, -0.0944369, 0.101708]),
    (second["kernel"][1, :3], [-0.013521, -0.2104837, 0.0170112]),
    (head["kernel"][:3, 0], [0.0026033, -0.1420564, 0.2013232]),
    (head["bias"], [-0.2078048]),
  ):
    np.testing.assert_allclose(got, pytorch, atol=2e-7)


def test_a_layer_that_is_left_out_is_drawn_all_the_same():
  """The released EBM with boundaries holds a second layer that it does not use."""
  one, two = (
    seeded.draw(like_of(network("ebm", gated_layers=layers)), SEED) for layers in (1, 2)
  )
  assert "layers_1" not in one
  np.testing.assert_array_equal(one["head"]["kernel"], two["head"]["kernel"])


@pytest.mark.parametrize("name", ["ebm", "sbc"])
def test_each_seed_has_its_own(name):
  plain, seeds = network(name), [4, 5]
  keys = keys_of(seeds)
  begun = jax.jit(jax.vmap(started(plain, seeds).init))(keys)[0]
  like = like_of(plain)
  for place, seed in enumerate(seeds):
    expected = seeded.draw(like, seed)
    jax.tree.map(
      lambda got, want, place=place: np.testing.assert_array_equal(got[place], want),
      begun,
      expected,
    )


def test_a_seed_that_was_not_announced_is_not_a_number():
  begun = started(network("ebm"), [4])
  params, _ = begun.init(keys_of([5])[0])
  assert all(np.isnan(leaf).all() for leaf in jax.tree.leaves(params))


@pytest.mark.parametrize("change", [("embedding", "fixed"), ("gated_layers", 3)])
def test_other_networks_are_refused(change):
  key, value = change
  settings = {"network.init": "pytorch_seed", f"network.{key}": value}
  with pytest.raises(ConfigError, match="init='pytorch_seed' needs embedding"):
    resolve(with_settings(default(), settings))
