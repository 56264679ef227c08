"""What of a configuration decides a run's result: equal runs have equal identities."""

import json
from collections.abc import Mapping
from typing import Any

from ml_collections import ConfigDict

from ebmjax import config as configuration
from ebmjax import effects

WEIGHTS = "FILE.npz"  # stands for the user's own file of pre-trained weights
# Keys that change neither the training nor what is scored at its end.
FREE = (
  *(key for key in configuration.PLACES if key != "network.pretrained"),
  *("seed", "seeds", "network.conv_form"),
)
_FREE_GROUPS = ("eval.", "checkpoint.", "runner.")


def recorded(config: Mapping[str, Any]) -> dict[str, Any]:
  """Returns a run's configuration by dotted key, less the keys that do not matter.

  Of the file of pre-trained weights only whether there is one is kept.
  """
  flat = configuration.flat_keys(ConfigDict(json.loads(json.dumps(config))))
  kept = {key: value for key, value in flat.items() if not _free(key)}
  if kept.get("network.pretrained"):
    kept["network.pretrained"] = WEIGHTS
  return kept


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the mapping of mappings that `recorded` took the dotted keys from."""
  tree: dict[str, Any] = {}
  for key, value in flat.items():
    *groups, name = key.split(".")
    branch = tree
    for group in groups:
      branch = branch.setdefault(group, {})
    branch[name] = value
  return tree


def identity(flat: Mapping[str, Any]) -> str:
  """Returns a text that is equal for runs of equal configuration.

  A key that `flat`, of an older run, does not have counts as having its default, and so
  does a key of another method: an older run could not know its value.
  """
  usual = recorded(configuration.default().to_dict())
  whole = usual | dict(flat)
  unread = effects.without_effect(ConfigDict(nested(whole)))
  of_others = [key for key in unread if key.startswith("method.") and key in usual]
  whole |= {key: usual[key] for key in of_others}
  return json.dumps({k: _number(v) for k, v in whole.items()}, sort_keys=True)


def _free(key: str) -> bool:
  return key in FREE or key.startswith(_FREE_GROUPS)


def _number(value: Any) -> Any:
  """Returns 1 as 1.0, so that equal numbers are equal texts."""
  whole = isinstance(value, int) and not isinstance(value, bool)
  return float(value) if whole else value
