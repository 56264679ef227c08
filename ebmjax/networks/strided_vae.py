"""A small variational autoencoder of images, made of strided convolutions alone."""

import math

from flax import linen as nn
from jax import Array

from ebmjax.networks.conv import Conv
from ebmjax.networks.initialisers import dense
from ebmjax.networks.strided import Strided
from ebmjax.networks.vae import Code, Coder


class StridedVariationalAutoencoder(nn.Module):
  """Encodes images by `layers` convolutions of stride 2, and decodes them.

  In the encoder each convolution after the first doubles the channels; the decoder
  halves them. Between convolutions there are BatchNorm and ReLU. The code is a linear
  map of the last convolution's outputs, and the decoder starts with a linear map of the
  code. Inputs and outputs are rows [B, P]. A side that is not divisible by 2^layers is
  padded, and cut again by the decoder.
  """

  shape: tuple[int, int, int]  # height, width, colours
  channels: int  # of the first convolution
  latent: int
  layers: int = 3

  def setup(self) -> None:
    widths = [self.channels * 2**i for i in range(self.layers)]
    inputs = [self.shape[2], *widths[:-1]]
    last = self.layers - 1
    # No bias before a norm, which would cancel it.
    self.inner = [
      Conv(inputs[i], width, 2, use_bias=i == last) for i, width in enumerate(widths)
    ]
    self.inner_norms = [_norm() for _ in range(last)]
    self.coder = Coder(self.latent)
    self.start = dense(math.prod(self._smallest()), self.latent, "pytorch")
    self.outer = [
      Strided(width, back=True, init_style="pytorch", use_bias=i == last)
      for i, width in enumerate(inputs[::-1])
    ]
    self.outer_norms = [_norm() for _ in range(last)]

  def __call__(
    self, x: Array, noise: Array, counted: Array | None = None
  ) -> tuple[Array, Code]:
    """Returns the reconstruction of rows x [B, P], and their codes.

    In training, the norms use the statistics of the rows that `counted` [B] bool marks;
    without it, they use their running ones.
    """
    x = x.reshape(-1, *self.shape)
    for i, layer in enumerate(self.inner):
      x = layer(x)
      if i < len(self.inner_norms):
        x = _normalised(self.inner_norms[i], x, counted)
    code = self.coder(x.reshape(x.shape[0], -1))
    return self.decode(code.at(noise), counted), code

  def decode(self, z: Array, counted: Array | None = None) -> Array:
    """Returns rows [B, P] of codes z [B, Z]."""
    x = self.start(z).reshape(-1, *self._smallest())
    for i, layer in enumerate(self.outer):
      x = layer(x)
      if i < len(self.outer_norms):
        x = _normalised(self.outer_norms[i], x, counted)
    height, width, _ = self.shape
    return x[:, :height, :width].reshape(x.shape[0], -1)

  def _smallest(self) -> tuple[int, int, int]:
    """Returns the shape of the last convolution's images."""
    height, width = (-(-side // 2**self.layers) for side in self.shape[:2])
    return height, width, self.channels * 2 ** (self.layers - 1)


def _norm() -> nn.BatchNorm:
  return nn.BatchNorm(momentum=0.9, epsilon=1e-5)


def _normalised(norm: nn.BatchNorm, x: Array, counted: Array | None) -> Array:
  if counted is None:
    return nn.relu(norm(x, use_running_average=True))
  mask = counted[:, None, None, None]
  return nn.relu(norm(x, use_running_average=False, mask=mask))
