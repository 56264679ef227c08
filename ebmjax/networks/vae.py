"""A variational autoencoder of images as rows, to generate old data."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import optax
from flax import linen as nn
from jax import Array

from ebmjax.networks.initialisers import dense, kernel


class Code(NamedTuple):
  """A normal distribution over codes of Z numbers for each of B rows."""

  mean: Array  # [B, Z]
  log_variance: Array  # [B, Z]

  def at(self, noise: Array) -> Array:
    """Returns codes [B, Z], given noise [B, Z] of N(0, 1)."""
    return self.mean + jnp.exp(self.log_variance / 2) * noise

  def divergence(self) -> Array:
    """Returns [B]: how far each distribution is from N(0, I)."""
    spread = jnp.exp(self.log_variance) - 1 - self.log_variance
    return jnp.sum(self.mean**2 + spread, axis=1) / 2


class Coder(nn.Module):
  """Maps the features of a row to the distribution of its code."""

  latent: int

  @nn.compact
  def __call__(self, features: Array) -> Code:
    mean = dense(self.latent, features.shape[1], "pytorch")
    # No bias: as in the code behind the published figures.
    log_variance = nn.Dense(self.latent, use_bias=False, kernel_init=kernel("pytorch"))
    return Code(mean(features), log_variance(features))


class Decoder(nn.Module):
  """Maps codes through hidden layers to rows of `outputs` numbers."""

  outputs: int
  hidden: int
  layers: int = 2

  @nn.compact
  def __call__(self, z: Array, gates: Sequence[Array] | None = None) -> Array:
    """Returns [B, outputs] of codes [B, Z]; gates [B, hidden] scale the layers."""
    for layer in range(self.layers):
      z = dense(self.hidden, z.shape[1], "pytorch")(z)
      z = nn.relu(z if gates is None else z * gates[layer])
    return dense(self.outputs, self.hidden, "pytorch")(z)


class VariationalAutoencoder(nn.Module):
  """Hidden layers on either side of a code of Z numbers (Kingma and Welling 2014).

  Pixels lie in [0, 1]; the decoder returns their logits.
  """

  pixels: int
  hidden: int
  latent: int
  layers: int = 2

  def setup(self) -> None:
    fan_ins = (self.pixels, *[self.hidden] * (self.layers - 1))
    self.encoder = [dense(self.hidden, fan_in, "pytorch") for fan_in in fan_ins]
    self.coder = Coder(self.latent)
    self.decoder = Decoder(self.pixels, self.hidden, self.layers)

  def __call__(self, x: Array, noise: Array) -> tuple[Array, Code]:
    """Returns logits [B, P] and codes of x [B, P]; noise [B, Z] samples the codes."""
    for layer in self.encoder:
      x = nn.relu(layer(x))
    code = self.coder(x)
    return self.decode(code.at(noise)), code

  def decode(self, z: Array) -> Array:
    """Returns logits [B, P] of the images with codes z [B, Z]."""
    return self.decoder(z)


def elbo_losses(x: Array, logits: Array, code: Code) -> Array:
  """Returns [B]: the negative evidence bound of x [B, P] in [0, 1], per pixel.

  The cross-entropy of the pixels, and the divergence of the codes from N(0, I), both
  divided by the number of pixels.
  """
  likelihood = jnp.mean(optax.sigmoid_binary_cross_entropy(logits, x), axis=1)
  return likelihood + code.divergence() / x.shape[1]
