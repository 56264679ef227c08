"""Networks over the CIFAR-100 trunk: five convolutions, pre-trained and frozen."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax import Array

from ebmjax.config.schema import Rule
from ebmjax.networks.cifar10 import WANTS_IMAGES, is_image
from ebmjax.networks.cifar100 import PACKAGED, NormTrunk, load_trunk, num_features
from ebmjax.networks.conv import is_blocked, mixed_kernels
from ebmjax.networks.mlp import GatedLayers, classifier_mlp, energy_mlp, is_masked
from ebmjax.networks.normalisation import Normalise, Preparation
from ebmjax.networks.spec import (
  ConvForm,
  Embedding,
  Gate,
  Hidden,
  Init,
  Inputs,
  MakeTrunk,
  MaskDropRate,
  NetworkSpec,
  Skip,
  hidden_units,
)
from ebmjax.networks.trunked import BackboneMode, with_trunk
from ebmjax.types import Network

Mode = Annotated[BackboneMode, "what training does to the trunk"]
Pretrained = Annotated[
  str, f"npz file with the trunk's weights; {PACKAGED}: those in the package"
]


def energy_conv5(
  inputs: Inputs,
  *,
  backbone_mode: Mode = "batch_statistics",
  pretrained: Pretrained = "",
  hidden: Hidden = 2000,
  gated_layers: GatedLayers = 2,
  gate: Gate = "none",
  embedding: Embedding = "mask",
  skip: Skip = False,
  mask_drop_rate: MaskDropRate = 0.85,
  conv_form: ConvForm = "auto",
  init: Init = "pytorch",
) -> Network:
  """Builds the paper's CIFAR-100 energy network: an energy MLP over the trunk."""
  head = energy_mlp(
    _features(inputs),
    hidden=hidden,
    gated_layers=gated_layers,
    gate=gate,
    embedding=embedding,
    skip=skip,
    mask_drop_rate=mask_drop_rate,
    init=init,
  )
  return _over_trunk(head, inputs, backbone_mode, pretrained, conv_form, init)


def classifier_conv5(
  inputs: Inputs,
  *,
  backbone_mode: Mode = "batch_statistics",
  pretrained: Pretrained = "",
  hidden: Hidden = 2000,
  conv_form: ConvForm = "auto",
  init: Init = "pytorch",
) -> Network:
  """Builds the CIFAR-100 classifier: two hidden layers over the trunk."""
  head = classifier_mlp(_features(inputs), hidden=hidden, init=init)
  return _over_trunk(head, inputs, backbone_mode, pretrained, conv_form, init)


def _features(inputs: Inputs) -> Inputs:
  """Returns the head's inputs: an image's features, or inputs that are features."""
  shape = inputs.shape
  size = shape[0] if len(shape) == 1 else num_features(shape)
  return inputs._replace(shape=(size,), prepare=Normalise())


def _over_trunk(
  head: Network,
  inputs: Inputs,
  mode: str,
  pretrained: str,
  conv_form: str,
  init: str,
) -> Network:
  if mode == "fixed_statistics":
    return head  # its inputs are the trunk's features, computed once
  weights = load_trunk(pretrained) if pretrained else None
  trunk: nn.Module = NormTrunk(conv_form, init)
  return with_trunk(head, trunk, inputs, mode=mode, weights=weights)


def frozen_trunk(pretrained: str, prepare: Preparation) -> Callable[[Array], Array]:
  """Returns f(images [B, H, W, C]) -> [B, F]: the trunk with the weights of a file."""
  trunk, weights = NormTrunk("native"), load_trunk(pretrained)

  def apply(x: Array) -> Array:
    features: Any = trunk.apply(weights, prepare(x))
    return jnp.asarray(features)

  return apply


def feature_function(
  trunk: Callable[[Array], Array], batch: int = 200
) -> Callable[[np.ndarray], np.ndarray]:
  """Returns f(images [N, H, W, C]) -> features [N, F] float32, compiled once."""
  # A plain jitted call, not a loop on the device: the native convolution is fast there.
  apply = jax.jit(trunk, compiler_options=mixed_kernels(True))

  def features(images: np.ndarray) -> np.ndarray:
    parts = [images[i : i + batch] for i in range(0, len(images), batch)]
    return np.concatenate([np.asarray(apply(part)) for part in parts])

  return features


def _cached_trunk(config: Any) -> MakeTrunk | None:
  fixed = config.backbone_mode == "fixed_statistics"
  return partial(frozen_trunk, config.pretrained) if fixed else None


def _options(config: Any) -> dict[str, str] | None:
  masked = "embedding" in config and is_masked(config.gated_layers, config.embedding)
  convolves = not _cached_trunk(config) and is_blocked(config.conv_form)
  return mixed_kernels(masked or convolves)


def frozen_trunk_rules(
  config: Any, key: str, *, frozen: bool, cached: bool
) -> list[Rule]:
  """Returns the rules of a trunk that `key` of config.network may freeze."""
  given = f"config.network.{key}={config.network[key]!r}"
  return [
    (
      frozen and not config.network.pretrained,
      f"{given} freezes the trunk, whose weights must then be given as "
      f"config.network.pretrained (an npz file, or {PACKAGED!r}).",
    ),
    (
      cached and config.data.augment != "none",
      f"{given} computes the features once, which config.data.augment forbids; set "
      "config.data.augment='none'.",
    ),
  ]


def _constraints(config: Any) -> list[Rule]:
  frozen = config.network.backbone_mode != "finetune"
  cached = _cached_trunk(config.network) is not None
  return frozen_trunk_rules(config, "backbone_mode", frozen=frozen, cached=cached)


_SHARED: dict[str, Any] = {
  "takes_rows": False,
  "accepts": is_image,
  "wants": WANTS_IMAGES,
  "num_features": hidden_units,
  "cached_trunk": _cached_trunk,
  "compiler_options": _options,
  "constraints": _constraints,
  "small": {"hidden": 32},
}
EBM_CONV5 = NetworkSpec(
  energy_conv5, title="energy-based model", classifier="sbc_conv5", **_SHARED
)
SBC_CONV5 = NetworkSpec(
  classifier_conv5, title="softmax classifier", energy=False, **_SHARED
)
