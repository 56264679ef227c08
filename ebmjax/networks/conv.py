"""3x3 convolutions and 2x2 pooling, in the form that is fast on the backend.

On GPU and TPU the native convolution is right. On a CPU, XLA falls back to a naive one
inside a loop, which is far slower: there the same sums are written as a matrix
product over patches. Both forms are tested equal.
"""

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array, lax

from ebmjax.networks import initialisers

CONV_FORMS = ("auto", "native", "patches")
_SIDE = 3


class Conv(nn.Module):
  """A 3x3 convolution with bias: [B, H, W, I] -> [B, H', W', features]."""

  num_inputs: int
  features: int
  stride: int = 1
  padding: int = 1
  form: str = "auto"
  init_style: str = "pytorch"

  @nn.compact
  def __call__(self, x: Array) -> Array:
    shape = (_SIDE, _SIDE, self.num_inputs, self.features)
    fan_in = _SIDE * _SIDE * self.num_inputs
    kernel = self.param("kernel", initialisers.kernel(self.init_style), shape)
    bias = self.param(
      "bias", initialisers.bias(self.init_style, fan_in), (self.features,)
    )
    out = conv2d(x, kernel, stride=self.stride, padding=self.padding, form=self.form)
    return out + bias[None, None, None, :]


def conv2d(
  x: Array, kernel: Array, *, stride: int, padding: int, form: str = "auto"
) -> Array:
  """Returns [B, H', W', O]: x [B, H, W, I] convolved with kernel [3, 3, I, O]."""
  if form == "auto":
    form = "patches" if jax.default_backend() == "cpu" else "native"
  if form == "native":
    return lax.conv_general_dilated(
      x,
      kernel,
      (stride, stride),
      [(padding, padding)] * 2,
      dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
  patches = _patches(x, stride, padding)
  return patches @ kernel.reshape(-1, kernel.shape[-1])


def max_pool(x: Array) -> Array:
  """Returns [B, H // 2, W // 2, C]: the largest of each 2x2 square.

  The maximum of four strided slices: its gradient needs no scatter, which on a CPU is
  slow. An odd last row or column is left out.
  """
  height, width = (side // 2 * 2 for side in x.shape[1:3])
  corners = [x[:, i:height:2, j:width:2, :] for i in (0, 1) for j in (0, 1)]
  return jnp.maximum(
    jnp.maximum(corners[0], corners[1]), jnp.maximum(corners[2], corners[3])
  )


def flatten_channels_first(x: Array) -> Array:
  """Returns [B, C * H * W], in the order PyTorch's weights expect; x [B, H, W, C]."""
  return x.transpose(0, 3, 1, 2).reshape(x.shape[0], -1)


def _patches(x: Array, stride: int, padding: int) -> Array:
  """Returns [B, H', W', 9 I]: the 3x3 neighbourhood of every position."""
  x = jnp.pad(x, [(0, 0), (padding, padding), (padding, padding), (0, 0)])
  height, width = ((side - _SIDE) // stride + 1 for side in x.shape[1:3])
  shifted = [
    x[
      :,
      i : i + stride * (height - 1) + 1 : stride,
      j : j + stride * (width - 1) + 1 : stride,
    ]
    for i in range(_SIDE)
    for j in range(_SIDE)
  ]
  return jnp.concatenate(shifted, axis=-1)
