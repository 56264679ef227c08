"""Label conditioning: how the label's vector scales the features of the input.

The factors of three labels over two features, and the features of one row under each:

>>> import jax, jax.numpy as jnp
>>> from ebmjax.networks.gates import LabelGate, gated_relu
>>> gate = LabelGate(num_classes=3, features=2, normalisation="softmax", skip=False)
>>> (s,), _ = gate.init_with_output(jax.random.key(0))
>>> s.mean(axis=1).round(4)
Array([1., 1., 1.], dtype=float32)
>>> gated_relu(jnp.array([[[1.0, -1.0]]]), s[None]).shape
(1, 3, 2)
"""

from typing import Literal

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from ebmjax.networks.initialisers import frozen, mask

Normalisation = Literal["none", "l2", "l2_scaled", "softmax"]
Embedding = Literal["learned", "fixed", "mask"]


class LabelGate(nn.Module):
  """The factors s_y that multiply the features: [C, F] for all labels, one a layer.

  s_y = g_y, or 1 + g_y with the skip connection (x * g + x in the paper's tables), and
  g_y the label's embedding, normalised over the features: as it is, divided by its
  length (`l2`), the same times the number of features (`l2_scaled`), or a softmax times
  that number, so that its mean is 1. All layers share it. A fixed embedding is drawn
  from U(0, 1) and never trained (the paper's "Fix" rows).

  A mask (CIFAR-100) instead switches each unit off with probability `mask_drop_rate`,
  independently for each label and layer, and is never trained either.
  """

  num_classes: int
  features: int
  normalisation: str = "l2"
  embedding: str = "learned"
  skip: bool = True
  layers: int = 1
  mask_drop_rate: float = 0.85

  @nn.compact
  def __call__(self) -> tuple[Array, ...]:
    if self.embedding == "mask":
      draw, shape = mask(self.mask_drop_rate), (self.num_classes, self.features)
      return tuple(frozen(self, "masks", draw, self.layers, *shape))
    gate = normalise(self._table(), self.normalisation)
    return (gate + 1 if self.skip else gate,) * self.layers

  def _table(self) -> Array:
    shape = (self.num_classes, self.features)
    if self.embedding == "learned":
      return self.param("embedding", nn.initializers.normal(1.0), shape)
    return frozen(self, "embedding", jax.random.uniform, *shape)

  @property
  def nonnegative(self) -> bool:
    """Whether s_y >= 0 for any parameters: a mask, a softmax, 1 + a unit vector."""
    unit_and_one = self.normalisation == "l2" and self.skip
    return self.embedding == "mask" or self.normalisation == "softmax" or unit_and_one


def normalise(table: Array, kind: str) -> Array:
  """Returns table [C, F], normalised over F."""
  if kind == "l2":
    return table / jnp.linalg.norm(table, axis=-1, keepdims=True)
  if kind == "l2_scaled":
    return normalise(table, "l2") * table.shape[-1]
  if kind == "softmax":
    return jax.nn.softmax(table, axis=-1) * table.shape[-1]
  return table


def gated_relu(a: Array, s: Array) -> Array:
  """Returns relu(a * s): features a [..., F] of a row scaled by a label's factors s.

  With an axis of labels, a is [B, K, F] or [B, 1, F] and s [B, K, F].
  """
  return jax.nn.relu(a * s)


def gated_relu_readout(a: Array, s: Array, w: Array, *, nonnegative: bool) -> Array:
  """Returns [B, L]: relu(a_b * s_l) . w for all pairs of a row and a label.

  relu(a s) = relu(a) max(s, 0) + relu(-a) max(-s, 0), so the sum over features is a
  matrix product, and the [B, L, F] products never exist. a [B, F], s [L, F], w [F].
  """
  if nonnegative:
    return jax.nn.relu(a) @ (s * w[None, :]).T
  up = jax.nn.relu(a) @ (jax.nn.relu(s) * w[None, :]).T
  return up + jax.nn.relu(-a) @ (jax.nn.relu(-s) * w[None, :]).T
