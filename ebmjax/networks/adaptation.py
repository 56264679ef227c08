"""Weights generated from a row's code, added to those that all rows share."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from ebmjax.networks.autoencoder import Autoencoder, small_dense
from ebmjax.networks.heads import select
from ebmjax.types import Network, PyTree

UNITS_EACH = 10  # features whose weights one part generates
_AUTOENCODER, _GENERATOR = 2, 3  # fold_in tags for the init keys of the two


class WeightGenerator(nn.Module):
  """Maps a code to the weights [units, classes] of one row's last features.

  A separate network for every ten units: two hidden layers, with tanh throughout, so
  that no weight exceeds 1.
  """

  units: int
  num_classes: int
  hidden: int

  @nn.compact
  def __call__(self, z: Array) -> Array:
    """Returns [B, units, C] of codes [B, Z]."""
    parts = -(-self.units // UNITS_EACH)
    several = nn.vmap(
      _Part,
      in_axes=None,
      out_axes=1,
      axis_size=parts,
      variable_axes={"params": 0},
      split_rngs={"params": True},
    )
    made = several(self.hidden, UNITS_EACH * self.num_classes, name="parts")(z)
    weights = made.reshape(z.shape[0], parts * UNITS_EACH, self.num_classes)
    return weights[:, : self.units]


class _Part(nn.Module):
  hidden: int
  outputs: int

  @nn.compact
  def __call__(self, z: Array) -> Array:
    for features in (self.hidden, self.hidden, self.outputs):
      z = jnp.tanh(small_dense(features)(z))
    return z


class Adapted(NamedTuple):
  """A network with an autoencoder and generated weights."""

  network: Network
  autoencoder: Autoencoder
  generator: WeightGenerator

  def encode(self, model_state: PyTree, rows: Array) -> Array:
    """Returns codes [B, Z] of rows [B, P]."""
    found: Any = self.autoencoder.apply(
      model_state["autoencoder"], rows, method="encode"
    )
    return found

  def features(self, params: PyTree, model_state: PyTree, x: Array) -> Array:
    """Returns the network's features [B, F]."""
    return self.network.features(params["network"], model_state["network"], x)

  def all_energies(
    self, params: PyTree, model_state: PyTree, x: Array, z: Array
  ) -> Array:
    """Returns energies [B, C] of rows whose codes are z [B, Z]."""
    labels = jnp.arange(self.network.num_classes)
    return self.energies(params, model_state, x, z, labels, train=False)[0]

  def energies(
    self,
    params: PyTree,
    model_state: PyTree,
    x: Array,
    z: Array,
    labels: Array,
    train: bool,
  ) -> tuple[Array, PyTree]:
    """Returns energies of labels [B, K] or [L], and the network's new state."""
    shared, own = self.network.energies(
      params["network"], model_state["network"], x, labels, train=train
    )
    weights: Any = self.generator.apply(params["generator"], z)
    last = self.features(params, model_state, x)[:, -self.generator.units :]
    adaptation = jnp.einsum("bu,buc->bc", last, weights)
    return shared - select(adaptation, labels), model_state | {"network": own}


def as_rows(x: Array) -> Array:
  """Returns [B, P] in [0, 1] of images [B, ...]."""
  return x.reshape(x.shape[0], -1).astype(jnp.float32) / 255


def as_network(adapted: Adapted, row: jax.ShapeDtypeStruct) -> Network:
  """Returns all parts as one network, which encodes its inputs itself."""
  network = adapted.network

  def init(key: Array) -> tuple[PyTree, PyTree]:
    keys = (jax.random.fold_in(key, use) for use in (_AUTOENCODER, _GENERATOR))
    params, model_state = network.init(key)  # unmodified: `pytorch_seed` looks it up
    autoencoder_key, generator_key = keys
    rows = as_rows(jnp.zeros((1, *row.shape), row.dtype))
    z = jnp.zeros((1, adapted.autoencoder.latent))
    return (
      {"network": params, "generator": adapted.generator.init(generator_key, z)},
      {
        "network": model_state,
        "autoencoder": adapted.autoencoder.init(autoencoder_key, rows),
      },
    )

  def energies(
    params: PyTree, model_state: PyTree, x: Array, labels: Array, train: bool = False
  ) -> tuple[Array, PyTree]:
    z = adapted.encode(model_state, as_rows(x))
    return adapted.energies(params, model_state, x, z, labels, train)

  return Network(init, energies, adapted.features, network.num_classes)
