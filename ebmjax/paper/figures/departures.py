"""In what a run departs from the file that its role names, and how that is told."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ebmjax.paper import departures as paper
from ebmjax.paper.departures import listed, shown
from ebmjax.paper.figures.spec import Role, Run


def departures(role: Role, value: Any, config: Mapping[str, Any]) -> tuple[str, ...]:
  """Returns ("stream.iterations=30", ...), sorted: where a run's `config` is not usual.

  Every key that decides a run's result counts, but for the role's key `apart`, of which
  the run has `value`.
  """
  return tuple(
    f"{found.key}={shown(found.value)}"
    for found in paper.departures(role.file(value), config)
    if found.key != role.apart
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
      sentences.append(f"{role.name}{whose} with {listed(changed)}.")
  return sentences
