"""E(x, y) = -<f(x), v_y> in Haiku, which makes functions of parameters."""

from typing import Annotated

import haiku as hk
import jax.numpy as jnp

from ebmjax.config.schema import Count
from ebmjax.networks import Inputs, NetworkSpec, from_functions
from ebmjax.types import Network


def make(inputs: Inputs, *, units: Annotated[Count, "hidden units"] = 64) -> Network:
  """Builds the bilinear energy over rows of numbers."""

  def features(x):
    return jnp.tanh(hk.Linear(units, name="layer")(hk.Flatten()(x)))

  def energies(x, labels):
    vectors = hk.Embed(inputs.num_classes, units, name="vectors")
    return -jnp.einsum("bf,bkf->bk", features(x), vectors(labels))

  whole, first = (
    hk.without_apply_rng(hk.transform(function)) for function in (energies, features)
  )
  x, labels = jnp.zeros((1, *inputs.shape)), jnp.zeros((1, 1), int)
  return from_functions(
    lambda key: whole.init(key, x, labels),
    whole.apply,
    inputs.num_classes,
    features=first.apply,  # its parameters are some of those of `whole`
    normalise=inputs.prepare,
  )


SPEC = NetworkSpec(make, title="Haiku", classifier="sbc", small={"units": 8})
