"""Which runs are the same, and how two runs differ: asked here and nowhere else.

A run is identified by the keys that decide its result and by the result versions of its
components. Configurations that an earlier version wrote are upgraded first.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from ebmjax.config import flat_keys
from ebmjax.config.groups import PLACES, is_installed, keys_of
from ebmjax.config.upgrade import upgrade

WEIGHTS = "FILE.npz"  # stands for the user's own file of pre-trained weights
# Which devices there are changes no result, except for the rounding of sums where a
# batch is split, or seeds run side by side (vmap).
_DEVICES = ("runner.devices", "runner.batch_devices")


class Difference(NamedTuple):
  """A key with another value in one run than in another; None where one lacks it."""

  key: str
  first: Any
  second: Any


def decisive(config: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the keys of a run's configuration, of any age, that decide its result.

  Of the file of pre-trained weights only whether there is one is kept.
  """
  flat = _upgraded(config)
  keys = keys_of(flat if is_installed(flat) else {})
  kept = {k: v for k, v in flat.items() if k not in keys or not keys[k].free}
  if kept.get("network.pretrained"):
    kept["network.pretrained"] = WEIGHTS
  return kept


def identity(config: Mapping[str, Any]) -> str:
  """Returns a text that is equal for runs that differ in nothing but their seeds."""
  return json.dumps(decisive(config), sort_keys=True)


def differences(
  first: Mapping[str, Any], second: Mapping[str, Any]
) -> tuple[Difference, ...]:
  """Returns how two runs differ in what decides their results, sorted by key."""
  return _differences(decisive(first), decisive(second))


def departures(
  config: Mapping[str, Any], usual: Mapping[str, Any]
) -> tuple[Difference, ...]:
  """Returns what must be set in `usual` for it to be `config`, sorted by key.

  Keys that `config` lacks are left out: the choice that brings them is set itself.
  """
  found = differences(config, usual)
  return tuple(each for each in found if each.first is not None)


def obstacles(
  first: Mapping[str, Any], second: Mapping[str, Any]
) -> tuple[Difference, ...]:
  """Returns why one run cannot be continued as the other, sorted by key.

  Beside what decides a result, it must be evaluated and stored alike. Where the data
  and the weights lie does not matter: their digests are compared instead.
  """
  free = {*PLACES, *_DEVICES}
  both = [_upgraded(config) for config in (first, second)]
  return _differences(
    *({key: value for key, value in flat.items() if key not in free} for flat in both)
  )


def _upgraded(config: Mapping[str, Any]) -> dict[str, Any]:
  flat = flat_keys(upgrade(config))
  return {key: _plain(value) for key, value in flat.items()}


def _differences(
  first: Mapping[str, Any], second: Mapping[str, Any]
) -> tuple[Difference, ...]:
  return tuple(
    Difference(key, first.get(key), second.get(key))
    for key in sorted(first.keys() | second.keys())
    if first.get(key) != second.get(key)
  )


def _plain(value: Any) -> Any:
  """Returns a value as JSON has it: lists in place of tuples."""
  return [_plain(each) for each in value] if isinstance(value, tuple | list) else value
