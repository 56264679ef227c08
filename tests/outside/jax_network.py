"""E(x, y) = w_y . tanh(W x) in plain JAX."""

import math
from typing import Annotated

import jax
import jax.numpy as jnp

from ebmjax.config.schema import Count
from ebmjax.networks import Inputs, NetworkSpec, from_functions
from ebmjax.types import Network


def make(inputs: Inputs, *, units: Annotated[Count, "hidden units"] = 64) -> Network:
  """Builds the energy over rows of numbers."""
  size, classes = math.prod(inputs.shape), inputs.num_classes

  def init(key):
    first, last = jax.random.split(key)
    return {
      "first": jax.random.normal(first, (size, units)) / math.sqrt(size),
      "last": jax.random.normal(last, (units, classes)) / math.sqrt(units),
    }

  def features(params, x):
    return jnp.tanh(x.reshape(len(x), -1) @ params["first"])

  def energies(params, x, labels):
    return jnp.take_along_axis(features(params, x) @ params["last"], labels, axis=1)

  return from_functions(
    init, energies, classes, features=features, normalise=inputs.prepare
  )


SPEC = NetworkSpec(make, title="plain JAX", classifier="sbc", small={"units": 8})
