"""Initial weights: PyTorch's defaults, on which the paper's figures rest."""

from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

# pytorch_seed: the numbers that PyTorch draws for the run's seed (`seeded.py`). With
# xavier and small (PGMA's authors) biases start at zero; with xavier_normal (BGD's)
# they are drawn, too.
Init = Literal["pytorch", "flax", "xavier", "xavier_normal", "small"]
SeededInit = Literal[
  "pytorch", "pytorch_seed", "flax", "xavier", "xavier_normal", "small"
]

Initialiser = Callable[..., Array]


def kernel(init: str) -> Initialiser:
  """Returns the initialiser of a kernel [fan_in, fan_out]."""
  if init == "flax":
    return nn.initializers.lecun_normal()
  if init == "xavier":
    return nn.initializers.xavier_uniform()
  if init == "small":
    return nn.initializers.truncated_normal(0.01)
  if init == "xavier_normal":
    return nn.initializers.variance_scaling(1.0, "fan_avg", "normal")
  # Uniform in +-1/sqrt(fan_in): a variance of 1/3 of LeCun's.
  return nn.initializers.variance_scaling(1 / 3, "fan_in", "uniform")


def bias(init: str, fan_in: int) -> Initialiser:
  """Returns the initialiser of the bias beside a kernel of `fan_in` inputs."""
  if init in ("flax", "xavier", "small"):
    return nn.initializers.zeros
  if init == "xavier_normal":
    return _normal_bias
  bound = fan_in**-0.5

  def uniform(key: Array, shape: tuple[int, ...], dtype=jnp.float32) -> Array:
    return jax.random.uniform(key, shape, dtype, -bound, bound)

  return uniform


def _normal_bias(key: Array, shape: tuple[int, ...], dtype=jnp.float32) -> Array:
  """Returns draws of Xavier's variance for a kernel of one input, 2 / (1 + fan_out)."""
  return jax.random.normal(key, shape, dtype) * (2 / (1 + shape[-1])) ** 0.5


def mask(drop_rate: float) -> Initialiser:
  """Returns the initialiser of masks: 0 for that share of the units, 1 for the rest."""

  def draw(key: Array, shape: tuple[int, ...]) -> Array:
    return jax.random.bernoulli(key, 1 - drop_rate, shape).astype(jnp.float32)

  return draw


def frozen(module: nn.Module, name: str, draw: Initialiser, *shape: int) -> Array:
  """Returns a variable of the module that is drawn once and is not trained."""
  found = module.variable("fixed", name, lambda: draw(module.make_rng(), shape))
  return found.value


def dense(features: int, fan_in: int, init: str) -> nn.Dense:
  """Returns a dense layer of `fan_in` inputs, initialised as `init` says."""
  return nn.Dense(features, kernel_init=kernel(init), bias_init=bias(init, fan_in))
