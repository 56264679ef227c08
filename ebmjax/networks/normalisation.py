"""From what is stored of an image to a network's input."""

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
    """Returns float32 of x [B, ...] uint8; floats are features and stay themselves."""
    if x.dtype != jnp.uint8:
      return x
    x = x.astype(jnp.float32) / 255
    if self == Normalise():
      return x
    shape = (1,) * (x.ndim - 1) + (-1,)
    return (x - jnp.array(self.mean).reshape(shape)) / jnp.array(self.std).reshape(
      shape
    )

  def output_shape(self, input_shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape of one image after it: that of the stored one."""
    return input_shape


class Noise(NamedTuple):
  """Draws images from their numbers: every pixel is uniform in [-1, 1).

  A number alone decides its image, whatever batch it comes in, so that millions of
  images need no memory but that of their numbers.
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
    """Returns (P,): an image as one long row, whatever stood for it."""
    del input_shape
    return (math.prod(self.image_shape),)


Preparation = Normalise | Noise
