"""Strided convolutions, and their transposes."""

from functools import partial

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from ebmjax.networks.conv import product_of_patches
from ebmjax.networks.initialisers import kernel

_SIDE = 4  # of a kernel


class Strided(nn.Module):
  """A 4x4 convolution with a stride; `back`: its transpose, which enlarges images."""

  features: int
  stride: int = 2
  back: bool = False
  init_style: str = "small"
  use_bias: bool = True

  @nn.compact
  def __call__(self, x: Array) -> Array:
    ends = (x.shape[-1], self.features)
    shape = (_SIDE, _SIDE, *(ends[::-1] if self.back else ends))
    weights = self.param("kernel", kernel(self.init_style), shape)
    out = (convolve_back if self.back else convolve)(x, weights, self.stride)
    if not self.use_bias:
      return out
    bias = self.param("bias", nn.initializers.zeros, (self.features,))
    return out + bias[None, None, None, :]


def convolve(x: Array, kernel: Array, stride: int) -> Array:
  """Returns [B, ceil(H / stride), ..., O] of x [B, H, W, I]; kernel [K, K, I, O].

  A product of patches on every backend: inside a loop, a CPU has only slow code for the
  gradients of a native convolution.
  """
  sides = [_padding(size, kernel.shape[0], stride) for size in x.shape[1:3]]
  return product_of_patches(jnp.pad(x, [(0, 0), *sides, (0, 0)]), kernel, stride)


def convolve_back(x: Array, kernel: Array, stride: int) -> Array:
  """Returns [B, H stride, W stride, O] of x [B, H, W, I]; kernel [K, K, O, I].

  The transpose of `convolve`, as a linear map, from images of that size.
  """
  batch, height, width, _ = x.shape
  shape = (batch, height * stride, width * stride, kernel.shape[2])
  forward = partial(convolve, kernel=kernel, stride=stride)
  (out,) = jax.linear_transpose(forward, jax.ShapeDtypeStruct(shape, x.dtype))(x)
  return out


def _padding(size: int, side: int, stride: int) -> tuple[int, int]:
  """Returns the zeros before and after a side that give one patch per stride."""
  total = max((-(-size // stride) - 1) * stride + side - size, 0)
  return total // 2, total - total // 2
