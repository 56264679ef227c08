"""In what a run's configuration departs from that of a file of ours."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from ebmjax.config import default
from ebmjax.config.identity import nested, recorded
from ebmjax.effects import without_effect
from ebmjax.paper import commands

FEW = 4  # departures that a sentence spells out; of more it tells the number


class Departure(NamedTuple):
  """A key with another value than a file of ours has."""

  key: str
  value: Any  # the run's
  usual: Any  # the file's; None where it has no such key


def departures(chosen: str, config: Mapping[str, Any]) -> tuple[Departure, ...]:
  """Returns where a run's `config` is not that of FILE[:variants], sorted by key.

  Every key that decides a run's result counts, and no other: none that neither of the
  two reads.
  """
  run, file = _whole(config), _whole(commands.load(chosen).to_dict())
  unread = _unread(run) & _unread(file)
  return tuple(
    Departure(key, run[key], file.get(key))
    for key in sorted(run.keys() - unread)
    if run[key] != file.get(key)
  )


def listed(texts: Iterable[str]) -> str:
  """Returns the first `FEW` texts, and how many more there are."""
  every: Sequence[str] = tuple(texts)
  text, others = ", ".join(every[:FEW]), len(every) - FEW
  if others <= 0:
    return text
  return f"{text} and {others} other{'s' if others > 1 else ''}"


def shown(value: Any) -> str:
  """Returns a value as text; '' would not be seen."""
  return str(value or repr(value))


def _whole(config: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the configuration by dotted key, of an older run with today's defaults."""
  return recorded(default().to_dict()) | recorded(config)


def _unread(flat: Mapping[str, Any]) -> set[str]:
  return set(without_effect(ConfigDict(nested(flat))))
