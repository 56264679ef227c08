"""From stored images to a network's input."""

from typing import NamedTuple

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
