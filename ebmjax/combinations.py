"""The rules that span several keys of a configuration, each told in a sentence."""

import math

from ml_collections import ConfigDict

from ebmjax import data, method_rules
from ebmjax.config import default
from ebmjax.method_rules import Rule
from ebmjax.networks import TRUNKS

_OF_COLOUR = ("conv4", "conv5", "resnet18", "flat")  # trunks for such images alone


def rules(config: ConfigDict) -> list[Rule]:
  """Returns every rule, with what it finds in `config`."""
  generated = data.DATASETS[config.data.name].generated
  return [
    *method_rules.of_setting(config),
    *method_rules.of_method(config),
    *_of_objective(config),
    *_of_network(config),
    *_of_data(config),
    *(_of_generated(config) if generated else []),
  ]


def _of_objective(config: ConfigDict) -> list[Rule]:
  """Returns the rules of objectives and their negatives."""
  pairs = config.objective == "joint_pairs"
  return [
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
  ]


def _of_network(config: ConfigDict) -> list[Rule]:
  """Returns the rules of a network and the images it is given."""
  info = data.DATASETS[config.data.name]
  trunks, gate = _trunks_for(info), _unusual_gate(config.network)
  return [
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
      config.network.trunk == "resnet18" and config.network.name != "sbc",
      "config.network.trunk='resnet18' is a classifier's, not config.network.name="
      f"{config.network.name!r}'s; use 'sbc' or config.network.trunk='conv4'.",
    ),
    (
      config.network.trunk == "flat" and config.network.name == "ebm" and bool(gate),
      f"config.network.trunk='flat' has a gate of its own, in the place of {gate}; "
      "leave the gate's keys at their defaults.",
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
      config.network.init == "pytorch_seed" and not _has_seeded_weights(config),
      "config.network.init='pytorch_seed' knows the released code's MNIST networks "
      "alone (config.network.trunk='none', embedding='learned', at most two gated "
      "layers, no context, at least 16 hidden units); use 'pytorch', the same "
      "distribution.",
    ),
  ]


def _unusual_gate(network: ConfigDict) -> str:
  """Returns the keys of a label's gate that are not at their defaults, or nothing."""
  usual = default().network
  keys = ("gate", "embedding", "skip", "gated_layers", "mask_off", "position")
  changed = [key for key in keys if network[key] != usual[key]]
  return ", ".join(f"config.network.{key}={network[key]!r}" for key in changed)


def _has_seeded_weights(config: ConfigDict) -> bool:
  network = config.network
  plain = network.trunk == "none" and network.hidden >= 16
  gated = network.embedding == "learned" and network.gated_layers <= 2
  return plain and (gated or network.name == "sbc") and not network.context


def _of_data(config: ConfigDict) -> list[Rule]:
  """Returns the rules of images, tasks and what is held out."""
  colour = len(data.DATASETS[config.data.name].image_shape) == 3
  return [
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
      config.data.validation > 0 and config.data.memorise,
      f"config.data.validation={config.data.validation} holds images out of training, "
      "and config.data.memorise=True scores on the training images; set one of them to "
      "0 or False.",
    ),
    *(_of_channels(config, key) for key in ("mean", "std")),
    (
      any(isinstance(std, float | int) and not std > 0 for std in config.data.std),
      f"config.data.std={config.data.std!r} divides the pixels; give positive numbers.",
    ),
  ]


def _of_channels(config: ConfigDict, key: str) -> Rule:
  """Returns the rule of a key of `data` that has a number for each channel."""
  shape, values = data.DATASETS[config.data.name].image_shape, config.data[key]
  channels = shape[2] if len(shape) == 3 else 1
  numbers = all(isinstance(v, float | int) and math.isfinite(v) for v in values)
  return (
    not numbers or len(values) not in (0, channels),
    f"config.data.{key}={values!r} does not fit the images of config.data.name="
    f"{config.data.name!r}; give {channels} number{'s' * (channels > 1)}, one a "
    "channel, or () for the usual.",
  )


def _of_generated(config: ConfigDict) -> list[Rule]:
  """Returns the rules of images that are not stored."""
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
    (
      len(config.data.mean) + len(config.data.std) > 0,
      f"{name} is drawn as the network sees it; leave config.data.mean and "
      "config.data.std at ().",
    ),
  ]


def _trunks_for(info: data.DatasetInfo) -> tuple[str, ...]:
  """Returns the trunks whose input an image of this data set can be."""
  if info.generated:
    return ("flat",)
  unfit = ("none",) if len(info.image_shape) == 3 else _OF_COLOUR
  return tuple(name for name in TRUNKS if name not in unfit)
