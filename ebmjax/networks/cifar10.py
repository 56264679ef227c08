"""The CIFAR-10 networks: where and how a label conditions the convolutions."""

from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from ebmjax.networks.conv import (
  Conv,
  compiler_options,
  flatten_channels_first,
  in_halves,
  max_pool,
)
from ebmjax.networks.distinct import each_label_once
from ebmjax.networks.gates import LabelGate
from ebmjax.networks.heads import EnergyHead, select
from ebmjax.networks.initialisers import dense
from ebmjax.networks.module import from_module
from ebmjax.networks.normalisation import Padded
from ebmjax.networks.spec import (
  ConvForm,
  Embedding,
  Gate,
  Init,
  Inputs,
  MaskDropRate,
  NetworkSpec,
  Skip,
)
from ebmjax.types import Network

# Where the label enters, as the paper numbers its architectures.
Position = Literal["v1", "v2", "v3", "v4"]
FEATURES = 1024
_LEAST = 10  # pixels of a side; smaller images are padded


class ConvTrunk(nn.Module):
  """Two blocks of two convolutions, then a dense layer of 1024; no ReLU after it.

  The blocks are public, so that a label can enter between them.
  """

  conv_form: str = "auto"
  init_style: str = "pytorch"
  image_shape: tuple[int, ...] = (32, 32, 3)

  def setup(self) -> None:
    def conv(inputs: int, features: int, padding: int) -> Conv:
      return Conv(inputs, features, 1, padding, self.conv_form, self.init_style)

    self.convs = [
      conv(self.image_shape[-1], 32, 1),
      conv(32, 32, 0),
      conv(32, 64, 1),
      conv(64, 64, 0),
    ]
    height, width = (_pooled(_pooled(side)) for side in self.image_shape[:2])
    self.fc = dense(FEATURES, 64 * height * width, self.init_style)

  def block(self, x: Array, number: int, pool: bool = True) -> Array:
    """Returns the rectified output of a block's two convolutions."""
    first, second = self.convs[2 * number : 2 * number + 2]
    # max(relu(x)) = relu(max(x)), and after pooling there are fewer values.
    return jax.nn.relu(second(jax.nn.relu(first(x)), pool=pool))

  def last(self, x: Array) -> Array:
    """Returns [B, 1024] of the second block's pooled output."""
    return self.fc(flatten_channels_first(x))

  def __call__(self, x: Array) -> Array:
    """Returns [B, 1024] of images [B, H, W, C]."""
    return self.last(in_halves(self._blocks, x, self.conv_form))

  def _blocks(self, x: Array) -> Array:
    return self.block(self.block(x, 0), 1)


class EnergyConv(nn.Module):
  """E(x, y) of images [B, H, W, C], the label entering at one of four places.

  v1: the image's colours; v2, v3: the channels after the first or second block; v4: the
  1024 features, with no ReLU after them, so that the energies of all labels are one
  matrix product: E = f . (s_y * w) + b.
  """

  num_classes: int
  position: str = "v4"
  gate: str = "softmax"
  embedding: str = "learned"
  skip: bool = False
  conv_form: str = "auto"
  init_style: str = "pytorch"
  mask_drop_rate: float = 0.85
  image_shape: tuple[int, ...] = (32, 32, 3)

  def setup(self) -> None:
    self.trunk = ConvTrunk(self.conv_form, self.init_style, self.image_shape)
    gated = {"v1": self.image_shape[-1], "v2": 32, "v3": 64, "v4": FEATURES}
    self.label_gate = LabelGate(
      self.num_classes,
      gated[self.position],
      self.gate,
      self.embedding,
      self.skip,
      mask_drop_rate=self.mask_drop_rate,
    )
    self.head = EnergyHead(1024, self.init_style)

  def __call__(self, x: Array, labels: Array) -> Array:
    """Returns energies [B, K] for labels [B, K], or [B, L] for labels [L]."""
    (s,) = self.label_gate()
    w, b = self.head()
    if self.position == "v4":
      return select(self.trunk(x) @ (s * w[None, :]).T + b, labels)
    rows = s[labels] if labels.ndim == 2 else jnp.repeat(s[labels][None], len(x), 0)
    f = self._gated_features(x, rows)
    return (jax.nn.relu(f) @ w + b).reshape(rows.shape[:2])

  def features(self, x: Array) -> Array:
    """Returns [B, 1024]: the features with every label's factor taken as 1."""
    return self.trunk(x)

  def _gated_features(self, x: Array, s: Array) -> Array:
    """Returns [B * K, 1024]; s [B, K, F]. Layers before the gate run once per image."""
    trunk = self.trunk
    if self.position == "v1":
      return trunk(_gate_pixels(x, s))
    if self.position == "v2":
      gated = max_pool(_gate_pixels(trunk.block(x, 0, pool=False), s))
      return trunk.last(trunk.block(gated, 1))
    gated = _gate_pixels(trunk.block(trunk.block(x, 0), 1, pool=False), s)
    return trunk.last(max_pool(gated))


