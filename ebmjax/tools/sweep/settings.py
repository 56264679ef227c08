"""The settings of a sweep: the keys that differ, and a configuration for each."""

import hashlib
import itertools
import json
import os
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from ml_collections import ConfigDict

from ebmjax.config import flat_keys, loading, with_settings
from ebmjax.config.validation import resolve
from ebmjax.errors import ConfigError
from ebmjax.paths import expand

Assignments = dict[str, str]  # "method.strength" -> "10", as it was written

# Keys that cannot be swept, and the flag to set each of them.
RESERVED = {"seed": "--seeds", "seeds": "--seeds", "data.validation": "--validation"}
LONGEST = 100  # characters of a folder's name


class Setting(NamedTuple):
  """One point of a sweep that is yet to be run."""

  name: str  # of its folder
  flags: tuple[str, ...]  # changes on a command line: "--config.method.strength=10"
  values: dict[str, Any]  # of every swept key; None if this configuration lacks it
  config: ConfigDict


def make(
  chosen: str,
  grids: Sequence[str],
  lists: Sequence[str],
  rest: Sequence[str],
  drawn: Sequence[Assignments] = (),
) -> list[Setting]:
  """Makes the settings, each with a valid configuration.

  Grids ("config.a=1,2") are combined with each other, with the `lists` and with the
  `drawn` points. A list has joint assignments ("config.a=1 config.b=2") or is a file
  with one in each line. `rest` are changes of keys for all settings.
  """
  axes = [[point for text in lists for point in _listed(text)]] if lists else []
  axes += [list(drawn)] if drawn else []
  axes += [_grid(text) for text in grids]
  if not axes:
    raise ConfigError(
      "there is nothing to sweep; give --grid config.KEY=VALUE,VALUE, --list "
      '"config.KEY=VALUE config.KEY=VALUE", or --random=N and --range '
      "config.KEY=LOW:HIGH."
    )
  keys = _distinct_keys(axes)
  common = ["sweep", f"--config={chosen}", *rest]
  settings = []
  for points in itertools.product(*axes):
    changes = {key: value for point in points for key, value in point.items()}
    flags = tuple(f"--config.{key}={value}" for key, value in changes.items())
    config, _ = loading.parse([*common, *flags])
    known = flat_keys(config)  # a method may lack a key that another is swept over
    values = {key: known.get(key) for key in keys}
    settings.append(Setting(_folder_name(values), flags, values, config))
  _check(settings)
  return settings


def draw(ranges: Sequence[str], number: int) -> list[Assignments]:
  """Draws random joint assignments from the ranges "config.a=LOW:HIGH".

  Values are uniform, or log-uniform if LOW is above 0, and have three digits. A larger
  `number` begins with the same points.
  """
  bounds = dict(_bounds(text) for text in ranges)
  if number < 1 or not bounds or len(bounds) < len(ranges):
    raise ConfigError(
      f"--random={number} draws from each --range once; give 1 or more, and a range "
      "for every key, such as --range config.method.strength=1:1e6."
    )
  shares = np.random.default_rng(0).random((number, len(bounds)))
  return [
    {
      key: f"{_between(low, high, at):.3g}"
      for (key, (low, high)), at in zip(bounds.items(), share, strict=True)
    }
    for share in shares
  ]


def _between(low: float, high: float, share: float) -> float:
  if low > 0:
    return float(low * (high / low) ** share)
  return float(low + (high - low) * share)


def _bounds(text: str) -> tuple[str, tuple[float, float]]:
  """Parses "config.a=LOW:HIGH" to the key and its ends."""
  key, ends = _assignment(text, "--range")
  try:
    low, high = map(float, ends.split(":"))
    if not 0 <= low < high < float("inf"):
      raise ValueError
  except ValueError:
    raise ConfigError(
      f"--range {text} is not of the form config.KEY=LOW:HIGH; give two numbers, such "
      "as config.method.strength=1:1e6."
    ) from None
  return key, (low, high)


def with_key(settings: Sequence[Setting], key: str, value: Any) -> list[Setting]:
  """Sets config.key=value in all settings, and validates them again."""
  configs = [with_settings(setting.config, {key: value}) for setting in settings]
  for config in configs:
    resolve(config)
  pairs = zip(settings, configs, strict=True)
  return [setting._replace(config=config) for setting, config in pairs]


