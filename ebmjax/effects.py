"""Which keys of a configuration nothing reads, so that setting them is told."""

from collections.abc import Iterable

from ml_collections import ConfigDict

from ebmjax.traits import traits

_GATE = ("gate", "embedding", "skip", "gated_layers", "mask_off", "position")
# What a trunk leaves unread of `config.network`. (A gate of flat's is refused.)
_UNREAD_BY_TRUNK: dict[str, tuple[str, ...]] = {
  "none": ("conv", "conv_form", "pretrained", "position"),
  "conv4": ("conv", "pretrained", "hidden", "gated_layers"),
  "conv5": ("position",),
  "resnet18": ("conv", "pretrained", "hidden", "gated_layers"),
  "flat": ("conv", "conv_form", "pretrained"),
}

# What a method that consolidates every so many steps leaves unread.
_UNREAD_PERIODICALLY: dict[str, tuple[str, ...]] = {
  "online_ewc": ("fisher_samples",),
  "er": ("quota",),
}


def without_effect(config: ConfigDict) -> dict[str, str]:
  """Returns {"method.strength": "config.method.name='lwf'"}: keys and why, each."""
  return _of_network(config) | _of_stream(config) | _of_method(config)


def _of_network(config: ConfigDict) -> dict[str, str]:
  network = config.network
  unread = _UNREAD_BY_TRUNK.get(network.trunk, ())
  out = _told("network", unread, f"config.network.trunk={network.trunk!r}")
  masked = network.embedding == "mask"
  reason = f"config.network.embedding={network.embedding!r}"
  out |= _told("network", ["gate", "skip"] if masked else ["mask_off"], reason)
  if network.name == "sbc":
    out |= _told("network", _GATE, "config.network.name='sbc'")
  if (network.trunk, network.conv) == ("conv5", "fixed_statistics"):
    out |= _told("network", ["conv_form"], "config.network.conv='fixed_statistics'")
  return out


def _of_stream(config: ConfigDict) -> dict[str, str]:
  setting = config.stream.setting
  unread = "iterations" if setting == "boundary_free" else "epochs_per_task"
  out = _told("stream", [unread], f"config.stream.setting={setting!r}")
  if config.stream.name == "split":
    out |= _told("stream", ["first_permutation"], "config.stream.name='split'")
  return out


def _of_method(config: ConfigDict) -> dict[str, str]:
  name = config.method.name
  keys, reason = traits(name).keys, f"config.method.name={name!r}"
  out = {}
  if keys is not None:
    read = ("name", "consolidate_every", *keys)
    out = _told("method", (key for key in config.method if key not in read), reason)
  if config.method.consolidate_every:
    reason = f"config.method.consolidate_every={config.method.consolidate_every}"
    out |= _told("method", _UNREAD_PERIODICALLY.get(name, ()), reason)
  if config.optimiser.name == "sgd":
    out |= _told("optimiser", ["b1", "b2"], "config.optimiser.name='sgd'")
  if not traits(name).optimiser:
    out |= _told("optimiser", config.optimiser, reason)
  return out


def _told(part: str, keys: Iterable[str], reason: str) -> dict[str, str]:
  return {f"{part}.{key}": reason for key in keys}
