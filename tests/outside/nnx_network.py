"""E(x, y) = -<f(x), v_y>, with dropout and running statistics, in flax.nnx."""

import math
from typing import Annotated

import jax.numpy as jnp
from flax import nnx

from ebmjax.config.schema import Count, Share
from ebmjax.networks import Inputs, NetworkSpec, from_nnx
from ebmjax.types import Network


class Bilinear(nnx.Module):
  def __init__(self, size: int, rank: int, classes: int, drop: float, rngs: nnx.Rngs):
    self.layers = nnx.List([nnx.Linear(size, rank, rngs=rngs)])
    self.norm = nnx.BatchNorm(rank, rngs=rngs)
    self.drop = nnx.Dropout(drop, rngs=rngs)
    self.vectors = nnx.Embed(classes, rank, rngs=rngs)

  def __call__(self, x, labels):
    """Returns energies [B, K] of labels [B, K]."""
    features = self.drop(self.features(x))
    return -jnp.einsum("bf,bkf->bk", features, self.vectors(labels))

  def features(self, x):
    """Returns [B, F]."""
    (layer,) = self.layers
    return jnp.tanh(self.norm(layer(x.reshape(len(x), -1))))


def bilinear(
  inputs: Inputs,
  *,
  rank: Annotated[Count, "size of the vectors of inputs and labels"] = 64,
  drop: Annotated[Share, "of the features that training drops"] = 0.1,
) -> Network:
  """Builds the bilinear energy over rows of numbers."""
  size, classes = math.prod(inputs.shape), inputs.num_classes
  return from_nnx(
    lambda rngs: Bilinear(size, rank, classes, drop, rngs),
    classes,
    normalise=inputs.prepare,
  )


SPEC = NetworkSpec(bilinear, title="bilinear, nnx", classifier="sbc", small={"rank": 8})
