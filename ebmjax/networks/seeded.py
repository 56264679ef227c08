"""Reproduces PyTorch's initial weights for a seed, without PyTorch.

The released code sets PyTorch's seed, then builds its network. On split MNIST these
initial weights change the accuracy by several points, so that its figures can only be
reproduced from them (BENCHMARKS.md, notes 1 and 7). PyTorch's generator on the CPU is
the Mersenne Twister, which NumPy has, too. Batches, negatives and the orders of pixels
remain ours.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ebmjax.networks.spec import Inputs
from ebmjax.types import Network, PyTree

_BLOCK = 16  # normal numbers that are computed together


def start_from_seeds(network: Network, inputs: Inputs) -> Network:
  """Returns `network`, an MLP, whose init(init_keys[i]) has the weights of seeds[i].

  With any other key all weights are NaN, which stops a run.
  """
  keys, seeds = inputs.init_keys, inputs.seeds
  if keys is None:
    raise ValueError("init='pytorch_seed' needs the seeds and keys of the runs")
  like, _ = jax.eval_shape(network.init, keys[0])
  drawn: PyTree = [draw(like, seed) for seed in seeds]
  stacked = jax.tree.map(lambda *each: np.stack(each), *drawn)
  known = jax.random.key_data(keys)

  def init(key: Array) -> tuple[PyTree, PyTree]:
    _, model_state = network.init(key)
    is_key = jnp.all(known == jax.random.key_data(key)[None], axis=-1)  # [R]
    poison = jnp.where(jnp.any(is_key), 0.0, jnp.nan)
    place = jnp.argmax(is_key)
    params = jax.tree.map(lambda each: jnp.asarray(each)[place] + poison, stacked)
    return params, model_state

  return network._replace(init=init)


def draw(like: PyTree, seed: int) -> dict[str, Any]:
  """Returns parameters shaped like those of an MLP, drawn in the released order.

  The label's embedding, if there is one, two layers and the head. The second layer is
  drawn even where the network leaves it out, as the released EBM does with boundaries.
  """
  words = np.random.RandomState(seed)
  params: dict[str, Any] = {}
  if "label_gate" in like:
    shape = like["label_gate"]["embedding"].shape
    params["label_gate"] = {"embedding": _normal(words, shape)}
  inputs, hidden = like["layers_0"]["kernel"].shape
  params["layers_0"] = _linear(words, inputs, hidden)
  second = _linear(words, hidden, hidden)
  if "layers_1" in like:
    params["layers_1"] = second
  params["head"] = _linear(words, hidden, like["head"]["kernel"].shape[1])
  return params


def _linear(words: np.random.RandomState, fan_in: int, fan_out: int) -> dict[str, Any]:
  """Returns kernel [fan_in, fan_out] and bias, uniform in +-1/sqrt(fan_in)."""
  bound = np.float32(fan_in**-0.5)
  kernel = _uniform(words, fan_out * fan_in).reshape(fan_out, fan_in).T
  bias = _uniform(words, fan_out)
  return {"kernel": kernel * (2 * bound) - bound, "bias": bias * (2 * bound) - bound}


def _uniform(words: np.random.RandomState, number: int) -> np.ndarray:
  """Returns [number] float32 in [0, 1): the lower 24 bits of a word each."""
  bits = words.randint(0, 2**32, number, dtype=np.uint32) & np.uint32(2**24 - 1)
  return bits.astype(np.float32) * np.float32(2**-24)


def _normal(words: np.random.RandomState, shape: tuple[int, ...]) -> np.ndarray:
  """Returns draws from N(0, 1), 16 or more, by Box and Muller's method.

  Of a block of 16 uniform numbers the first eight make radii, the others angles. Where
  the last block is not full, the last 16 numbers are drawn again.
  """
  number = int(np.prod(shape))
  whole = number - number % _BLOCK
  flat = _uniform(words, number)
  flat[:whole] = _box_muller(flat[:whole])
  if whole < number:
    flat[-_BLOCK:] = _box_muller(_uniform(words, _BLOCK))
  return flat.reshape(shape)


def _box_muller(uniform: np.ndarray) -> np.ndarray:
  """Returns [16 n] normal numbers of as many uniform ones."""
  blocks = uniform.reshape(-1, 2, _BLOCK // 2)
  radius = np.sqrt(-2 * np.log(1 - blocks[:, 0]))
  angle = np.float32(2 * np.pi) * blocks[:, 1]
  pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
  return pairs.reshape(-1)
