"""The parts of a page on how a run was made: configuration, versions, times."""

from collections.abc import Callable, Mapping
from typing import Any

from ml_collections import ConfigDict

from ebmjax import config as configuration
from ebmjax.report import labels
from ebmjax.report.markup import Markup, element, folded, section, table
from ebmjax.runtime import memory

# The keys that identify a run at a glance, in this order, changed or not.
FIRST = (
  "data.name",
  "stream.name",
  "stream.tasks",
  "stream.setting",
  "stream.scenario",
  "network.name",
  "objective",
  "negatives",
  "method.name",
  "optimiser.learning_rate",
  "seed",
  "seeds",
)
# Shown elsewhere on the page.
SHOWN = ("data_source", "data_full", "command", "environment", "commits")


def sections(results: Mapping[str, Any]) -> list[Markup]:
  """Returns how to run it again, the configuration, and what it ran on."""
  facts = results["facts"]
  return [
    section("Run it again", *_command(facts.get("command"))),
    section("Configuration", *_config(results["config"])),
    section("Machine and time", *_machine(facts)),
  ]


def _command(command: str | None) -> list[Markup]:
  if not command:
    text = "The command was not recorded. All its keys are below and in config.json."
    return [element("p", text)]
  code = element("pre", element("code", command), tabindex=0)
  return [code, element("p", "To keep this run, pass another folder with --workdir.")]


def _config(config: Mapping[str, Any]) -> list[Markup]:
  """Returns the keys that identify the run and the changed ones; folds the others."""
  given = _flat(config)
  usual = _flat(configuration.default().to_dict())
  changed = [k for k in given if k not in usual or given[k] != usual[k]]
  first = [k for k in FIRST if k in given]
  first += sorted(key for key in changed if key not in first)
  rest = sorted(key for key in given if key not in first)

  def rows(keys: list[str]) -> list[tuple[str, str, str]]:
    return [(k, _value(given[k]), _usual(given, usual, k)) for k in keys]

  header = ("key", "value", "default")
  caption = "The keys that identify this run, and those changed"
  content = [table(caption, header, rows(first), "keys")]
  if rest:
    others = table("Keys left at their default", header, rows(rest), "keys")
    content.append(folded(f"The other {len(rest)} keys", others))
  return content


def _usual(given: Mapping[str, Any], usual: Mapping[str, Any], key: str) -> str:
  if key not in usual:
    return labels.DASH
  return "the same" if given[key] == usual[key] else _value(usual[key])


def _machine(facts: Mapping[str, Any]) -> list[Markup]:
  environment = _mapping(facts.get("environment"))
  packages = _mapping(environment.get("packages"))
  known = {
    "device": _joined(environment.get("device"), environment.get("backend")),
    "devices": environment.get("devices"),
    "commit": facts.get("commits") or environment.get("commit"),
    "Python": environment.get("python"),
    **{name: version for name, version in packages.items() if version},
  }
  ran = [(key, _fact(value)) for key, value in known.items() if value is not None]
  numbers = [
    row
    for key, value in facts.items()
    if key not in SHOWN
    for row in _rows(_NAMES.get(key, _plain(key)), value, _UNITS.get(key, _fact))
  ]
  made = [
    table(caption, ("", ""), rows, "facts")
    for caption, rows in (("What it ran on", ran), ("Size and time", numbers))
    if rows
  ]
  if not made:
    return [element("p", "Nothing was recorded.")]
  return [element("div", *made, class_="pair")]


def _mapping(value: Any) -> Mapping[str, Any]:
  return value if isinstance(value, Mapping) else {}


def _rows(
  name: str, value: Any, written: Callable[[Any], str]
) -> list[tuple[str, str]]:
  """Returns a row for each value that is known, at any depth."""
  if isinstance(value, Mapping):
    parts = ((f"{name}, {_plain(part)}", inner) for part, inner in value.items())
    return [row for part, inner in parts for row in _rows(part, inner, written)]
  if value is None:
    return []
  number = isinstance(value, int | float)
  return [(name, written(value) if number else _fact(value))]


_NAMES = {
  "steps_per_second": "steps per second, all seeds",
  "seconds_to_first_chunk": "time to the first steps",
  "wall_time": "time of all starts",
  "seconds": "time",
  "memory_bytes": "memory",
  "steps": "training steps of a seed",
  "driver": "how seeds are run",
  "data_digest": "digest of the data",
}
_UNITS = {
  "steps_per_second": lambda value: f"{value:,.1f}",
  "seconds_to_first_chunk": labels.duration,
  "wall_time": labels.duration,
  "seconds": labels.duration,
  "memory_bytes": memory.in_words,
}


def _joined(device: str | None, backend: str | None) -> str | None:
  if device is None or backend is None or device == backend:
    return device or backend
  return f"{device} ({backend})"


def _fact(value: Any) -> str:
  return f"{value:,}" if type(value) is int else _value(value)


def _plain(key: str) -> str:
  return str(key).replace("_", " ")


def _value(value: Any) -> str:
  if value == "":
    return "(empty)"
  return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _flat(config: Mapping[str, Any]) -> dict[str, Any]:
  """Returns every leaf under its dotted name; tuples as lists, as JSON has them."""
  leaves = configuration.flat_keys(ConfigDict(dict(config)))
  return {k: list(v) if isinstance(v, tuple) else v for k, v in leaves.items()}
