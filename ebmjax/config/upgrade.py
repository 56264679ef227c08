"""Converts configurations of earlier versions to the current form."""

import functools
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

from ebmjax.config import flat_keys, nested
from ebmjax.config.groups import complete, is_installed, versions

# Before 0.2.0 a configuration held every key of every component.
_RENAMED = {
  "network.conv": "network.backbone_mode",
  "network.mask_off": "network.mask_drop_rate",
  "method.draws": "method.mc_samples",
  "method.dreams": "method.replay_batch",
  "method.adapted": "method.num_generated_units",
}
# The value of network.trunk is now the end of the network's name.
_ENDINGS = {"none": "", "flat": "_capacity"}


def upgrade(config: Mapping[str, Any]) -> dict[str, Any]:
  """Converts a run's configuration to the current keys, nested, with result versions.

  Keys that were added later get their defaults; results without versions get version 1.
  If a component is not installed, its keys are unknown and nothing is converted.
  """
  flat = flat_keys(config)
  stamped = {key: flat.pop(key) for key in list(flat) if key.startswith("version.")}
  if "network.trunk" in flat:
    flat = _from_first_form(flat)
  if not is_installed(flat):
    return nested(flat | stamped)
  flat = {k: tuple(v) if isinstance(v, list) else v for k, v in flat.items()}
  upgraded = complete(flat, drop_unknown=True).to_dict()
  ones = dict.fromkeys(versions(flat_keys(upgraded)), 1)
  found = {group: stamped.get(f"version.{group}", one) for group, one in ones.items()}
  return upgraded | {"version": found}


def _from_first_form(flat: Mapping[str, Any]) -> dict[str, Any]:
  whole = _first_defaults() | dict(flat)
  trunk = whole.pop("network.trunk")
  name = whole["network.name"] + _ENDINGS.get(trunk, f"_{trunk}")
  if whole["network.context"]:
    name = "context_mlp"
  named = {_RENAMED.get(key, key): value for key, value in whole.items()}
  return named | {"network.name": name}


@functools.cache
def _first_defaults() -> dict[str, Any]:
  """Returns the defaults of that version, because an older run may lack some keys."""
  text = resources.files("ebmjax.config").joinpath("defaults_v1.json").read_text()
  return flat_keys(json.loads(text))
