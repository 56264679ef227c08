"""Weights that a row's code generates, beside those that all rows share."""

import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from ebmjax.networks.autoencoder import small_dense

UNITS_EACH = 10  # features whose weights one part generates


class WeightGenerator(nn.Module):
  """From a code to the weights [units, classes] of one row's last features.

  Several networks of their own, each for ten units: two hidden layers, tanh throughout,
  so that no weight exceeds 1.
  """

  units: int
  num_classes: int
  hidden: int

  @nn.compact
  def __call__(self, z: Array) -> Array:
    """Returns [B, units, C] of codes [B, Z]."""
    parts = -(-self.units // UNITS_EACH)
    several = nn.vmap(
      _Part,
      in_axes=None,
      out_axes=1,
      axis_size=parts,
      variable_axes={"params": 0},
      split_rngs={"params": True},
    )
    made = several(self.hidden, UNITS_EACH * self.num_classes, name="parts")(z)
    weights = made.reshape(z.shape[0], parts * UNITS_EACH, self.num_classes)
    return weights[:, : self.units]


class _Part(nn.Module):
  hidden: int
  outputs: int

  @nn.compact
  def __call__(self, z: Array) -> Array:
    for features in (self.hidden, self.hidden, self.outputs):
      z = jnp.tanh(small_dense(features)(z))
    return z
