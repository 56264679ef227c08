"""The rules a configuration must follow, each broken one told in a sentence."""

from collections.abc import Iterable

from ml_collections import ConfigDict

from ebmjax import data, streams
from ebmjax.augmentation import AUGMENTATIONS
from ebmjax.buffers import QUOTAS
from ebmjax.config import choices_sentence, lookup
from ebmjax.errors import ConfigError
from ebmjax.importance import FISHERS
from ebmjax.losses import LOSSES
from ebmjax.methods import METHODS
from ebmjax.methods.er import REPLAY_WEIGHTS
from ebmjax.methods.lwf import DISTILLATIONS
from ebmjax.methods.mas import IMPORTANCES
from ebmjax.methods.si import PATH_GRADIENTS
from ebmjax.negatives import NEGATIVES
from ebmjax.networks import NETWORKS, TRUNKS
from ebmjax.networks.cifar10 import POSITIONS
from ebmjax.networks.conv import CONV_FORMS
from ebmjax.networks.gates import EMBEDDINGS, NORMALISATIONS
from ebmjax.networks.initialisers import INITS
from ebmjax.networks.trunked import CONV_MODES
from ebmjax.runner import DRIVERS


def resolve(config: ConfigDict) -> ConfigDict:
  """Returns a validated copy with every `auto` of fixed meaning spelled out."""
  config = config.copy_and_resolve_references()
  if config.negatives == "auto":
    config.negatives = _default_negatives(config)
  validate(config)
  return config


def _default_negatives(config: ConfigDict) -> str:
  fixed = {"ce": "all_seen", "joint_pairs": "repaired", "likelihood": "all_of_batch"}
  if config.objective == "ce" and config.method.name == "bgd":
    return "all_classes"  # its authors' code knows no classes to come
  if config.objective in fixed:
    return fixed[config.objective]
  aware = config.stream.setting == "boundary_aware"
  return "one_of_task" if aware else "one_of_batch"


def validate(config: ConfigDict) -> None:
  """Raises ConfigError at the first fault: the key, its value and the remedy."""
  for key, choices in _CHOICES.items():
    value = lookup(config, key)
    if value not in choices:
      raise ConfigError(
        f"config.{key}={value!r} is unknown; {choices_sentence(value, choices)}"
      )
  for key, least in _AT_LEAST.items():
    value = lookup(config, key)
    if not value >= least:
      raise ConfigError(f"config.{key}={value!r} is too small; give {least} or more.")
  for key, most in _AT_MOST.items():
    value = lookup(config, key)
    if value > most:
      raise ConfigError(f"config.{key}={value!r} is too large; give {most} or less.")
  for key, (low, high) in _BETWEEN.items():
    value = lookup(config, key)
    if not low < value < high:
      raise ConfigError(
        f"config.{key}={value!r} is out of range; give a number between {low:g} and "
        f"{high:g}."
      )
  for broken, sentence in _combinations(config):
    if broken:
      raise ConfigError(sentence)


_CHOICES: dict[str, Iterable[str]] = {
  "objective": LOSSES,
  "negatives": NEGATIVES,
  "data.name": data.DATASETS,
  "data.source": data.SOURCES,
  "stream.name": streams.STREAMS,
  "stream.setting": streams.SETTINGS,
  "stream.scenario": streams.SCENARIOS,
  "stream.class_order": streams.CLASS_ORDERS,
  "stream.first_permutation": streams.FIRST_PERMUTATIONS,
  "data.augment": AUGMENTATIONS,
  "network.name": NETWORKS,
  "network.trunk": TRUNKS,
  "network.conv": CONV_MODES,
  "network.conv_form": CONV_FORMS,
  "network.position": POSITIONS,
  "network.gate": NORMALISATIONS,
  "network.embedding": EMBEDDINGS,
  "network.init": INITS,
  "method.name": METHODS,
  "method.fisher": FISHERS,
  "method.path_gradient": PATH_GRADIENTS,
  "method.importance": IMPORTANCES,
  "method.distillation": DISTILLATIONS,
  "method.quota": QUOTAS,
  "method.replay_weights": REPLAY_WEIGHTS,
  "runner.driver": DRIVERS,
}

