"""From stored images to the inputs of a network."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array


class Normalise(NamedTuple):
  """Maps uint8 images to floats: into [0, 1], then by each channel's mean and std."""

  mean: tuple[float, ...] = (0.0,)
  std: tuple[float, ...] = (1.0,)

  def __call__(self, x: Array) -> Array:
    """Returns float32 of x [B, ...], uint8 from 0 to 255 or floats as they are."""
    if x.dtype == jnp.uint8:
      x = x.astype(jnp.float32) / 255
    if self == Normalise():
      return x
    shape = (1,) * (x.ndim - 1) + (-1,)
    return (x - jnp.array(self.mean).reshape(shape)) / jnp.array(self.std).reshape(
      shape
    )

  def output_shape(self, input_shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape of a normalised image: that of the stored one."""
    return input_shape


class Noise(NamedTuple):
  """Draws images from their numbers: every pixel is uniform in [-1, 1).

  An image depends on its number alone, not on its batch, so that millions of images
  take no more memory than their numbers.
  """

  image_shape: tuple[int, ...] = (32, 32, 3)
  seed: int = 0

  def __call__(self, x: Array) -> Array:
    """Returns float32 [B, P] for numbers x [B, 1] uint32."""
    key = jax.random.key(self.seed)

    def draw(number: Array) -> Array:
      shape = self.output_shape(number.shape)
      return jax.random.uniform(jax.random.fold_in(key, number), shape, minval=-1.0)

    return jax.vmap(draw)(x[:, 0])

  def output_shape(self, input_shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns (P,): an image as one row of pixels."""
    del input_shape
    return (math.prod(self.image_shape),)


class Padded(NamedTuple):
  """Adds a border of zeros to prepared images that are smaller than `least`."""

  inner: Normalise | Noise
  least: int  # pixels of a side

  def __call__(self, x: Array) -> Array:
    """Returns images [B, H, W, C] with sides of at least `least`."""
    shape = self.inner.output_shape(x.shape[1:])
    border = [(0, max(0, self.least - side)) for side in shape[:2]]
    return jnp.pad(self.inner(x), [(0, 0), *border, (0, 0)])

  def output_shape(self, input_shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape of a padded image."""
    height, width, channels = self.inner.output_shape(input_shape)
    return max(height, self.least), max(width, self.least), channels


Preparation = Normalise | Noise | Padded
