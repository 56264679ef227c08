"""The parts of a page about how a run was made: configuration, versions, times."""

from collections.abc import Callable, Mapping
from typing import Any

from ebmjax import config as configuration
from ebmjax.config import flat_keys
from ebmjax.config.groups import CHOICES, is_installed, keys_of, versions
from ebmjax.report import labels
from ebmjax.report.labels import DASH
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
  """Returns the sections on the command, the configuration and the machine."""
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
  """Shows the keys that identify the run and the changed ones; folds the others."""
  given, usual = (
    {key: labels.shown(value) for key, value in values.items()}
    for values in (flat_keys(config), _defaults(flat_keys(config)))
  )
  changed = [key for key in given if usual.get(key) != given[key]]
  first = [key for key in FIRST if key in given]
  first += sorted(key for key in changed if key not in first)
  rest = sorted(key for key in given if key not in first)
  default = {k: usual.get(k, DASH) if k in changed else "the same" for k in given}

  def listing(caption: str, keys: list[str]) -> Markup:
    rows = [(key, given[key], default[key]) for key in keys]
    return table(caption, ("key", "value", "default"), rows, "keys")

  content = [listing("The keys that identify this run, and those changed", first)]
  if rest:
    others = listing("Keys left at their default", rest)
    content.append(folded(f"The other {len(rest)} keys", others))
  return content


def _defaults(config: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the defaults of the components that flat `config` chooses.

  A choice has its usual default, and a result version that of today.
  """
  usual = flat_keys(configuration.default())
  if not is_installed(config):
    return usual
  own = {name: key.default for name, key in keys_of(config).items()}
  today = {f"version.{group}": now for group, now in versions(own).items()}
  return own | today | {name: usual[name] for name in CHOICES}


def _machine(facts: Mapping[str, Any]) -> list[Markup]:
  environment = _mapping(facts.get("environment"))
  devices = environment.get("device"), environment.get("backend")
  known = {
    "device": ", ".join(dict.fromkeys(map(str, filter(None, devices)))) or None,
    "devices": environment.get("devices"),
    "commit": facts.get("commits") or environment.get("commit"),
    "Python": environment.get("python"),
    **_mapping(environment.get("packages")),
  }
  others = {key: value for key, value in facts.items() if key not in SHOWN}
  parts = {"What it ran on": known, "Size and time": flat_keys(others)}
  made = [
    table(caption, ("", ""), rows, "facts")
    for caption, values in parts.items()
    if (rows := [_fact(*fact) for fact in values.items() if fact[1] is not None])
  ]
  if not made:
    return [element("p", "Nothing was recorded.")]
  return [element("div", *made, class_="pair")]


def _mapping(value: Any) -> Mapping[str, Any]:
  return value if isinstance(value, Mapping) else {}


def _fact(key: str, value: Any) -> tuple[str, str]:
  """Returns the label of a fact, and its value as text."""
  first, *rest = key.split(".")
  name, written = _FACTS.get(first, (first, None))
  if written is None or not isinstance(value, int | float):
    written = "{:,}".format if type(value) is int else labels.shown
  return ", ".join([name, *rest]).replace("_", " "), written(value)


# The label of each fact, and the format of its number.
_FACTS: dict[str, tuple[str, Callable[[Any], str] | None]] = {
  "steps_per_second": ("steps per second, all seeds", "{:,.1f}".format),
  "seconds_to_first_chunk": ("time to the first steps", labels.duration),
  "wall_time": ("time of all starts", labels.duration),
  "seconds": ("time", labels.duration),
  "memory_bytes": ("memory", memory.in_words),
  "steps": ("training steps of a seed", None),
  "driver": ("how seeds are run", None),
  "data_digest": ("digest of the data", None),
}
