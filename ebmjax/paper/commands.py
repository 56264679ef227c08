"""Commands and configurations: what FILE[:variants] runs, and a run's nearest cell."""

import functools
import hashlib
import json
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from ebmjax.config import loading
from ebmjax.config.groups import keys_of
from ebmjax.config.identity import (
  Difference,
  decisive,
  departures,
  differences,
  identity,
)
from ebmjax.config.validation import resolve
from ebmjax.errors import ConfigError
from ebmjax.paper.cells import CAPACITY, Cell, all_cells

UNKNOWN = "a configuration file of the user's own"
# The keys that two runs must share to be shown side by side.
PROBLEM = (
  *("data.name", "data.images", "data.memorise", "data.validation"),
  *("stream.name", "stream.tasks", "stream.setting", "stream.scenario"),
  *("method.name", "network.name"),
)


@functools.cache
def load(command: str) -> ConfigDict:
  """Returns the resolved configuration of FILE[:variants], a file of the repository."""
  config = loading.load(str(loading.root() / command))
  return resolve(config)


@functools.cache
def identity_of(command: str) -> str:
  return identity(load(command).to_dict())


def short_name(command: str) -> str:
  """Returns a folder name for FILE[:variants] that changes with its configuration.

  Keys at their default do not count, so a new key renames no folder.
  """
  own, usual = (json.loads(text) for text in (identity_of(command), identity({})))
  changes = {key: value for key, value in own.items() if value != usual.get(key)}
  text = json.dumps(changes, sort_keys=True)
  digest = hashlib.sha256(text.encode()).hexdigest()[:6]
  return f"{Path(loading.default_workdir(command)).name}-{digest}"


def command_line(command: str, seeds: int) -> str:
  """Returns the command that measures FILE[:variants] with this many seeds."""
  return (
    f"python -m ebmjax.main --config={command} --config.seeds={seeds}"
    " --config.data.require_full=True"
  )


def shortened(line: str | None) -> str:
  """Reduces a command line to FILE[:variants] and the flags that decide the result.

  Seeds, paths and the intervals of evaluations and checkpoints are dropped.
  """
  parts = shlex.split(line or "")
  flags = {}
  for place, part in enumerate(parts):
    name, equals, value = part.lstrip("-").partition("=")
    if part.startswith("-"):
      flags[name] = value if equals else "".join(parts[place + 1 : place + 2])
  path, _, variants = flags.pop("config", "").partition(":")
  file = Path("configs") / Path(path).name
  if not path or Path(path).parent.name != "configs":
    return UNKNOWN
  if not (loading.root() / file).is_file():
    return UNKNOWN
  kept = [
    f"--{name}={value}"
    for name, value in sorted(flags.items())
    if name.startswith("config.") and not _is_free(name.removeprefix("config."))
  ]
  return " ".join([f"{file}:{variants}" if variants else str(file), *kept])


def restated(command: str, config: Mapping[str, Any]) -> str:
  """Returns FILE[:variants] of a command with the flags by which a run differs."""
  chosen = command.split(" ", 1)[0]
  try:
    usual = load(chosen)
  except ConfigError:  # a file of an older version, or the user's own
    return UNKNOWN
  found = departures(config, usual.to_dict())
  flags = [
    f"--config.{key}={value}"
    for key, value, _ in found
    if not key.startswith("version.")  # no command makes an older version's result
  ]
  return " ".join([chosen, *flags])


def cell_for(config: Mapping[str, Any]) -> Cell | None:
  """Finds the cell with a run's problem, method and network whose command is nearest.

  Cells with the run's objective come first, then those that differ in the fewest keys.
  None if the paper has no such cell.
  """
  own = _problem(decisive(config))
  near = [
    (differences(config, load(cell.command).to_dict()), cell)
    for cell in all_cells()
    if cell.table != CAPACITY and problem_of(cell.command) == own
  ]
  if not near:
    return None
  return min(near, key=lambda pair: _distance(pair[0]))[1]


def _distance(found: Iterable[Difference]) -> tuple[bool, int]:
  keys = [difference.key for difference in found]
  return "objective" in keys, len(keys)


def figure_for(config: Mapping[str, Any]) -> dict[str, Any] | None:
  """Returns the published figure to store with a run's results, and how they differ.

  A report shows this mapping and knows nothing else about the paper.
  """
  cell = cell_for(config)
  if cell is None:
    return None
  return {
    "cell": cell.id,
    "accuracy": cell.accuracy,
    "sem": cell.sem,
    "origin": cell.origin,
    "command": cell.command,
    "command_line": command_line(cell.command, cell.seeds),
    "deviations": list(cell.deviations),
    "reason": cell.reason,
    "departures": departures(config, load(cell.command).to_dict()),
  }


def with_figure(results: Mapping[str, Any]) -> dict[str, Any]:
  """Returns stored results with the published figure that this version finds.

  The configuration decides which one it is; an older version may have been wrong.
  """
  return {**results, "paper": figure_for(results["config"])}


@functools.cache
def problem_of(command: str) -> tuple[Any, ...] | None:
  """Returns the values of `PROBLEM` in FILE[:variants]; None if it cannot be read.

  A run that ends while somebody edits the file must not be lost.
  """
  try:
    return _problem(decisive(load(command).to_dict()))
  except ConfigError:
    return None


def _problem(flat: Mapping[str, Any]) -> tuple[Any, ...]:
  return tuple(flat.get(key) for key in PROBLEM)


def _is_free(key: str) -> bool:
  known = keys_of({}).get(key)
  return key == "network.pretrained" or (known is not None and known.free)
