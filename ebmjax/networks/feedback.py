"""The decoder of brain-inspired replay: from a network's features to its inputs."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from ebmjax.networks.initialisers import frozen, mask
from ebmjax.networks.vae import Code, Coder, Decoder

_LAYERS = 2  # of the decoder, each gated


class Reconstruction(NamedTuple):
  """The reconstruction of B rows, and their codes."""

  output: Array  # [B, P]
  z: Array  # [B, Z]
  code: Code  # z's distribution given the row
  modes: Code  # [C, Z] each: z's distribution given a class


class Feedback(nn.Module):
  """Codes of features, a mode of codes for each class, and a decoder gated by class.

  For each class, a random share `gate_off` of the units in each hidden layer of the
  decoder is switched off, drawn once; a row with several labels has the mean of their
  gates. The modes are trained, the gates are not.
  """

  outputs: int
  hidden: int
  latent: int
  num_classes: int
  gate_off: float

  def setup(self) -> None:
    self.coder = Coder(self.latent)
    self.decoder = Decoder(self.outputs, self.hidden)
    shape, normal = (self.num_classes, self.latent), nn.initializers.normal(1.0)
    self.mode_mean = self.param("mode_mean", normal, shape)
    self.mode_log_variance = self.param("mode_log_variance", normal, shape)
    gates = (_LAYERS, self.num_classes, self.hidden)
    self.gates = frozen(self, "gates", mask(self.gate_off), *gates)

  def __call__(self, features: Array, labels: Array, noise: Array) -> Reconstruction:
    """Reconstructs rows from their features [B, F] and label weights [B, C]."""
    code, modes = self.coder(features), Code(self.mode_mean, self.mode_log_variance)
    z = code.at(noise)
    return Reconstruction(self._decode(z, labels), z, code, modes)

  def generate(self, labels: Array, noise: Array) -> Array:
    """Returns rows [B, P] of the classes `labels` [B]; noise [B, Z] is of N(0, 1)."""
    mode = Code(self.mode_mean[labels], self.mode_log_variance[labels])
    return self._decode(mode.at(noise), jax.nn.one_hot(labels, self.num_classes))

  def _decode(self, z: Array, labels: Array) -> Array:
    return self.decoder(z, [labels @ gates for gates in self.gates])


def divergences(made: Reconstruction, labels: Array) -> Array:
  """Returns [B]: log q(z | x) - log sum_c w_c N(z; mode c), label weights w [B, C]."""
  z, modes = made.z[:, None, :], made.modes
  of_row = _log_normal(z, made.code.mean[:, None, :], made.code.log_variance[:, None])
  of_class = _log_normal(z, modes.mean[None], modes.log_variance[None])
  # In logarithms, because a weight may be too small to divide by.
  weights = jnp.log(jnp.maximum(labels, jnp.finfo(labels.dtype).tiny))
  mixture = jax.nn.logsumexp(of_class + weights, axis=1, where=labels > 0)
  return of_row[:, 0] - mixture


def _log_normal(z: Array, mean: Array, log_variance: Array) -> Array:
  """Returns log N(z; mean, exp(log_variance)), summed over the last axis."""
  scaled = (z - mean) ** 2 / jnp.exp(log_variance)
  return -jnp.sum(scaled + log_variance + jnp.log(2 * jnp.pi), axis=-1) / 2