class ClassifierConv(nn.Module):
  """The softmax classifier: the same trunk, then 1024-1024-C with ReLUs."""

  num_classes: int
  conv_form: str = "auto"
  init_style: str = "pytorch"
  image_shape: tuple[int, ...] = (32, 32, 3)

  def setup(self) -> None:
    self.trunk = ConvTrunk(self.conv_form, self.init_style, self.image_shape)
    self.fc = dense(1024, 1024, self.init_style)
    self.head = dense(self.num_classes, 1024, self.init_style)

  def __call__(self, x: Array, labels: Array) -> Array:
    """Returns energies [B, K] for labels [B, K], or [B, L] for labels [L]."""
    return select(-self.head(self.features(x)), labels)

  def features(self, x: Array) -> Array:
    """Returns [B, 1024]: the last hidden layer."""
    return jax.nn.relu(self.fc(jax.nn.relu(self.trunk(x))))


def _gate_pixels(x: Array, s: Array) -> Array:
  """Returns [B * K, H, W, C]: x [B, H, W, C], channels scaled by s [B, K, C]."""
  gated = x[:, None] * s[:, :, None, None, :]
  return gated.reshape(-1, *x.shape[1:])


def energy_conv4(
  inputs: Inputs,
  *,
  position: Annotated[Position, "where the label enters"] = "v4",
  gate: Gate = "softmax",
  embedding: Embedding = "learned",
  skip: Skip = False,
  mask_drop_rate: MaskDropRate = 0.85,
  conv_form: ConvForm = "auto",
  init: Init = "pytorch",
) -> Network:
  """Builds the paper's CIFAR-10 energy network, for images of any size."""
  inputs = _large_enough(inputs)
  module = EnergyConv(
    inputs.num_classes,
    position,
    gate=gate,
    embedding=embedding,
    skip=skip,
    conv_form=conv_form,
    init_style=init,
    mask_drop_rate=mask_drop_rate,
    image_shape=inputs.shape,
  )
  network = from_module(module, inputs.shape, inputs.num_classes, inputs.prepare)
  if position == "v4":  # all labels are one product
    return network
  return each_label_once(network, inputs.max_labels or inputs.num_classes)


def classifier_conv4(
  inputs: Inputs, *, conv_form: ConvForm = "auto", init: Init = "pytorch"
) -> Network:
  """Builds the CIFAR-10 softmax classifier, for images of any size."""
  inputs = _large_enough(inputs)
  module = ClassifierConv(inputs.num_classes, conv_form, init, inputs.shape)
  return from_module(module, inputs.shape, inputs.num_classes, inputs.prepare)


def _large_enough(inputs: Inputs) -> Inputs:
  """Pads images that are too small for two blocks."""
  if min(inputs.shape[:2]) >= _LEAST or isinstance(inputs.prepare, Padded):
    return inputs
  prepare = Padded(inputs.prepare, _LEAST)
  return inputs._replace(shape=prepare.output_shape(inputs.shape), prepare=prepare)


def _pooled(side: int) -> int:
  """Returns a side's length after a block: two pixels less, then half of it."""
  return (side - 2) // 2


def is_image(shape: tuple[int, ...]) -> bool:
  """Returns whether inputs are images [H, W, C] of at least 8 x 8 pixels."""
  return len(shape) == 3 and min(shape[:2]) >= 8


WANTS_IMAGES = "images of at least 8 x 8 pixels"


_SHARED: dict[str, Any] = {
  "takes_rows": False,
  "accepts": is_image,
  "wants": WANTS_IMAGES,
  "num_features": lambda config: FEATURES,
  "compiler_options": compiler_options,
}
EBM_CONV4 = NetworkSpec(
  energy_conv4, title="energy-based model", classifier="sbc_conv4", **_SHARED
)
SBC_CONV4 = NetworkSpec(
  classifier_conv4, title="softmax classifier", energy=False, **_SHARED
)
