"""The configuration keys in which several runs differ."""

from collections.abc import Mapping, Sequence
from typing import Any

from ebmjax.config.identity import differences


def differing_keys(configs: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
  """Returns {key: its value in each run} of the keys in which any differs.

  Keys that every run has come first; a run without a key has None.
  """
  found = [{d.key: d for d in differences(configs[0], other)} for other in configs]
  keys = sorted({key for run in found for key in run})
  usual = {key: run[key].first for run in found for key in run}
  values = {
    key: [run[key].second if key in run else usual[key] for run in found]
    for key in keys
  }
  return dict(sorted(values.items(), key=lambda item: None in item[1]))
