"""The label-gated energy MLP and the softmax classifier's MLP."""

import math
from typing import Annotated, Any

import jax
from flax import linen as nn
from jax import Array, lax

from ebmjax.config.schema import Count, Rule
from ebmjax.networks.conv import mixed_kernels
from ebmjax.networks.distinct import each_label_once
from ebmjax.networks.gates import LabelGate, gated_relu, gated_relu_readout
from ebmjax.networks.heads import EnergyHead, select
from ebmjax.networks.initialisers import SeededInit, dense
from ebmjax.networks.kept import kept_units, widest
from ebmjax.networks.module import from_module
from ebmjax.networks.seeded import start_from_seeds
from ebmjax.networks.spec import (
  Embedding,
  Gate,
  Hidden,
  Inputs,
  MaskDropRate,
  NetworkSpec,
  Skip,
  hidden_units,
)
from ebmjax.types import Network

# Measured: one product of all labels is faster for two of ten labels, not of a hundred.
_FEW = 8
# The most numbers in the features of all labels of one call.
_NUMBERS = {"cpu": 2**21, "other": 2**26}


class EnergyMLP(nn.Module):
  """E(x, y) = w . h + b with h = relu(s_y * (W x + b)) repeated `gated_layers` times.

  One gated layer where task boundaries are known, two where they are not. Deviation:
  the paper shows the first form alone; the released code has the second without
  boundaries. Over CIFAR-100's features it is two layers of 2000 units gated by masks.
  """

  num_inputs: int
  hidden: int
  num_classes: int
  gated_layers: int = 1
  gate: str = "l2"
  embedding: str = "learned"
  skip: bool = True
  mask_drop_rate: float = 0.85
  init_style: str = "pytorch"

  def setup(self) -> None:
    fan_ins = [self.num_inputs] + [self.hidden] * (self.gated_layers - 1)
    self.layers = [dense(self.hidden, fan_in, self.init_style) for fan_in in fan_ins]
    self.label_gate = LabelGate(
      self.num_classes,
      self.hidden,
      self.gate,
      self.embedding,
      self.skip,
      self.gated_layers,
      self.mask_drop_rate,
    )
    self.head = EnergyHead(self.hidden, self.init_style)

  def __call__(self, x: Array, labels: Array) -> Array:
    """Returns energies [B, K] for labels [B, K], or [B, L] for labels [L]."""
    factors = self.label_gate()
    # One product for all labels costs less than a few labels one by one, unless there
    # are very many.
    few = labels.ndim == 2 and _FEW * labels.shape[1] < self.num_classes
    if self.gated_layers == 1 and not few:
      return select(self._all_labels(x, factors[0]), labels)
    if labels.ndim == 1:
      return self._in_turn(x, [s[labels] for s in factors])
    return self._layered(x, [s[labels] for s in factors])

  def features(self, x: Array) -> Array:
    """Returns [B, F]: the label-free part, rectified."""
    return jax.nn.relu(self.layers[0](x))

  def _all_labels(self, x: Array, s: Array) -> Array:
    """Returns energies [B, C]; the input's part is computed once for all labels."""
    w, b = self.head()
    a = self.layers[0](x)
    return gated_relu_readout(a, s, w, nonnegative=self.label_gate.nonnegative) + b

  def _layered(self, x: Array, factors: list[Array]) -> Array:
    """Returns energies [B, K]; factors, one a layer, [B, K, F]."""
    first, *rest = factors
    h = gated_relu(self.layers[0](x)[:, None, :], first)
    for layer, s in zip(self.layers[1:], rest, strict=True):
      h = gated_relu(layer(h), s)
    w, b = self.head()
    return h @ w + b

  def _in_turn(self, x: Array, factors: list[Array]) -> Array:
    """Returns energies [B, L]; factors, one a layer, [L, F], hold for all rows.

    Some labels at a time: the features of all, [B, L, F], exceed a CPU's caches, and
    those of a thousand labels an accelerator's memory.
    """
    a, (w, b) = self.layers[0](x), self.head()
    layers = [layer.variables["params"] for layer in self.layers[1:]]

    def of_label(factors: list[Array]) -> Array:
      first, *rest = (s[None, :] for s in factors)
      h = gated_relu(a, first)
      for layer, s in zip(layers, rest, strict=True):
        h = gated_relu(h @ layer["kernel"] + layer["bias"][None, :], s)
      return h @ w + b

    most = _NUMBERS["cpu" if jax.default_backend() == "cpu" else "other"]
    return lax.map(of_label, factors, batch_size=max(1, most // a.size)).T


class ClassifierMLP(nn.Module):
  """A softmax classifier seen as energies: E(x, y) = -logit_y(x)."""

  num_inputs: int
  hidden: int
  num_classes: int
  init_style: str = "pytorch"

  def setup(self) -> None:
    self.layers = [
      dense(self.hidden, self.num_inputs, self.init_style),
      dense(self.hidden, self.hidden, self.init_style),
    ]
    self.head = dense(self.num_classes, self.hidden, self.init_style)

  def __call__(self, x: Array, labels: Array) -> Array:
    """Returns energies [B, K] for labels [B, K], or [B, L] for labels [L]."""
    return select(-self.head(self.features(x)), labels)

  def features(self, x: Array) -> Array:
    """Returns [B, F]: the last hidden layer."""
    for layer in self.layers:
      x = jax.nn.relu(layer(x))
    return x


GatedLayers = Annotated[Count, "hidden layers that the label gates"]
Init = Annotated[
  SeededInit, "initial weights; pytorch_seed: those that PyTorch draws for each seed"
]


def energy_mlp(
  inputs: Inputs,
  *,
  hidden: Hidden = 400,
  gated_layers: GatedLayers = 1,
  gate: Gate = "l2",
  embedding: Embedding = "learned",
  skip: Skip = True,
  mask_drop_rate: MaskDropRate = 0.85,
  init: Init = "pytorch",
) -> Network:
  """Builds the paper's energy MLP over rows of numbers."""
  size, classes = num_inputs(inputs), inputs.num_classes
  module = EnergyMLP(
    size,
    hidden,
    classes,
    gated_layers=gated_layers,
    gate=gate,
    embedding=embedding,
    skip=skip,
    mask_drop_rate=mask_drop_rate,
    init_style=init,
  )
  network = from_module(module, (size,), classes, inputs.prepare)
  most = inputs.max_labels or classes
  if is_masked(gated_layers, embedding) and inputs.init_keys is not None:
    width = widest(network, inputs.init_keys)
    network = kept_units(network, width=width, max_labels=most)
  elif gated_layers > 1:
    network = each_label_once(network, most)
  return start_from_seeds(network, inputs) if init == "pytorch_seed" else network


def classifier_mlp(
  inputs: Inputs, *, hidden: Hidden = 400, init: Init = "pytorch"
) -> Network:
  """Builds the softmax classifier: two hidden layers over rows of numbers."""
  size = num_inputs(inputs)
  module = ClassifierMLP(size, hidden, inputs.num_classes, init_style=init)
  network = from_module(module, (size,), inputs.num_classes, inputs.prepare)
  return start_from_seeds(network, inputs) if init == "pytorch_seed" else network


def num_inputs(inputs: Inputs) -> int:
  """Returns how many numbers an input has once it is prepared."""
  return math.prod(inputs.prepare.output_shape(inputs.shape))


def is_masked(gated_layers: int, embedding: str) -> bool:
  """Returns whether only the units that masks keep are computed."""
  return gated_layers == 2 and embedding == "mask"


def _options(config: Any) -> dict[str, str] | None:
  return mixed_kernels(is_masked(config.gated_layers, config.embedding))


_SEEDED = (
  "config.network.init='pytorch_seed' needs embedding='learned', at most two gated "
  "layers and at least 16 hidden units; use 'pytorch', the same distribution."
)


def _constraints(config: Any) -> list[Rule]:
  network = config.network
  known = network.hidden >= 16
  if "gated_layers" in network:
    known &= network.embedding == "learned" and network.gated_layers <= 2
  return [(network.init == "pytorch_seed" and not known, _SEEDED)]


EBM = NetworkSpec(
  energy_mlp,
  title="energy-based model",
  classifier="sbc",
  num_features=hidden_units,
  compiler_options=_options,
  constraints=_constraints,
  small={"hidden": 32},
)
SBC = NetworkSpec(
  classifier_mlp,
  title="softmax classifier",
  energy=False,
  num_features=hidden_units,
  constraints=_constraints,
  small={"hidden": 32},
)