def describe(values: dict[str, Any]) -> str:
  """Returns "strength=10, learning_rate=0.001"."""
  return ", ".join(
    f"{name}={written(value)}"
    for name, value in zip(short_names(values), values.values(), strict=True)
    if value is not None
  )


def written(value: Any) -> str:
  """Returns a value as people write it: 1e-05, 100, sbc; a dash for None."""
  if value is None:
    return "-"
  if isinstance(value, float) and float(f"{value:g}") == value:
    return f"{value:g}"
  return str(value)


def short_names(keys: Iterable[str]) -> list[str]:
  """Returns the last part of each key, or the whole key if two share that part."""
  keys = list(keys)
  tails = [key.rsplit(".", 1)[-1] for key in keys]
  return [
    tail if tails.count(tail) == 1 else key
    for key, tail in zip(keys, tails, strict=True)
  ]


def _grid(text: str) -> list[Assignments]:
  """Parses "config.a=1,2" to points; commas in brackets do not separate values."""
  key, values = _assignment(text, "--grid")
  points = re.split(r",(?![^(\[]*[)\]])", values)
  if not all(point.strip() for point in points):
    raise ConfigError(
      f"--grid {text} has an empty value; give one or more, separated by commas."
    )
  return [{key: point.strip()} for point in points]


def _listed(text: str) -> list[Assignments]:
  """Parses the point that `text` states, or those of the file that it names."""
  lines = [text]
  if "=" not in text or os.path.isfile(text):
    try:
      lines = expand(text).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
      raise ConfigError(
        f"--list {text} is neither a file that can be read nor a setting such as "
        '"config.KEY=VALUE config.KEY=VALUE".'
      ) from error
  points = [_joint(line) for line in lines if line.split("#")[0].strip()]
  if not points:
    raise ConfigError(f"--list {text} has no settings; write one in each line.")
  return points


def _joint(line: str) -> Assignments:
  try:
    parts = shlex.split(line, comments=True)
  except ValueError as error:
    raise ConfigError(f"--list {line} cannot be read: {error}.") from error
  pairs = [_assignment(part, "--list") for part in parts]
  if len(dict(pairs)) < len(pairs):
    raise ConfigError(f"--list {line} sets a key twice; set it once.")
  return dict(pairs)


def _assignment(text: str, flag: str) -> tuple[str, str]:
  """Splits "config.a=1" into the key, without "config.", and the text of its value."""
  key, equals, value = text.partition("=")
  key = key.strip().lstrip("-").removeprefix("config.")
  if not equals or not key:
    raise ConfigError(f"{flag} {text} is not of the form config.KEY=VALUE.")
  if key in RESERVED:
    raise ConfigError(
      f"{flag} {text}: config.{key} cannot be swept; use {RESERVED[key]}."
    )
  return key, value


def _distinct_keys(axes: list[list[Assignments]]) -> list[str]:
  """Lists the keys of all axes, in order; refuses a key of two axes."""
  keys = [key for axis in axes for key in dict.fromkeys(itertools.chain(*axis))]
  for key, times in Counter(keys).items():
    if times > 1:
      raise ConfigError(
        f"config.{key} is swept twice; put its values into one --grid or --list."
      )
  return keys


def _check(settings: list[Setting]) -> None:
  """Raises if a setting is not valid, or is the same run as another."""
  first: dict[str, Setting] = {}
  for setting in settings:
    keys = flat_keys(resolve(setting.config))
    run = json.dumps(keys, sort_keys=True, default=str)
    if run in first:
      raise ConfigError(
        f"two settings are the same run, {describe(first[run].values)} and "
        f"{describe(setting.values)}; give it once."
      )
    first[run] = setting


def _folder_name(values: dict[str, Any]) -> str:
  """Returns "learning_rate=0.001,strength=10", with the keys in sorted order."""
  full = describe(dict(sorted(values.items()))).replace(", ", ",")
  name = re.sub(r"[^\w.+=,-]", "_", full)
  if name == full and len(name) <= LONGEST:
    return name
  return f"{name[:LONGEST]}-{hashlib.sha256(full.encode()).hexdigest()[:8]}"
