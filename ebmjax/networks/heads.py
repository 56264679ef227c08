"""The last layer of an energy network, and the choice of labels."""

import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from ebmjax.networks.initialisers import bias, kernel


class EnergyHead(nn.Module):
  """The last layer's weights w [F] and bias b []: an energy is w . h + b."""

  num_inputs: int
  init_style: str = "pytorch"

  @nn.compact
  def __call__(self) -> tuple[Array, Array]:
    w = self.param("kernel", kernel(self.init_style), (self.num_inputs, 1))
    b = self.param("bias", bias(self.init_style, self.num_inputs), (1,))
    return w[:, 0], b[0]


def select(energies: Array, labels: Array) -> Array:
  """Returns, of energies [B, C], those of labels [B, K] or [L]."""
  if labels.ndim == 1:
    return energies[:, labels]
  return jnp.take_along_axis(energies, labels, axis=1)