_AT_LEAST = {
  "seed": 0,
  "seeds": 1,
  "stream.tasks": 1,
  "stream.iterations": 1,
  "stream.epochs_per_task": 1,
  "stream.batch_size": 1,
  "network.hidden": 1,
  "network.label_rows": 0,
  "data.images": 0,
  "data.validation": 0,
  "network.gated_layers": 1,
  "method.consolidate_every": 0,
  "method.strength": 0.0,
  "method.fisher_samples": 0,
  "method.budget": 1,
  "method.draws": 1,
  "eval.every": 0,
  "eval.batch_size": 1,
  "checkpoint.every": 1,
  "checkpoint.keep": 1,
  "runner.chunk": 1,
  "runner.devices": 0,
  "runner.batch_devices": 1,
}

_AT_MOST = {
  "seed": 2**31 - 1,  # JAX's keys have 32 bits, and larger seeds would repeat smaller
  "stream.tasks": 127,  # a stream's table of tasks is int8
}

_BETWEEN = {
  "optimiser.learning_rate": (0.0, 10.0),
  "network.mask_off": (-1e-9, 1.0),
  "method.decay": (-1e-9, 1.0 + 1e-9),
  "method.damping": (0.0, 1e9),
  "method.temperature": (0.0, 1e9),
  "method.std_init": (0.0, 10.0),
  "method.step_size": (0.0, 1e9),
  "optimiser.b1": (-1e-9, 1.0),
  "optimiser.b2": (-1e-9, 1.0),
}


def _shares_by_class(config: ConfigDict) -> bool:
  method = config.method
  return method.name == "icarl" or (method.name == "er" and method.quota == "class")


_AT_BOUNDARIES = ("ewc", "icarl")  # methods that consolidate there alone
_PERIODIC = ("online_ewc", "si", "mas", "lwf", "er")  # also every so many steps


