"""3x3 convolutions and 2x2 pooling, in the form that is fast on the backend.

On GPU and TPU the native convolution and its gradients are fast. On a CPU, inside a
loop, XLA falls back to naive code for the gradients. The blocked form therefore writes
that of the input as a plain convolution, and that of the kernel as convolutions over a
few images at a time, which stay in the cache; with a stride, both as the gradients of a
product of patches. Both forms are tested equal. It is fast with `COMPILER_OPTIONS`
only: they leave convolutions to Eigen, where XLA's other library of kernels (YNN) takes
up to nine times as long for one without padding, and matrix products to YNN, where
Eigen takes up to four times as long for one whose second factor is transposed, as in
the gradient of a dense layer's input.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array, lax

from ebmjax.networks import initialisers

ConvForm = Literal["auto", "native", "blocked"]
_SIDE = 3
_BLOCK = 8  # images that a kernel's gradient takes at a time
COMPILER_OPTIONS = {
  "xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"
}


class Conv(nn.Module):
  """A 3x3 convolution: [B, H, W, I] -> [B, H', W', features]."""

  num_inputs: int
  features: int
  stride: int = 1
  padding: int = 1
  form: str = "auto"
  init_style: str = "pytorch"
  use_bias: bool = True

  @nn.compact
  def __call__(self, x: Array, pool: bool = False) -> Array:
    """Returns the convolution, with `pool` the largest of each 2x2 square of it."""
    shape = (_SIDE, _SIDE, self.num_inputs, self.features)
    fan_in = _SIDE * _SIDE * self.num_inputs
    kernel = self.param("kernel", initialisers.kernel(self.init_style), shape)
    out = conv2d(x, kernel, stride=self.stride, padding=self.padding, form=self.form)
    out = max_pool(out) if pool else out
    if not self.use_bias:
      return out
    bias = self.param(
      "bias", initialisers.bias(self.init_style, fan_in), (self.features,)
    )
    # A bias shifts all four values alike, so it is added after pooling.
    return _add_bias(out, bias)


def conv2d(
  x: Array, kernel: Array, *, stride: int, padding: int, form: str = "auto"
) -> Array:
  """Returns [B, H', W', O]: x [B, H, W, I] convolved with kernel [3, 3, I, O].

  `padding` is 0 or 1.
  """
  convolve = _blocked if is_blocked(form) else _native
  return convolve(x, kernel, stride, padding)


def mixed_kernels(convolves: bool) -> dict[str, str] | None:
  """Returns `COMPILER_OPTIONS` if they help: on a CPU; None: XLA's own choice."""
  return COMPILER_OPTIONS if convolves and jax.default_backend() == "cpu" else None


def compiler_options(config: Any) -> dict[str, str] | None:
  """Returns the options of XLA for a network with convolutions of its own."""
  return mixed_kernels(is_blocked(config.conv_form))


def is_blocked(form: str) -> bool:
  """Returns whether a form, "auto" included, is the blocked one on this backend.

  The backend is asked while tracing. lax.platform_dependent would choose when lowering,
  but it traces and differentiates both forms, which takes the CPU's CIFAR-10 step 1.7
  times as long to trace and a tenth longer to compile, and `in_halves` could not
  follow. To lower for another platform than the host's, set the form.
  """
  return form == "blocked" or (form == "auto" and jax.default_backend() == "cpu")


def in_halves(layers: Callable[[Array], Array], x: Array, form: str) -> Array:
  """Returns layers(x), whose rows do not depend on each other.

  In the blocked form the halves of the batch are computed separately: XLA runs them
  side by side, which uses two cores better than the threads of single operations do.
  """
  if not is_blocked(form) or len(x) < 2 * _BLOCK or len(x) % 2:
    return layers(x)
  return jnp.concatenate([layers(half) for half in jnp.split(x, 2)])


@jax.custom_vjp
def _add_bias(x: Array, bias: Array) -> Array:
  return x + bias[None, None, None, :]


def _bias_forward(x: Array, bias: Array) -> tuple[Array, None]:
  return _add_bias(x, bias), None


def _bias_backward(kept: None, g: Array) -> tuple[Array, Array]:
  del kept
  rows = g.reshape(-1, g.shape[-1])
  # As a product, because a CPU sums over rows several times more slowly.
  return g, (jnp.ones((1, len(rows)), g.dtype) @ rows)[0]


_add_bias.defvjp(_bias_forward, _bias_backward)


@jax.custom_vjp
def max_pool(x: Array) -> Array:
  """Returns [B, H // 2, W // 2, C]: the largest of each 2x2 square.

  An odd last row or column is left out. Of equal values the first one gets the
  gradient, as in PyTorch.
  """
  return _pool(x)[0]


def flatten_channels_first(x: Array) -> Array:
  """Returns [B, C * H * W], in the order PyTorch's weights expect; x [B, H, W, C]."""
  return x.transpose(0, 3, 1, 2).reshape(x.shape[0], -1)


