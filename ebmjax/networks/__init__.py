"""Energy networks: Linen modules behind the pure functions of `types.Network`."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax import Array

from ebmjax.networks.capacity import CapacityEnergy
from ebmjax.networks.cifar10 import ClassifierConv, EnergyConv
from ebmjax.networks.cifar100 import FEATURES, NormTrunk, load_trunk, trunk_digest
from ebmjax.networks.context import ContextMLP
from ebmjax.networks.conv import COMPILER_OPTIONS, is_blocked
from ebmjax.networks.kept import kept_units, widest
from ebmjax.networks.mlp import ClassifierMLP, EnergyMLP
from ebmjax.networks.normalisation import Noise, Normalise, Preparation
from ebmjax.networks.resnet import FEATURES as RESNET_FEATURES
from ebmjax.networks.resnet import LinearClassifier, SlimResNet18
from ebmjax.networks.trunked import with_trunk
from ebmjax.types import Network, PyTree

NETWORKS = ("ebm", "sbc")
# none, conv4, conv5: of MNIST, CIFAR-10 and CIFAR-100. resnet18: of GSS-Greedy's
# authors on CIFAR-10. flat: none, colour images as one long row; the capacity study's.
TRUNKS = ("none", "conv4", "conv5", "resnet18", "flat")

__all__ = [
  "NETWORKS",
  "TRUNKS",
  "ClassifierConv",
  "ClassifierMLP",
  "EnergyConv",
  "EnergyMLP",
  "Noise",
  "Normalise",
  "caches_features",
  "compiler_options",
  "compute_features",
  "from_module",
  "make",
  "trunk_digest",
]


def make(
  config: Any,
  *,
  input_shape: tuple[int, ...],
  num_classes: int,
  num_tasks: int = 1,
  normalise: Preparation | None = None,
  init_keys: Array | None = None,
  max_labels: int | None = None,
) -> Network:
  """Returns the network of `config.network` for inputs of `input_shape`.

  Given the keys [R] that its `init` will be called with, a masked network computes only
  the units its masks keep; `max_labels` then bounds the distinct labels of a batch.
  """
  normalise = normalise or Normalise()
  if config.trunk == "conv4":
    return from_module(_conv4(config, num_classes), input_shape, num_classes, normalise)
  if config.trunk == "resnet18":
    return _resnet18(config, num_classes, normalise)
  has_trunk = config.trunk == "conv5" and not caches_features(config)
  inputs = FEATURES if has_trunk else math.prod(normalise.output_shape(input_shape))
  if config.trunk == "flat":
    flat = _flat(config, inputs, num_classes)
    return from_module(flat, (inputs,), num_classes, normalise)
  network = from_module(
    _mlp(config, inputs, num_classes, num_tasks), (inputs,), num_classes, normalise
  )
  if _is_masked(config) and init_keys is not None:
    network = kept_units(
      network, width=widest(network, init_keys), max_labels=max_labels or num_classes
    )
  if not has_trunk:
    return network
  return with_trunk(
    network,
    NormTrunk(config.conv_form, config.init),
    normalise,
    mode=config.conv,
    weights=load_trunk(config.pretrained) if config.pretrained else None,
  )


def caches_features(config: Any) -> bool:
  """Returns whether the trunk never changes: its features then stand for images."""
  return config.trunk == "conv5" and config.conv == "fixed_statistics"


def compiler_options(config: Any) -> dict[str, str] | None:
  """Returns what programs with the network should be compiled with; None: as usual."""
  trunks = ("conv4", "conv5", "resnet18")
  convolves = config.trunk in trunks and not caches_features(config)
  mixed = _is_masked(config) or (convolves and is_blocked(config.conv_form))
  return _mixed_kernels() if mixed else None


def compute_features(
  config: Any, images: np.ndarray, normalise: Preparation, batch: int = 200
) -> np.ndarray:
  """Returns [N, 1024] float32: the frozen trunk's features of images [N, 32, 32, 3]."""
  trunk, weights = NormTrunk("native", config.init), load_trunk(config.pretrained)
  # A plain jitted call, not a loop on the device: the native convolution is fast there.
  apply: Any = jax.jit(
    lambda x: trunk.apply(weights, normalise(x)), compiler_options=_mixed_kernels()
  )
  parts = [images[i : i + batch] for i in range(0, len(images), batch)]
  return np.concatenate([np.asarray(apply(part)) for part in parts])


