"""Users' own networks, checked on the shapes of their inputs first."""

from typing import Any

import jax
import jax.numpy as jnp

from ebmjax.errors import ConfigError, UserError
from ebmjax.networks.spec import Inputs, NetworkSpec
from ebmjax.types import Network


def build(name: str, spec: NetworkSpec, inputs: Inputs, **settings: Any) -> Network:
  """Returns the network of a spec; raises ConfigError where it cannot take the inputs.

  Nothing is computed: JAX finds the shapes of what the network would return.
  """
  try:
    network = spec.make(inputs, **settings)
    found = jax.eval_shape(lambda key: _answer(network, inputs, key), jax.random.key(0))
  except UserError:
    raise
  except Exception as error:  # the network is a user's own program
    text = " ".join(str(error).split())[:200].rstrip(".")
    fault = f"fails on inputs of shape {inputs.shape} ({type(error).__name__}: {text})"
    raise ConfigError(f"the network {name} {fault}; {_remedy(inputs)}") from error
  if found.shape != (2, 2):
    raise ConfigError(
      f"the network {name} has energies {list(found.shape)} of labels [2, 2]: return "
      "one energy for each label."
    )
  return network


def _answer(network: Network, inputs: Inputs, key: jax.Array) -> jax.Array:
  x, labels = jnp.zeros((2, *inputs.shape), jnp.uint8), jnp.zeros((2, 2), jnp.int32)
  return network.energies(*network.init(key), x, labels, train=True)[0]


def _remedy(inputs: Inputs) -> str:
  if len(inputs.shape) == 1:
    return (
      "grey images reach a network as rows of pixels, unless its NetworkSpec has "
      "takes_rows=False: then as [H, W, 1]."
    )
  return "say in `accepts` and `wants` of its NetworkSpec which inputs it takes."