def _pool(x: Array) -> tuple[Array, Array]:
  """Returns the pooled values, and which of the four each is, from 0 to 3."""
  height, width = (side // 2 * 2 for side in x.shape[1:3])
  a, b, c, d = (x[:, i:height:2, j:width:2, :] for i in (0, 1) for j in (0, 1))
  top = jnp.maximum(jnp.maximum(a, b), jnp.maximum(c, d))
  which = jnp.where(a == top, 0, jnp.where(b == top, 1, jnp.where(c == top, 2, 3)))
  return top, which.astype(jnp.int8)


def _pool_forward(x: Array) -> tuple[Array, tuple[Array, Array]]:
  top, which = _pool(x)
  return top, (which, jnp.zeros((0, *x.shape[1:3])))  # keeps the shape of x, no values


def _pool_backward(kept: tuple[Array, Array], g: Array) -> tuple[Array]:
  which, like = kept
  batch, height, width, channels = g.shape
  place = jnp.arange(4, dtype=jnp.int8).reshape(1, 1, 2, 1, 2, 1)
  chosen = which[:, :, None, :, None] == place
  spread = jnp.where(chosen, g[:, :, None, :, None], jnp.zeros((), g.dtype))
  spread = spread.reshape(batch, 2 * height, 2 * width, channels)
  sides = zip(like.shape[1:], (height, width), strict=True)
  odd = [(0, full - 2 * half) for full, half in sides]
  return (jnp.pad(spread, [(0, 0), *odd, (0, 0)]),)


max_pool.defvjp(_pool_forward, _pool_backward)


def _native(x: Array, kernel: Array, stride: int, padding: int) -> Array:
  return lax.conv_general_dilated(
    x,
    kernel,
    (stride, stride),
    [(padding, padding)] * 2,
    dimension_numbers=("NHWC", "HWIO", "NHWC"),
  )


@partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def _blocked(x: Array, kernel: Array, stride: int, padding: int) -> Array:
  return _native(x, kernel, stride, padding)


def _blocked_forward(
  x: Array, kernel: Array, stride: int, padding: int
) -> tuple[Array, tuple[Array, Array]]:
  return _native(x, kernel, stride, padding), (x, kernel)


def _blocked_backward(
  stride: int, padding: int, kept: tuple[Array, Array], g: Array
) -> tuple[Array, Array]:
  x, kernel = kept
  if stride > 1:
    # As convolutions these would be over g spread out to x's grid, mostly zeros.
    form = partial(_product_of_patches, stride=stride, padding=padding)
    return jax.vjp(form, x, kernel)[1](g)
  turned = jnp.flip(kernel, (0, 1)).swapaxes(2, 3)
  return _native(g, turned, 1, 2 - padding), _kernel_gradient(x, g, padding)


_blocked.defvjp(_blocked_forward, _blocked_backward)


def _product_of_patches(x: Array, kernel: Array, stride: int, padding: int) -> Array:
  x = jnp.pad(x, [(0, 0), (padding, padding), (padding, padding), (0, 0)])
  return product_of_patches(x, kernel, stride)


def product_of_patches(x: Array, kernel: Array, stride: int) -> Array:
  """Returns the convolution as one matrix product: [B H' W', K K I] x [K K I, O].

  x [B, H, W, I] is not padded; kernel [K, K, I, O].
  """
  patches = extract_patches(x, kernel.shape[0], stride)
  length = patches.shape[-1]
  rows = patches.reshape(-1, length) @ kernel.reshape(length, -1)
  return rows.reshape(*patches.shape[:-1], -1)


def extract_patches(x: Array, side: int, stride: int) -> Array:
  """Returns [B, H', W', side * side * I]: the square patches of x [B, H, W, I]."""
  height, width = (size - side + 1 for size in x.shape[1:3])
  shifted = [
    x[:, i : i + height : stride, j : j + width : stride]
    for i in range(side)
    for j in range(side)
  ]
  return jnp.concatenate(shifted, axis=-1)


def _kernel_gradient(x: Array, g: Array, padding: int) -> Array:
  """Returns [3, 3, I, O] of x [B, H, W, I] and the output's gradient g [B, H', W', O].

  A convolution in which inputs take the place of images, images that of channels, and g
  is the kernel. Its transposes are written out and held by barriers: XLA would fold
  them into a convolution that it has only naive code for inside a loop.
  """

  def add(total: Array, rows: tuple[Array, Array]) -> tuple[Array, None]:
    turned = (rows[0].transpose(3, 1, 2, 0), rows[1].transpose(1, 2, 0, 3))
    images, kernel = lax.optimization_barrier(turned)
    found = _native(images, kernel, 1, padding)
    return total + lax.optimization_barrier(found), None

  def in_blocks(a: Array) -> Array:
    return a.reshape(-1, math.gcd(len(x), _BLOCK), *a.shape[1:])

  start = jnp.zeros((x.shape[-1], _SIDE, _SIDE, g.shape[-1]), g.dtype)
  total, _ = lax.scan(add, start, (in_blocks(x), in_blocks(g)))
  return total.transpose(1, 2, 0, 3)