def from_module(
  module: nn.Module,
  input_shape: tuple[int, ...],
  num_classes: int,
  normalise: Preparation | None = None,
) -> Network:
  """Returns pure functions over a Linen module of the form module(x, labels).

  `input_shape` is what the module sees of a row after `normalise`. Variables beside its
  parameters stay as they were initialised: a module that moves running statistics is
  refused (`with_trunk` has them).
  """
  normalise = normalise or Normalise()

  def prepare(x: Array) -> Array:
    return normalise(x).reshape(x.shape[0], *input_shape)

  def init(key: Array) -> tuple[PyTree, PyTree]:
    x = jnp.zeros((1, *input_shape))
    variables = dict(module.init(key, x, jnp.zeros((1, 1), jnp.int32)))
    if "batch_stats" in variables:
      raise ValueError(f"{type(module).__name__} has running statistics to be moved")
    return variables.pop("params"), variables

  def energies(
    params: PyTree, model_state: PyTree, x: Array, labels: Array, train: bool = False
  ) -> tuple[Array, PyTree]:
    del train  # no layer of these networks behaves otherwise in training
    variables = {"params": params, **model_state}
    out: Any = module.apply(variables, prepare(x), labels)
    return out, model_state

  def features(params: PyTree, model_state: PyTree, x: Array) -> Array:
    variables = {"params": params, **model_state}
    out: Any = module.apply(variables, prepare(x), method="features")
    return out

  def task_energies(params: PyTree, model_state: PyTree, x: Array, y: Array) -> Array:
    variables = {"params": params, **model_state}
    out: Any = module.apply(variables, prepare(x), y, method="task_energies")
    return out

  of_tasks = task_energies if hasattr(module, "task_energies") else None
  return Network(init, energies, features, num_classes, of_tasks)


def _mixed_kernels() -> dict[str, str] | None:
  return COMPILER_OPTIONS if jax.default_backend() == "cpu" else None


def _mlp(config: Any, num_inputs: int, num_classes: int, num_tasks: int) -> nn.Module:
  sizes = (num_inputs, config.hidden, num_classes)
  if config.context:
    return ContextMLP(*sizes, num_tasks, config.context, config.init)
  if config.name == "sbc":
    return ClassifierMLP(*sizes, init_style=config.init)
  return EnergyMLP(
    *sizes,
    gated_layers=config.gated_layers,
    init_style=config.init,
    **_gate(config),
  )


def _flat(config: Any, num_inputs: int, num_classes: int) -> nn.Module:
  if config.name == "sbc":
    outputs = config.label_rows or num_classes
    return ClassifierMLP(num_inputs, config.hidden, outputs, init_style=config.init)
  return CapacityEnergy(
    num_inputs, config.hidden, num_classes, config.init, config.label_rows
  )


def _is_masked(config: Any) -> bool:
  two_layers = config.name == "ebm" and config.gated_layers == 2
  return two_layers and config.embedding == "mask"


def _conv4(config: Any, num_classes: int) -> nn.Module:
  form, style = config.conv_form, config.init
  if config.name == "sbc":
    return ClassifierConv(num_classes, form, style)
  return EnergyConv(
    num_classes,
    config.position,
    conv_form=form,
    init_style=style,
    **_gate(config),
  )


def _resnet18(config: Any, num_classes: int, normalise: Preparation) -> Network:
  head = LinearClassifier(RESNET_FEATURES, num_classes, config.init)
  return with_trunk(
    from_module(head, (RESNET_FEATURES,), num_classes),
    SlimResNet18(config.conv_form, config.init),
    normalise,
    mode="finetune",
    weights=None,
  )


def _gate(config: Any) -> dict[str, Any]:
  return {key: config[key] for key in ("gate", "embedding", "skip", "mask_off")}
