"""The CIFAR-10 networks: where and how a label conditions the convolutions."""

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from ebmjax.networks.conv import Conv, flatten_channels_first, in_halves, max_pool
from ebmjax.networks.gates import LabelGate
from ebmjax.networks.heads import EnergyHead, select
from ebmjax.networks.initialisers import dense

# Where the label enters, as the paper numbers its architectures.
POSITIONS = {"v1": 3, "v2": 32, "v3": 64, "v4": 1024}  # features gated there
_FLAT = 2304  # 64 channels of 6 x 6


class ConvTrunk(nn.Module):
  """Two blocks of two convolutions, then a dense layer of 1024; no ReLU after it.

  The blocks are public, so that a label can be brought in between them.
  """

  conv_form: str = "auto"
  init_style: str = "pytorch"

  def setup(self) -> None:
    def conv(inputs: int, features: int, padding: int) -> Conv:
      return Conv(inputs, features, 1, padding, self.conv_form, self.init_style)

    self.convs = [conv(3, 32, 1), conv(32, 32, 0), conv(32, 64, 1), conv(64, 64, 0)]
    self.fc = dense(1024, _FLAT, self.init_style)

  def block(self, x: Array, number: int, pool: bool = True) -> Array:
    """Returns the rectified output of a block's two convolutions."""
    first, second = self.convs[2 * number : 2 * number + 2]
    # The largest of rectified values is the largest one, rectified: fewer of them.
    return jax.nn.relu(second(jax.nn.relu(first(x)), pool=pool))

  def last(self, x: Array) -> Array:
    """Returns [B, 1024] of the second block's pooled output."""
    return self.fc(flatten_channels_first(x))

  def __call__(self, x: Array) -> Array:
    """Returns [B, 1024] of images [B, 32, 32, 3]."""
    return self.last(in_halves(self._blocks, x, self.conv_form))

  def _blocks(self, x: Array) -> Array:
    return self.block(self.block(x, 0), 1)


class EnergyConv(nn.Module):
  """E(x, y) of images [B, 32, 32, 3], the label entering at one of four places.

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
  mask_off: float = 0.85

  def setup(self) -> None:
    self.trunk = ConvTrunk(self.conv_form, self.init_style)
    self.label_gate = LabelGate(
      self.num_classes,
      POSITIONS[self.position],
      self.gate,
      self.embedding,
      self.skip,
      mask_off=self.mask_off,
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
    """Returns [B * K, 1024]; s [B, K, F]. What stands before the gate is done once."""
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

  def setup(self) -> None:
    self.trunk = ConvTrunk(self.conv_form, self.init_style)
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