def _combinations(config: ConfigDict) -> list[tuple[bool, str]]:
  """Returns (broken, sentence) for every rule that spans several keys."""
  setting = config.stream.setting
  hidden = setting != "boundary_aware"
  method, every = config.method.name, config.method.consolidate_every
  pairs = config.objective == "joint_pairs"
  info = data.DATASETS[config.data.name]
  colour = len(info.image_shape) == 3
  trunks = _trunks_for(info)
  return [
    (
      hidden and config.negatives == "one_of_task",
      "config.negatives='one_of_task' needs task boundaries, and "
      f"config.stream.setting={setting!r} has none; use 'one_of_batch'.",
    ),
    (
      hidden and config.stream.scenario == "task",
      "config.stream.scenario='task' tells the learner its task, and "
      f"config.stream.setting={setting!r} hides it; use 'boundary_aware'.",
    ),
    (
      hidden and method in _AT_BOUNDARIES,
      f"config.method.name={method!r} needs task boundaries, and "
      f"config.stream.setting={setting!r} has none; use 'boundary_aware'.",
    ),
    (
      hidden and method in _PERIODIC and not every,
      f"config.method.name={method!r} would never consolidate with "
      f"config.stream.setting={setting!r}; set config.method.consolidate_every, for "
      "example to 100.",
    ),
    (
      every > 0 and method not in _PERIODIC,
      f"config.method.consolidate_every={every} means nothing to "
      f"config.method.name={method!r}; set it to 0.",
    ),
    (
      method == "icarl" and config.network.name != "sbc",
      "config.method.name='icarl' trains sigmoid outputs of a classifier, not "
      f"config.network.name={config.network.name!r}; use 'sbc'.",
    ),
    (
      method in ("er", "icarl") and config.stream.scenario == "task",
      f"config.method.name={method!r} mixes tasks in a batch, and "
      "config.stream.scenario='task' sets only a task's own classes against each "
      "other; use 'class'.",
    ),
    (
      _shares_by_class(config) and config.stream.scenario == "domain",
      f"config.method.name={method!r} keeps images of each class, and with "
      "config.stream.scenario='domain' every task has all of them; use 'class', or "
      "for replay config.method.quota='task'.",
    ),
    (
      pairs != (config.negatives == "repaired"),
      "config.objective='joint_pairs' and config.negatives='repaired' go together; "
      "set both, or leave config.negatives='auto'.",
    ),
    (
      config.objective == "ce" and not config.negatives.startswith("all_"),
      f"config.objective='ce' normalises over many classes, not over "
      f"{config.negatives!r}; use config.negatives='all_seen' or 'all_of_batch'.",
    ),
    (
      config.network.trunk not in trunks,
      f"config.network.trunk={config.network.trunk!r} does not fit the images of "
      f"config.data.name={config.data.name!r}; use {' or '.join(trunks)}.",
    ),
    (
      config.network.trunk == "conv5"
      and config.network.conv != "finetune"
      and not config.network.pretrained,
      f"config.network.conv={config.network.conv!r} freezes the trunk, whose weights "
      "must then be given as config.network.pretrained (an npz file).",
    ),
    (
      config.network.trunk == "conv5"
      and config.network.conv == "fixed_statistics"
      and config.data.augment != "none",
      "config.network.conv='fixed_statistics' computes the features once, which "
      "config.data.augment forbids; set config.data.augment='none'.",
    ),
    (
      config.data.augment != "none" and not colour,
      f"config.data.augment={config.data.augment!r} is for colour images, not for "
      f"{config.data.name!r}; use 'none'.",
    ),
    (
      config.stream.name == "permuted" and config.stream.class_order == "random",
      "config.stream.class_order='random' has no meaning for permuted tasks, which "
      "all hold every class; use 'fixed'.",
    ),
    (
      config.network.label_rows > 0 and config.network.trunk != "flat",
      f"config.network.label_rows={config.network.label_rows} is for "
      f"config.network.trunk='flat', not {config.network.trunk!r}; use 0.",
    ),
    (
      0 < config.network.label_rows < info.num_classes,
      f"config.network.label_rows={config.network.label_rows} is too small for the "
      f"{info.num_classes} classes of config.data.name={config.data.name!r}; use 0 or "
      f"at least {info.num_classes}.",
    ),
    (
      config.data.validation > 0 and config.data.memorise,
      f"config.data.validation={config.data.validation} holds images out of training, "
      "and config.data.memorise=True scores on the training images; set one of them to "
      "0 or False.",
    ),
    *(_generated(config) if info.generated else []),
  ]


def _trunks_for(info: data.DatasetInfo) -> tuple[str, ...]:
  """Returns the trunks whose input an image of this data set can be."""
  if info.generated:
    return ("flat",)
  return ("conv4", "conv5", "flat") if len(info.image_shape) == 3 else ("none",)


def _generated(config: ConfigDict) -> list[tuple[bool, str]]:
  """Returns (broken, sentence) for every rule of images that are not stored."""
  name = f"config.data.name={config.data.name!r}"
  return [
    (
      not config.data.memorise,
      f"{name} has no labels but random ones, to be learned by heart; set "
      "config.data.memorise=True.",
    ),
    (
      config.data.images == 0,
      f"{name} has as many images as are asked for; set config.data.images.",
    ),
    (
      config.data.source != "auto",
      f"{name} is generated and cannot be had from config.data.source="
      f"{config.data.source!r}; use 'auto'.",
    ),
    (
      config.data.augment != "none",
      f"config.data.augment={config.data.augment!r} is for stored images, not for "
      f"{name}; use 'none'.",
    ),
    (
      config.stream.name == "permuted",
      f"config.stream.name='permuted' is for grey images, not for {name}; use 'split'.",
    ),
  ]
