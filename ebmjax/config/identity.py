"""Decides which runs are the same, and how two runs differ.

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
# The devices change no result, except for the rounding of sums if a batch is split or
# seeds run side by side (vmap).
_DEVICES = ("runner.devices", "runner.batch_devices")


class Difference(NamedTuple):
  """A key whose value differs between two runs; None if a run lacks it."""

  key: str
  first: Any
  second: Any


def decisive(config: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the keys of a run's configuration, of any version, that decide its result.

  The path of pre-trained weights is replaced by a constant: it may differ.
  """
  flat = _upgraded(config)
  keys = keys_of(flat if is_installed(flat) else {})
  kept = {k: v for k, v in flat.items() if k not in keys or not keys[k].free}
  if kept.get("network.pretrained"):
    kept["network.pretrained"] = WEIGHTS
  return kept


def identity(config: Mapping[str, Any]) -> str:
  """Returns a text that is equal for runs that differ only in their seeds."""
  return json.dumps(decisive(config), sort_keys=True)


def differences(
  first: Mapping[str, Any], second: Mapping[str, Any]
) -> tuple[Difference, ...]:
  """Returns the decisive keys in which two runs differ, sorted."""
  return _differences(decisive(first), decisive(second))


def departures(
  config: Mapping[str, Any], usual: Mapping[str, Any]
) -> tuple[Difference, ...]:
  """Returns the changes that turn `usual` into `config`, sorted by key.

  Keys that `config` lacks are left out: they follow from another choice.
  """
  found = differences(config, usual)
  return tuple(each for each in found if each.first is not None)


def obstacles(
  first: Mapping[str, Any], second: Mapping[str, Any]
) -> tuple[Difference, ...]:
  """Returns why one run cannot be continued as the other, sorted by key.

  All keys must agree, also those of evaluation and storage, except for devices and for
  the places of data and weights, whose digests are compared instead.
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
  """Returns a value as JSON stores it, with lists instead of tuples."""
  return [_plain(each) for each in value] if isinstance(value, tuple | list) else value
