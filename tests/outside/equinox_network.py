"""E(x, y) = MLP([x, v_y]) in Equinox, whose modules take one example."""

import math
from typing import Annotated

import equinox as eqx
import jax
import jax.numpy as jnp

from ebmjax.config.schema import Count
from ebmjax.networks import Inputs, NetworkSpec, from_functions
from ebmjax.types import Network


class Energy(eqx.Module):
  vectors: jax.Array
  mlp: eqx.nn.MLP

  def __init__(self, size: int, units: int, classes: int, key: jax.Array):
    first, last = jax.random.split(key)
    self.vectors = jax.random.normal(first, (classes, units))
    self.mlp = eqx.nn.MLP(size + units, "scalar", units, depth=1, key=last)

  def __call__(self, x, label):
    """Returns the energy [] of one label for one input."""
    return self.mlp(jnp.concatenate([x.ravel(), self.vectors[label]]))


def make(inputs: Inputs, *, units: Annotated[Count, "hidden units"] = 64) -> Network:
  """Builds the energy over rows of numbers."""
  size, classes = math.prod(inputs.shape), inputs.num_classes

  def build(key):
    return eqx.partition(Energy(size, units, classes, key), eqx.is_array)

  _, static = build(jax.random.key(0))  # what is no array: activations, sizes

  def energies(params, x, labels):
    model = eqx.combine(params, static)
    of_row = jax.vmap(model, in_axes=(None, 0))
    return jax.vmap(of_row)(x, labels)

  return from_functions(
    lambda key: build(key)[0], energies, classes, normalise=inputs.prepare
  )


SPEC = NetworkSpec(make, title="Equinox", classifier="sbc", small={"units": 8})
