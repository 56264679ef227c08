"""A network in two parts: a convolutional trunk, and an MLP over its features."""

from typing import Any

import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from ebmjax.networks.cifar100 import FEATURES, NormTrunk
from ebmjax.networks.normalisation import Normalise
from ebmjax.types import Network, PyTree

# What training does to the trunk. `batch_statistics` is the released code's: weights
# frozen, while BatchNorm still normalises by the batch and moves its running
# statistics. `fixed_statistics` freezes those too: features can be computed once.
CONV_MODES = ("batch_statistics", "fixed_statistics", "finetune")


def with_trunk(
  head: nn.Module,
  trunk: NormTrunk,
  normalise: Normalise,
  *,
  mode: str,
  weights: PyTree | None,
  num_classes: int,
) -> Network:
  """Returns the network head(trunk(x), labels) on images [B, 32, 32, 3].

  Frozen weights live in the model state, out of the optimiser's reach, and so do the
  norms' statistics. `weights` are the trunk's variables, or None to draw them.
  """
  trains_trunk = mode == "finetune"

  def init(key: Array) -> tuple[PyTree, PyTree]:
    x = jnp.zeros((1, FEATURES))
    head_state = dict(head.init(key, x, jnp.zeros((1, 1), jnp.int32)))
    variables = weights or trunk.init(key, jnp.zeros((1, 32, 32, 3)))
    params = {"head": head_state.pop("params")}
    state = {"head": head_state, "batch_stats": variables["batch_stats"]}
    (params if trains_trunk else state)["trunk"] = variables["params"]
    return params, state

  def trunk_features(
    params: PyTree, state: PyTree, x: Array, train: bool
  ) -> tuple[Array, PyTree]:
    own = params if trains_trunk else state
    variables = {"params": own["trunk"], "batch_stats": state["batch_stats"]}
    if not train or mode == "fixed_statistics":
      out: Any = trunk.apply(variables, normalise(x))
      return out, state
    out, moved = trunk.apply(variables, normalise(x), True, mutable=["batch_stats"])
    return out, state | {"batch_stats": moved["batch_stats"]}

  def energies(
    params: PyTree, model_state: PyTree, x: Array, labels: Array, train: bool = False
  ) -> tuple[Array, PyTree]:
    found, model_state = trunk_features(params, model_state, x, train)
    variables = {"params": params["head"], **model_state["head"]}
    out: Any = head.apply(variables, found, labels)
    return out, model_state

  def features(params: PyTree, model_state: PyTree, x: Array) -> Array:
    found, _ = trunk_features(params, model_state, x, False)
    variables = {"params": params["head"], **model_state["head"]}
    out: Any = head.apply(variables, found, method="features")
    return out

  return Network(init, energies, features, num_classes)
