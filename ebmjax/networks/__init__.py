"""Energy networks: Linen modules behind the pure functions of `types.Network`."""

from typing import Any

import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from ebmjax.networks.mlp import ClassifierMLP, EnergyMLP
from ebmjax.types import Network, PyTree

NETWORKS = ("ebm", "sbc")


def make(config: Any, *, num_inputs: int, num_classes: int) -> Network:
  """Returns the network of `config.network` for flattened inputs of `num_inputs`."""
  shared = {
    "num_inputs": num_inputs,
    "hidden": config.hidden,
    "num_classes": num_classes,
    "init_style": config.init,
  }
  if config.name == "sbc":
    return from_module(ClassifierMLP(**shared), num_inputs, num_classes)
  module = EnergyMLP(
    **shared,
    gated_layers=config.gated_layers,
    gate=config.gate,
    embedding=config.embedding,
    skip=config.skip,
  )
  return from_module(module, num_inputs, num_classes)


def from_module(module: nn.Module, num_inputs: int, num_classes: int) -> Network:
  """Returns pure functions over a Linen module of the form module(x, labels)."""

  def init(key: Array) -> tuple[PyTree, PyTree]:
    x = jnp.zeros((1, num_inputs))
    variables = dict(module.init(key, x, jnp.zeros((1, 1), jnp.int32)))
    return variables.pop("params"), variables

  def energies(
    params: PyTree, model_state: PyTree, x: Array, labels: Array, train: bool = False
  ) -> tuple[Array, PyTree]:
    del train  # no layer of these networks behaves otherwise in training
    variables = {"params": params, **model_state}
    out: Any = module.apply(variables, unit_interval(x), labels)
    return out, model_state

  def features(params: PyTree, model_state: PyTree, x: Array) -> Array:
    variables = {"params": params, **model_state}
    out: Any = module.apply(variables, unit_interval(x), method="features")
    return out

  return Network(init, energies, features, num_classes)


def unit_interval(x: Array) -> Array:
  """Returns [B, P] float32 in [0, 1] from uint8 images [B, ...]."""
  return x.reshape(x.shape[0], -1).astype(jnp.float32) / 255
