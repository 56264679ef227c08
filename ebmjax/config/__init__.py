"""Configurations: keys of the chosen components, experiment files, identity of runs.

`schema` and `components` do not import the components; the other modules do.
"""

from collections.abc import Mapping
from typing import Any

from ml_collections import ConfigDict


def default() -> ConfigDict:
  """Returns the configuration of the default choices; `with_settings` changes them."""
  from ebmjax.config.groups import complete  # imports the components, and so JAX

  return complete({})


def with_settings(config: ConfigDict, settings: Mapping[str, Any]) -> ConfigDict:
  """Returns a copy of `config` with dotted keys such as "network.name" set.

  If a choice changes, its group gets the keys of the new component. Keys that both
  components have keep their values; a method's keys start from its defaults.
  """
  from ebmjax.config.groups import complete

  merged = flat_keys(config)
  if settings.get("method.name", merged["method.name"]) != merged["method.name"]:
    merged = {k: v for k, v in merged.items() if not k.startswith("method.")}
  return complete(merged | dict(settings))


def lookup(config: ConfigDict, dotted: str) -> Any:
  """Looks up a key such as "stream.tasks"."""
  for part in dotted.split("."):
    config = config[part]
  return config


def flat_keys(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
  """Flattens a tree to {"stream.tasks": 5, ...}, its leaves by dotted name."""
  out: dict[str, Any] = {}
  for key, value in config.items():
    if isinstance(value, Mapping | ConfigDict):
      out |= flat_keys(value, f"{prefix}{key}.")
    else:
      out[prefix + key] = value
  return out


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
  """Rebuilds the tree of dotted keys: the inverse of `flat_keys`."""
  tree: dict[str, Any] = {}
  for key, value in flat.items():
    *groups, name = key.split(".")
    branch = tree
    for group in groups:
      branch = branch.setdefault(group, {})
    branch[name] = value
  return tree
