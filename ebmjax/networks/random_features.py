"""Features that never learn: raw numbers, random Fourier features, random ReLU units.

    raw      phi(x) = x
    fourier  phi(x) = sqrt(2) cos(W x + u),  W ~ N(0, 2 gamma),  u ~ U(0, 2 pi)
    relu     phi(x) = relu(W x),             W ~ N(0, 1 / inputs)

The mean over Fourier features of phi(x) phi(x') approaches exp(-gamma |x - x'|^2)
(Rahimi and Recht 2007); their size does not depend on how many there are.
Both layers are drawn from the seed in `init` and kept beside the parameters. Methods in
closed form (`ncm`, `slda`, `ridge`) take the features alone; for all others the paper's
label gate is applied to them:

    E(x, y) = w . relu(s_y * phi(x)) + b

With `backbone` = conv5, x are the features of the frozen CIFAR-100 trunk.
"""

import math
from functools import partial
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from ebmjax import data
from ebmjax.config.schema import Count, Positive, Rule
from ebmjax.networks.cifar10 import WANTS_IMAGES, is_image
from ebmjax.networks.cifar100 import num_features as trunk_width
from ebmjax.networks.conv5 import Pretrained, frozen_trunk, frozen_trunk_rules
from ebmjax.networks.gates import LabelGate, gated_relu_readout
from ebmjax.networks.heads import EnergyHead, select
from ebmjax.networks.initialisers import frozen
from ebmjax.networks.mlp import num_inputs
from ebmjax.networks.module import from_module
from ebmjax.networks.spec import Gate, Inputs, MakeTrunk, NetworkSpec, Skip
from ebmjax.types import Network

NumFeatures = Annotated[Count, "number of random features"]
Trunk = Annotated[
  Literal["none", "conv5"], "frozen convolutions in front; conv5: CIFAR-100's"
]


class Raw(nn.Module):
  """The inputs themselves."""

  @nn.compact
  def __call__(self, x: Array) -> Array:
    """Returns x [B, F]."""
    return x


class Fourier(nn.Module):
  """Random Fourier features of the Gaussian kernel exp(-gamma |x - x'|^2)."""

  num_features: int
  gamma: float

  @nn.compact
  def __call__(self, x: Array) -> Array:
    """Returns [B, F] of x [B, inputs]."""

    def turns(key: Array, shape: tuple[int, ...]) -> Array:
      return jax.random.uniform(key, shape, maxval=2 * math.pi)

    kernel = frozen(self, "kernel", jax.random.normal, x.shape[1], self.num_features)
    phase = frozen(self, "phase", turns, self.num_features)
    angle = math.sqrt(2 * self.gamma) * (x @ kernel) + phase[None, :]
    return math.sqrt(2) * jnp.cos(angle)


class Relu(nn.Module):
  """Random rectified units without a bias."""

  num_features: int

  @nn.compact
  def __call__(self, x: Array) -> Array:
    """Returns [B, F] of x [B, inputs]."""
    kernel = frozen(self, "kernel", jax.random.normal, x.shape[1], self.num_features)
    return jax.nn.relu(x @ kernel) / math.sqrt(x.shape[1])


class GatedFeatures(nn.Module):
  """The label gate and the energy head of the paper, over features that never learn."""

  extract: nn.Module
  num_features: int
  num_classes: int
  gate: str = "l2"
  skip: bool = True

  def setup(self) -> None:
    self.label_gate = LabelGate(
      self.num_classes, self.num_features, self.gate, skip=self.skip
    )
    self.head = EnergyHead(self.num_features)

  def __call__(self, x: Array, labels: Array) -> Array:
    """Returns energies [B, K] for labels [B, K], or [B, L] for labels [L]."""
    phi, (s,), (w, b) = self.features(x), self.label_gate(), self.head()
    nonnegative = self.label_gate.nonnegative
    return select(gated_relu_readout(phi, s, w, nonnegative=nonnegative) + b, labels)

  def features(self, x: Array) -> Array:
    """Returns [B, F]."""
    return self.extract(x)


def raw(
  inputs: Inputs,
  *,
  gate: Gate = "l2",
  skip: Skip = True,
  backbone: Trunk = "none",
  pretrained: Pretrained = "",
) -> Network:
  """Builds the network whose features are its inputs."""
  del pretrained
  return _gated(Raw(), _num_inputs(inputs, backbone), inputs, gate, skip, backbone)


def fourier(
  inputs: Inputs,
  *,
  num_features: NumFeatures = 5000,
  gamma: Annotated[Positive, "gamma of the kernel exp(-gamma |x - x'|^2)"] = 0.02,
  gate: Gate = "l2",
  skip: Skip = True,
  backbone: Trunk = "none",
  pretrained: Pretrained = "",
) -> Network:
  """Builds the network over random Fourier features."""
  del pretrained
  layer = Fourier(num_features, gamma)
  return _gated(layer, num_features, inputs, gate, skip, backbone)


def relu(
  inputs: Inputs,
  *,
  num_features: NumFeatures = 5000,
  gate: Gate = "l2",
  skip: Skip = True,
  backbone: Trunk = "none",
  pretrained: Pretrained = "",
) -> Network:
  """Builds the network over random rectified units."""
  del pretrained
  return _gated(Relu(num_features), num_features, inputs, gate, skip, backbone)


def _num_inputs(inputs: Inputs, trunk: str) -> int:
  if trunk == "none":
    return num_inputs(inputs)
  return inputs.shape[0] if len(inputs.shape) == 1 else trunk_width(inputs.shape)


def _gated(
  extract: nn.Module, width: int, inputs: Inputs, gate: str, skip: bool, trunk: str
) -> Network:
  classes, size = inputs.num_classes, _num_inputs(inputs, trunk)
  module = GatedFeatures(extract, width, classes, gate, skip)
  # The trunk's features come prepared.
  prepare = inputs.prepare if trunk == "none" else None
  return from_module(module, (size,), classes, prepare)


def _cached_trunk(config: Any) -> MakeTrunk | None:
  none = config.backbone == "none"
  return None if none else partial(frozen_trunk, config.pretrained)


def _width(config: Any) -> int | None:
  return int(config.num_features) if "num_features" in config else None


def _constraints(config: Any) -> list[Rule]:
  network, shape = config.network, data.find(config.data.name).image_shape
  given = f"config.network.backbone={network.backbone!r}"
  cached = _cached_trunk(network) is not None
  return [
    (
      cached and not (shape is None or is_image(shape)),
      f"{given} takes {WANTS_IMAGES} in colour, which those of config.data.name="
      f"{config.data.name!r} are not; use 'none'.",
    ),
    (
      not cached and network.pretrained != "",
      f"{given} has no use for config.network.pretrained={network.pretrained!r}; set "
      "config.network.backbone='conv5'.",
    ),
    *frozen_trunk_rules(config, "backbone", frozen=cached, cached=cached),
  ]


_SHARED: dict[str, Any] = {
  "classifier": "sbc",
  "num_features": _width,
  "cached_trunk": _cached_trunk,
  "constraints": _constraints,
}
RAW = NetworkSpec(raw, title="energy over raw inputs", **_SHARED)
FOURIER = NetworkSpec(
  fourier,
  title="energy over random Fourier features",
  small={"num_features": 32},
  **_SHARED,
)
RELU = NetworkSpec(
  relu, title="energy over random ReLU features", small={"num_features": 32}, **_SHARED
)
