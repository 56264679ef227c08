"""A variational autoencoder of colour images: CIFAR-100's trunk, and its reverse."""

import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from ebmjax.networks.cifar100 import CHANNELS, NormTrunk, num_features
from ebmjax.networks.conv import Conv
from ebmjax.networks.initialisers import dense
from ebmjax.networks.strided import Strided
from ebmjax.networks.vae import Code, Coder

_SIDE = 2  # of the trunk's last images
FEATURES = num_features((32, 32, 3))


class ConvVariationalAutoencoder(nn.Module):
  """Encodes images [B, 32, 32, 3] by the trunk and two dense layers, and decodes them.

  The decoder doubles the image four times, each time followed by BatchNorm and ReLU; a
  last convolution has neither. In training the norms use the batch's statistics and
  update their running ones.
  """

  hidden: int
  latent: int

  def setup(self) -> None:
    self.trunk = NormTrunk()
    self.inner = [dense(self.hidden, n, "pytorch") for n in (FEATURES, self.hidden)]
    self.coder = Coder(self.latent)
    sizes = (self.latent, self.hidden, self.hidden)
    widths = (self.hidden, self.hidden, FEATURES)
    self.outer = [
      dense(width, n, "pytorch") for width, n in zip(widths, sizes, strict=True)
    ]
    smaller = CHANNELS[-2::-1]
    self.doubling = [
      Strided(channels, back=True, init_style="pytorch") for channels in smaller
    ]
    self.norms = [nn.BatchNorm(momentum=0.9, epsilon=1e-5) for _ in smaller]
    self.image = Conv(CHANNELS[0], 3)

  def __call__(self, x: Array, noise: Array, train: bool = False) -> tuple[Array, Code]:
    """Returns the reconstruction of images x [B, 32, 32, 3], and their codes."""
    x = self.trunk(x, train)
    for layer in self.inner:
      x = nn.relu(layer(x))
    code = self.coder(x)
    return self.decode(code.at(noise), train), code

  def decode(self, z: Array, train: bool = False) -> Array:
    """Returns images [B, 32, 32, 3] of codes z [B, Z]."""
    for layer in self.outer:
      z = nn.relu(layer(z))
    x = z.reshape(-1, _SIDE, _SIDE, CHANNELS[-1])
    for double, norm in zip(self.doubling, self.norms, strict=True):
      x = nn.relu(norm(double(x), use_running_average=not train))
    return self.image(x)


def squared_losses(x: Array, made: Array, code: Code) -> Array:
  """Returns [B]: the negative evidence bound of images x [B, ...], per pixel value.

  Half the mean squared error, and the codes' divergence from N(0, I) divided by the
  number of values in an image.
  """
  error = jnp.mean((x - made).reshape(x.shape[0], -1) ** 2, axis=1) / 2
  return error + code.divergence() / x[0].size
