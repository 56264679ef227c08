"""The rules a configuration must follow, each broken one told in a sentence."""

from collections.abc import Iterable

from ml_collections import ConfigDict

from ebmjax import combinations, data, streams
from ebmjax.config import choices_sentence, flat_keys, lookup
from ebmjax.errors import ConfigError
from ebmjax.losses import LOSSES
from ebmjax.methods import METHODS
from ebmjax.methods._replay import REPLAY_WEIGHTS
from ebmjax.methods.buffers import QUOTAS
from ebmjax.methods.importance import FISHERS
from ebmjax.methods.lwf import DISTILLATIONS
from ebmjax.methods.mas import IMPORTANCES
from ebmjax.methods.si import PATH_GRADIENTS
from ebmjax.negatives import NEGATIVES
from ebmjax.networks import NETWORKS, TRUNKS
from ebmjax.networks.autoencoder import GENERATORS
from ebmjax.networks.cifar10 import POSITIONS
from ebmjax.networks.conv import CONV_FORMS
from ebmjax.networks.gates import EMBEDDINGS, NORMALISATIONS
from ebmjax.networks.initialisers import INITS
from ebmjax.networks.trunked import CONV_MODES
from ebmjax.runtime.scan import DRIVERS
from ebmjax.streams.augmentation import AUGMENTATIONS


def resolve(config: ConfigDict) -> ConfigDict:
  """Returns a validated copy with every `auto` of fixed meaning spelled out."""
  config = config.copy_and_resolve_references()
  if config.negatives == "auto":
    config.negatives = _default_negatives(config)
  validate(config)
  return config


# Methods whose authors normalise over all outputs.
_ALL_OUTPUTS = ("bgd", "gss_greedy", "pgma")


def _default_negatives(config: ConfigDict) -> str:
  fixed = {"ce": "all_seen", "joint_pairs": "repaired", "likelihood": "all_of_batch"}
  aware = config.stream.setting == "boundary_aware"
  if config.objective == "ce" and config.method.name in _ALL_OUTPUTS:
    # A task told is told there, too.
    return "all_seen" if config.stream.scenario == "task" else "all_classes"
  if config.method.name == "gss_greedy" and config.objective != "joint_pairs":
    # Single rows have no others to find a negative among.
    likelihood = config.objective == "likelihood"
    return "one_of_task" if aware and not likelihood else "all_seen"
  if config.objective in fixed:
    return fixed[config.objective]
  return "one_of_task" if aware else "one_of_batch"


def validate(config: ConfigDict) -> None:
  """Raises ConfigError at the first fault: the key, its value and the remedy."""
  for key, value in flat_keys(config).items():
    if value is None:  # which ml_collections takes for any type
      raise ConfigError(f"config.{key}=None is no value; leave it out for its default.")
  for key, choices in CHOICES.items():
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
  for broken, sentence in combinations.rules(config):
    if broken:
      raise ConfigError(sentence)


# What the value of a key may be.
CHOICES: dict[str, Iterable[str]] = {
  "objective": LOSSES,
  "negatives": ("auto", *NEGATIVES),
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
  "method.generator": GENERATORS,
  "optimiser.name": ("adam", "sgd"),
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
  "network.context": 0,
  "data.images": 0,
  "data.validation": 0,
  "network.gated_layers": 1,
  "method.consolidate_every": 0,
  "method.strength": 0.0,
  "method.fisher_samples": 0,
  "method.budget": 1,
  "method.draws": 1,
  "method.repeats": 1,
  "method.inner_steps": 1,
  "method.generator_hidden": 1,
  "method.generator_channels": 1,
  "method.latent": 1,
  "method.dreams": 1,
  "method.adapted": 1,
  "method.directions": 1,
  "eval.every": 0,
  "eval.batch_size": 1,
  "checkpoint.every": 1,
  "checkpoint.keep": 2,  # while one is written, another is whole
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
  "method.gate_off": (-1e-9, 1.0),
  "method.decay": (-1e-9, 1.0 + 1e-9),
  "method.damping": (0.0, 1e9),
  "method.temperature": (0.0, 1e9),
  "method.std_init": (0.0, 10.0),
  "method.step_size": (0.0, 1e9),
  "method.context_rate": (0.0, 10.0),
  "optimiser.b1": (-1e-9, 1.0),
  "optimiser.b2": (-1e-9, 1.0),
}
