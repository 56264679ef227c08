"""E(x, y) = -<f(x), v_y> / temperature: a bilinear energy of features and labels."""

from typing import Annotated

import jax.numpy as jnp
from flax import linen as nn

from ebmjax.config.schema import Count, Positive
from ebmjax.networks import Inputs, NetworkSpec, from_module
from ebmjax.networks.mlp import num_inputs
from ebmjax.types import Network


class Bilinear(nn.Module):
  """A hidden layer and one vector for each label."""

  rank: int
  num_classes: int
  temperature: float

  def setup(self) -> None:
    self.layer = nn.Dense(self.rank)
    shape = (self.num_classes, self.rank)
    self.vectors = self.param("vectors", nn.initializers.normal(0.1), shape)

  def __call__(self, x, labels):
    """Returns energies [B, K] for labels [B, K], or [B, L] for labels [L]."""
    ours, theirs = self.features(x), self.vectors[labels]
    form = "bf,lf->bl" if labels.ndim == 1 else "bf,bkf->bk"
    return -jnp.einsum(form, ours, theirs) / self.temperature

  def features(self, x):
    """Returns [B, F]."""
    return nn.tanh(self.layer(x))


def bilinear(
  inputs: Inputs,
  *,
  rank: Annotated[Count, "size of the vectors of inputs and labels"] = 64,
  temperature: Annotated[Positive, "divides every energy"] = 1.0,
) -> Network:
  """Builds the bilinear energy over rows of numbers."""
  size, classes = num_inputs(inputs), inputs.num_classes
  module = Bilinear(rank, classes, temperature)
  return from_module(module, (size,), classes, inputs.prepare)


SPEC = NetworkSpec(
  bilinear,
  title="bilinear",
  classifier="sbc",
  num_features=lambda config: int(config.rank),
  small={"rank": 8},
)
