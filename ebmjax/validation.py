"""The rules a configuration must follow, each broken one told in a sentence."""

from collections.abc import Iterable

from ml_collections import ConfigDict

from ebmjax import data, streams
from ebmjax.augmentation import AUGMENTATIONS
from ebmjax.config import choices_sentence, lookup
from ebmjax.errors import ConfigError
from ebmjax.losses import LOSSES
from ebmjax.methods import METHODS
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
  if config.objective in fixed:
    return fixed[config.objective]
  boundary_free = config.stream.setting == "boundary_free"
  return "one_of_batch" if boundary_free else "one_of_task"


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
  "network.gated_layers": 1,
  "eval.every": 0,
  "eval.batch_size": 1,
  "checkpoint.every": 1,
  "checkpoint.keep": 1,
  "runner.chunk": 1,
}

_AT_MOST = {
  "seed": 2**31 - 1,  # JAX's keys have 32 bits, and larger seeds would repeat smaller
  "stream.tasks": 127,  # a stream's table of tasks is int8
}

_BETWEEN = {
  "optimiser.learning_rate": (0.0, 10.0),
  "network.mask_off": (-1e-9, 1.0),
  "optimiser.b1": (-1e-9, 1.0),
  "optimiser.b2": (-1e-9, 1.0),
}


def _combinations(config: ConfigDict) -> list[tuple[bool, str]]:
  """Returns (broken, sentence) for every rule that spans several keys."""
  boundary_free = config.stream.setting == "boundary_free"
  pairs = config.objective == "joint_pairs"
  colour = len(data.DATASETS[config.data.name].image_shape) == 3
  return [
    (
      boundary_free and config.negatives == "one_of_task",
      "config.negatives='one_of_task' needs task boundaries, and "
      "config.stream.setting='boundary_free' has none; use 'one_of_batch'.",
    ),
    (
      boundary_free and config.stream.scenario == "task",
      "config.stream.scenario='task' tells the learner its task, and "
      "config.stream.setting='boundary_free' hides it; use 'boundary_aware'.",
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
      (config.network.trunk != "none") != colour,
      f"config.network.trunk={config.network.trunk!r} does not fit the images of "
      f"config.data.name={config.data.name!r}; use "
      f"{'conv4 or conv5' if colour else 'none'}.",
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
  ]
