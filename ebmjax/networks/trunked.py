"""A network in two parts: a convolutional trunk, and an MLP over its features."""

from typing import Any, Literal

import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from ebmjax.networks.spec import Inputs
from ebmjax.types import Network, PyTree

# What training does to the trunk. `batch_statistics` is the released code's: weights
# frozen, while BatchNorm still uses the batch's statistics and updates its running ones
# (Deviation: the paper does not say so). `fixed_statistics` freezes those too: features
# can be computed once.
BackboneMode = Literal["batch_statistics", "fixed_statistics", "finetune"]


def with_trunk(
  head: Network,
  trunk: nn.Module,
  inputs: Inputs,
  *,
  mode: str,
  weights: PyTree | None,
) -> Network:
  """Returns the network head(trunk(x), labels) on images [B, H, W, C].

  The trunk is called as trunk(x, batch_statistics), and its norms keep running ones.

  Frozen weights are part of the model state, which is not optimised, and so are the
  norms' statistics. `weights` are the trunk's variables, or None to draw them. (With
  `fixed_statistics` there is no trunk to train: the network takes its features.)
  """
  trains_trunk, normalise = mode == "finetune", inputs.prepare

  def init(key: Array) -> tuple[PyTree, PyTree]:
    head_params, head_state = head.init(key)
    variables = weights or trunk.init(key, jnp.zeros((1, *inputs.shape)))
    params = {"head": head_params}
    state = {"head": head_state, "batch_stats": variables["batch_stats"]}
    (params if trains_trunk else state)["trunk"] = variables["params"]
    return params, state

  def trunk_features(
    params: PyTree, state: PyTree, x: Array, train: bool
  ) -> tuple[Array, PyTree]:
    own = params if trains_trunk else state
    variables = {"params": own["trunk"], "batch_stats": state["batch_stats"]}
    if not train:
      out: Any = trunk.apply(variables, normalise(x))
      return out, state
    out, moved = trunk.apply(variables, normalise(x), True, mutable=["batch_stats"])
    return out, state | {"batch_stats": moved["batch_stats"]}

  def energies(
    params: PyTree, model_state: PyTree, x: Array, labels: Array, train: bool = False
  ) -> tuple[Array, PyTree]:
    found, state = trunk_features(params, model_state, x, train)
    out, head_state = head.energies(
      params["head"], state["head"], found, labels, train=train
    )
    return out, state | {"head": head_state}

  def features(params: PyTree, model_state: PyTree, x: Array) -> Array:
    found, _ = trunk_features(params, model_state, x, False)
    return head.features(params["head"], model_state["head"], found)

  return Network(init, energies, features, head.num_classes)
