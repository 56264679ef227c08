"""A Linen module behind the pure functions of `types.Network`."""

from typing import Any

import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from ebmjax.networks.normalisation import Normalise, Preparation
from ebmjax.types import Network, PyTree


def from_module(
  module: nn.Module,
  input_shape: tuple[int, ...],
  num_classes: int,
  normalise: Preparation | None = None,
) -> Network:
  """Returns pure functions over a Linen module of the form module(x, labels).

  `input_shape` is the shape of a row after `normalise`. Variables other than parameters
  keep their initial values: a module with running statistics is refused (`with_trunk`
  handles those).
  """
  normalise = normalise or Normalise()

  def prepare(x: Array) -> Array:
    return normalise(x).reshape(x.shape[0], *input_shape)

  def init(key: Array) -> tuple[PyTree, PyTree]:
    x = jnp.zeros((1, *input_shape))
    variables = dict(module.init(key, x, jnp.zeros((1, 1), jnp.int32)))
    if "batch_stats" in variables:
      raise ValueError(f"{type(module).__name__} has running statistics to be moved")
    return variables.pop("params"), variables

  def energies(
    params: PyTree, model_state: PyTree, x: Array, labels: Array, train: bool = False
  ) -> tuple[Array, PyTree]:
    del train  # no layer of these networks differs in training
    variables = {"params": params, **model_state}
    out: Any = module.apply(variables, prepare(x), labels)
    return out, model_state

  def features(params: PyTree, model_state: PyTree, x: Array) -> Array:
    variables = {"params": params, **model_state}
    out: Any = module.apply(variables, prepare(x), method="features")
    return out

  def task_energies(params: PyTree, model_state: PyTree, x: Array, y: Array) -> Array:
    variables = {"params": params, **model_state}
    out: Any = module.apply(variables, prepare(x), y, method="task_energies")
    return out

  of_tasks = task_energies if hasattr(module, "task_energies") else None
  return Network(init, energies, features, num_classes, of_tasks)
