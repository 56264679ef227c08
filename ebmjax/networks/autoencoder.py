"""Autoencoders, dense or convolutional, whose codes look like draws from N(0, I).

Tolstikhin et al. (2018), Wasserstein autoencoders: codes are not sampled. In place of a
bound, a penalty keeps the codes of a batch close to as many draws.
"""

import math

import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from ebmjax.networks.initialisers import kernel
from ebmjax.networks.strided import Strided

_SCALES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def small_dense(features: int) -> nn.Dense:
  """Returns a dense layer with small initial weights, as PGMA's authors have."""
  return nn.Dense(features, kernel_init=kernel("small"))


class DenseAutoencoder(nn.Module):
  """Two hidden layers on either side of the code; pixels lie in [0, 1]."""

  pixels: int
  hidden: int
  latent: int

  def setup(self) -> None:
    self.inner = [small_dense(self.hidden) for _ in range(2)]
    self.code = small_dense(self.latent)
    self.outer = [small_dense(self.hidden) for _ in range(2)]
    self.image = small_dense(self.pixels)

  def __call__(self, x: Array) -> Array:
    """Returns the reconstruction [B, P] of rows [B, P]."""
    return self.decode(self.encode(x))

  def encode(self, x: Array) -> Array:
    """Returns codes [B, Z]."""
    for layer in self.inner:
      x = nn.relu(layer(x))
    return self.code(x)

  def decode(self, z: Array) -> Array:
    """Returns rows [B, P] of codes [B, Z]."""
    for layer in self.outer:
      z = nn.relu(layer(z))
    return nn.sigmoid(self.image(z))


class ConvAutoencoder(nn.Module):
  """Three 4x4 convolutions of stride 2 to the code, and as many back from it.

  The decoder starts at a quarter of the image's sides, which must be divisible by four.
  """

  shape: tuple[int, int, int]  # height, width, colours
  channels: int  # of the first convolution; each of the next two doubles them
  latent: int

  def setup(self) -> None:
    height, width, colours = self.shape
    c = self.channels
    self.inner = [Strided(features) for features in (c, 2 * c, 4 * c)]
    self.code = small_dense(self.latent)
    self.start = small_dense(height // 4 * (width // 4) * 4 * c)
    self.outer = [Strided(features, back=True) for features in (2 * c, c)]
    self.image = Strided(colours, stride=1, back=True)

  def __call__(self, x: Array) -> Array:
    """Returns the reconstruction [B, P] of rows [B, P]."""
    return self.decode(self.encode(x))

  def encode(self, x: Array) -> Array:
    """Returns codes [B, Z]."""
    x = x.reshape(-1, *self.shape)
    for layer in self.inner:
      x = nn.relu(layer(x))
    return self.code(x.reshape(x.shape[0], -1))

  def decode(self, z: Array) -> Array:
    """Returns rows [B, P] of codes [B, Z]."""
    height, width, _ = self.shape
    x = nn.relu(self.start(z)).reshape(-1, height // 4, width // 4, 4 * self.channels)
    for layer in self.outer:
      x = nn.relu(layer(x))
    return nn.sigmoid(self.image(x)).reshape(x.shape[0], -1)


Autoencoder = DenseAutoencoder | ConvAutoencoder


def make_autoencoder(
  kind: str, shape: tuple[int, ...], *, hidden: int, channels: int, latent: int
) -> Autoencoder:
  """Returns a "dense" or a "conv" autoencoder for inputs of `shape`.

  A row of pixels, [P], is a square grey image.
  """
  if kind == "dense":
    return DenseAutoencoder(math.prod(shape), hidden, latent)
  height, width, *colours = shape if len(shape) > 1 else [math.isqrt(shape[0])] * 2
  return ConvAutoencoder((height, width, math.prod(colours)), channels, latent)


def mismatch(codes: Array, draws: Array) -> Array:
  """Returns []: how far codes [B, Z] are from draws [B, Z] of N(0, I).

  The maximum mean discrepancy, its unbiased estimate, summed over kernels
  k(a, b) = C / (C + |a - b|^2) with C = 2 Z times each of seven scales. A single row
  has no pairs within codes or draws, so only the distance between the two counts.
  """
  size, latent = codes.shape
  pairs = {
    "codes": _squared_distances(codes, codes),
    "draws": _squared_distances(draws, draws),
    "both": _squared_distances(codes, draws),
  }
  others = 1 - jnp.eye(size)
  total = jnp.zeros(())
  for scale in _SCALES:
    c = 2 * latent * scale
    k = {name: c / (c + distances) for name, distances in pairs.items()}
    within = jnp.sum((k["codes"] + k["draws"]) * others) / max(size * (size - 1), 1)
    total += within - 2 * jnp.mean(k["both"])
  return total


def _squared_distances(a: Array, b: Array) -> Array:
  """Returns [A, B] of a [A, Z] and b [B, Z]."""
  norms = jnp.sum(a**2, axis=1)[:, None] + jnp.sum(b**2, axis=1)[None, :]
  return jnp.maximum(norms - 2 * a @ b.T, 0)
