"""Energy networks behind the pure functions of `types.Network`.

A network is one file with a factory, whose keyword-only parameters are its keys, and a
`NetworkSpec`; a row of `NETWORKS` makes it known. `find` also takes the import path of
a spec in another package, and `ebmjax.testing.check_network(SPEC)` tests it.

`from_module` takes a Linen module, `from_nnx` one of `flax.nnx`, and `from_functions`
functions of parameters, as Equinox, Haiku and plain JAX have them. `grow` makes room
for more classes in a trained network; `ebmjax.EnergyClassifier` calls it itself.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jax import Array

from ebmjax.config.components import find_in
from ebmjax.networks.capacity import EBM_CAPACITY, SBC_CAPACITY
from ebmjax.networks.cifar10 import (
  EBM_CONV4,
  SBC_CONV4,
  ClassifierConv,
  EnergyConv,
)
from ebmjax.networks.cifar100 import trunk_digest
from ebmjax.networks.context import CONTEXT_MLP
from ebmjax.networks.conv5 import EBM_CONV5, SBC_CONV5, feature_function
from ebmjax.networks.functions import from_functions, from_nnx
from ebmjax.networks.growth import grow
from ebmjax.networks.mlp import EBM, SBC, ClassifierMLP, EnergyMLP
from ebmjax.networks.module import from_module
from ebmjax.networks.normalisation import Noise, Normalise, Preparation
from ebmjax.networks.own import build
from ebmjax.networks.patches import PATCHES
from ebmjax.networks.random_features import FOURIER, RAW, RELU
from ebmjax.networks.resnet import SBC_RESNET18
from ebmjax.networks.spec import Inputs, NetworkSpec
from ebmjax.types import Network

__all__ = [
  "NETWORKS",
  "ClassifierConv",
  "ClassifierMLP",
  "EnergyConv",
  "EnergyMLP",
  "Inputs",
  "NetworkSpec",
  "Noise",
  "Normalise",
  "feature_function",
  "find",
  "from_functions",
  "from_module",
  "from_nnx",
  "grow",
  "make",
  "trunk_digest",
]

# ebm: the energy network; sbc: the softmax classifier that it is compared with.
NETWORKS: dict[str, NetworkSpec] = {
  "ebm": EBM,
  "sbc": SBC,
  "ebm_conv4": EBM_CONV4,
  "sbc_conv4": SBC_CONV4,
  "ebm_conv5": EBM_CONV5,
  "sbc_conv5": SBC_CONV5,
  "sbc_resnet18": SBC_RESNET18,
  "ebm_capacity": EBM_CAPACITY,
  "sbc_capacity": SBC_CAPACITY,
  "context_mlp": CONTEXT_MLP,
  "raw": RAW,
  "fourier": FOURIER,
  "relu": RELU,
  "patches": PATCHES,
}


def find(name: str) -> NetworkSpec:
  """Returns the spec of a network, by its name or the import path of its spec."""
  return find_in("network", NETWORKS, name, NetworkSpec)


def make(
  network: str | Mapping[str, Any],
  *,
  input_shape: tuple[int, ...],
  num_classes: int,
  num_tasks: int = 1,
  normalise: Preparation | None = None,
  init_keys: Array | None = None,
  seeds: Sequence[int] = (),
  max_labels: int | None = None,
  **settings: Any,
) -> Network:
  """Builds a network from its name or its configuration group, with `settings`.

  Given the keys [R] that its `init` will be called with, a masked network computes only
  the units that its masks keep; `max_labels` bounds the distinct labels of a batch.
  """
  given = {"name": network} if isinstance(network, str) else dict(network)
  inputs = Inputs(
    shape=input_shape,
    num_classes=num_classes,
    num_tasks=num_tasks,
    prepare=normalise or Normalise(),
    init_keys=init_keys,
    seeds=seeds,
    max_labels=max_labels,
  )
  name = given.pop("name")
  if name in NETWORKS:
    return NETWORKS[name].make(inputs, **given | settings)
  return build(name, find(name), inputs, **given | settings)
