"""In what a run departs from the file that its role names, and how that is told."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ebmjax.config import default
from ebmjax.figures.spec import Role, Run
from ebmjax.identity import identity, recorded
from ebmjax.reproduce import commands

FEW = 4  # departures that a caption spells out; of more it tells the number


def departures(role: Role, value: Any, config: Mapping[str, Any]) -> tuple[str, ...]:
  """Returns ("stream.iterations=30", ...), sorted: where a run's `config` is not usual.

  Every key that decides a run's result counts, but for the role's key `apart`, of which
  the run has `value`.
  """
  flat = recorded(default().to_dict()) | recorded(config)
  # Texts are compared, not values: the ledger tells a cell's runs by them, too.
  found = json.loads(identity(flat))
  usual = json.loads(commands.identity_of(role.file(value)))
  changed = (key for key in sorted(found) if found[key] != usual.get(key))
  return tuple(
    f"{key}={flat[key] or repr(flat[key])}"  # '' would not be seen
    for key in changed
    if key != role.apart
  )


def departures_told(role: Role, runs: Sequence[Run]) -> list[str]:
  """Returns a sentence for the runs of a role that depart alike, none for others."""
  groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
  for run in runs:
    groups[run.departures].append(str(run.value))
  sentences = []
  for changed, values in groups.items():
    # Where the runs of a role differ, each is named by its value.
    whose = f" at {role.apart} {', '.join(values)}" if len(groups) > 1 else ""
    if changed:
      sentences.append(f"{role.name}{whose} with {_listed(changed)}.")
  return sentences


def _listed(changed: Sequence[str]) -> str:
  text, others = ", ".join(changed[:FEW]), len(changed) - FEW
  if others <= 0:
    return text
  return f"{text} and {others} other{'s' if others > 1 else ''}"
