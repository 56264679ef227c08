"""Label conditioning: how the label's vector scales the features of the input."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

NORMALISATIONS = ("none", "l2", "softmax")
EMBEDDINGS = ("learned", "fixed")


class LabelGate(nn.Module):
  """The factor s_y that multiplies the features: [C, F] for all labels at once.

  s_y = g_y, or 1 + g_y with the skip connection (x * g + x in the paper's tables), and
  g_y the label's embedding, normalised over the features: as it is, divided by its
  length, or a softmax scaled to mean 1. A fixed embedding is drawn from U(0, 1) and
  never trained (the paper's "Fix" rows).
  """

  num_classes: int
  features: int
  normalisation: str = "l2"
  embedding: str = "learned"
  skip: bool = True

  @nn.compact
  def __call__(self) -> Array:
    gate = normalise(self._table(), self.normalisation)
    return gate + 1 if self.skip else gate

  def _table(self) -> Array:
    shape = (self.num_classes, self.features)
    if self.embedding == "learned":
      return self.param("embedding", nn.initializers.normal(1.0), shape)
    return self.variable("fixed", "embedding", self._draw_fixed, shape).value

  def _draw_fixed(self, shape: tuple[int, ...]) -> Any:
    return jax.random.uniform(self.make_rng("params"), shape)

  @property
  def nonnegative(self) -> bool:
    """Whether s_y >= 0 whatever the parameters: a softmax, or 1 + a unit vector."""
    return self.normalisation == "softmax" or (self.normalisation == "l2" and self.skip)


def normalise(table: Array, kind: str) -> Array:
  """Returns table [C, F], normalised over F."""
  if kind == "l2":
    return table / jnp.linalg.norm(table, axis=-1, keepdims=True)
  if kind == "softmax":
    return jax.nn.softmax(table, axis=-1) * table.shape[-1]
  return table


def gated_relu(a: Array, s: Array) -> Array:
  """Returns relu(a * s) [B, K, F]: features of a row scaled by labels' factors.

  a [B, K, F] or [B, 1, F]; s [B, K, F] or [1, K, F].
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
