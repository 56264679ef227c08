"""Reads the command line; whatever is wrong with it ends in one sentence."""

import importlib.util
import logging
import os
import re
import shlex
import textwrap
from pathlib import Path
from typing import Any

from absl import flags
from ml_collections import ConfigDict, config_flags

from ebmjax import config as configuration
from ebmjax.config.variants import VARIANTS, UnknownVariantError
from ebmjax.effects import without_effect
from ebmjax.errors import ConfigError

_log = logging.getLogger(__name__)
_KINDS = {bool: "True or False", int: "a whole number", float: "a number"}
_OVERRIDE = re.compile(r"--?config\.([\w.\[\]]+)(?:=|$)")


def root() -> Path:
  """Returns the folder of configs/: the repository, or the package as installed."""
  package = Path(__file__).resolve().parents[1]
  return package if (package / "configs").is_dir() else package.parent


def python_path() -> str:
  """Returns the PYTHONPATH with which a child process has this very package, too."""
  here = str(Path(__file__).resolve().parents[2])
  return os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))


def parse(argv: list[str]) -> tuple[ConfigDict, Path]:
  """Returns the configuration and the workdir of `argv`, program name included."""
  chosen = _value_of("config", argv)
  if not chosen:
    raise ConfigError(
      "no experiment is named; give one such as --config=configs/permmnist.py."
    )
  config = load(chosen)
  known = configuration.flat_keys(config)
  overrides = _overrides(argv)
  for key in overrides:
    if key not in known:
      raise ConfigError(f"config.{key} {_no_key(key, known)}")
  values = _read_flags(_without("config", argv), config)
  _tell_unread(values.config, {key: known[key] for key in overrides})
  return values.config, _workdir(values.workdir or default_workdir(chosen))


def distributed(argv: list[str]) -> str:
  """Returns the value of --distributed, which counts before anything else is read."""
  return _value_of("distributed", argv) or "auto"


def load(chosen: str) -> ConfigDict:
  """Returns the configuration of FILE[:variants], as the file has it."""
  path, _, variants = chosen.partition(":")
  module = _import(Path(path))
  try:
    config = module.get_config(variants) if variants else module.get_config()
  except ConfigError:
    raise
  except Exception as error:  # the file is a user's own program
    raise ConfigError(f"get_config of {path} fails: {_told(error)}.") from error
  if not isinstance(config, ConfigDict):
    raise ConfigError(
      f"get_config of {path} returns {type(config).__name__}, not a ConfigDict; return "
      "what ebmjax.config.default() gives, with its changes."
    )
  known, given = map(configuration.flat_keys, (configuration.default(), config))
  for key in given:
    if key not in known:
      raise ConfigError(f"config.{key} of {path} {_no_key(key, known)}")
  for key in known:
    if key not in given:
      raise ConfigError(
        f"config.{key} is missing in {path}; start from ebmjax.config.default(), which "
        "has every key."
      )
  return config


def command(argv: list[str]) -> str:
  """Returns the command line of `argv` less its workdir, to run the same again."""
  return shlex.join(["python", "-m", "ebmjax.main", *_without("workdir", argv[1:])])


def description(chosen: str) -> str:
  """Returns what FILE[:variants] says of itself."""
  return _import(Path(chosen.partition(":")[0])).__doc__ or ""


def help_text(usage: str, argv: list[str]) -> str:
  """Returns the usage, the chosen experiment's description, and every key."""
  chosen = _value_of("config", argv)
  config = load(chosen) if chosen else configuration.default()
  parts = [usage.strip(), description(chosen).strip() if chosen else ""]
  unread = without_effect(config) if chosen else {}
  keys = [
    _key_told(key, value)
    for key, value in configuration.flat_keys(config).items()
    if key not in unread
  ]
  title = f"Keys of {chosen}:" if chosen else "Keys and their defaults:"
  parts.append("\n".join([title, *keys]))
  if unread:
    told = f"Keys without effect there: {', '.join(sorted(unread))}."
    parts.append(textwrap.fill(told, 88))
  variants = variants_of(chosen) if chosen else tuple(VARIANTS)
  parts.append(_variants_told(variants))
  return "\n\n".join(part for part in parts if part)


def _key_told(key: str, value: Any) -> str:
  from ebmjax.config.validation import (
    CHOICES,  # which imports JAX: a second, for help alone
  )

  told = f"  --config.{key}={value!r}"
  if key not in CHOICES:
    return told
  margin = " " * 6
  choices = textwrap.fill(
    ", ".join(CHOICES[key]), 88, initial_indent=margin, subsequent_indent=margin
  )
  return f"{told}\n{choices}"


def variants_of(chosen: str) -> tuple[str, ...]:
  """Returns the variants of FILE[:variants], none where the file knows none."""
  try:
    load(f"{chosen.partition(':')[0]}:?")  # which no experiment has
  except UnknownVariantError as error:
    return error.variants
  except ConfigError:
    pass  # a file of the user's own, with other ways
  return ()


def _variants_told(variants: tuple[str, ...]) -> str:
  if not variants:
    return ""
  several = f" Several: FILE:{','.join(variants[:2])}" if len(variants) > 1 else ""
  return f"Variants: {', '.join(variants)}.{several}"


def default_workdir(chosen: str) -> str:
  """Returns runs/NAME-VARIANTS for FILE[:variants]."""
  path, _, variants = chosen.partition(":")
  return str(
    Path("runs") / "-".join([Path(path).stem, *variants.split(",")]).strip("-")
  )


def _read_flags(argv: list[str], config: ConfigDict) -> Any:
  """Returns the flags' values; other faults are told in the flag library's words."""
  values = flags.FlagValues()
  flags.DEFINE_string("workdir", None, "The run's folder.", flag_values=values)
  flags.DEFINE_string("distributed", "auto", "See main.", flag_values=values)
  try:
    config_flags.DEFINE_config_dict(
      "config", config, flag_values=values, lock_config=True, sys_argv=argv
    )
    rest = values(argv)
  except (flags.Error, TypeError, ValueError) as error:
    said = " ".join(str(error).split()).rstrip(".")
    raise ConfigError(f"{_wrong_value(said, config) or said}; see --help.") from error
  if rest[1:]:
    raise ConfigError(f"the argument {rest[1]!r} is not a flag; see --help.")
  return values


def _tell_unread(config: ConfigDict, before: dict[str, Any]) -> None:
  """Warns of keys that were changed and that the run does not read."""
  unread = without_effect(config)
  for key in before:
    value = configuration.lookup(config, key)
    if key in unread and value != before[key]:
      _log.warning("config.%s=%r has no effect with %s.", key, value, unread[key])


def _import(path: Path) -> Any:
  if not path.exists() and not path.is_absolute() and (root() / path).is_file():
    path = root() / path
  if not path.is_file():
    near = sorted(str(other) for other in path.parent.glob("*.py"))
    place = "This folder" if path.parent == Path() else path.parent
    ask = f" {place} has {', '.join(near)}." if near else ""
    raise ConfigError(f"there is no configuration file {path}.{ask}")
  spec = importlib.util.spec_from_file_location(f"ebmjax_config_{path.stem}", path)
  if spec is None or spec.loader is None:
    raise ConfigError(f"{path} is not a Python file (.py); see configs/.")
  module = importlib.util.module_from_spec(spec)
  try:
    spec.loader.exec_module(module)
  except SyntaxError as error:
    raise ConfigError(f"{path} is not valid Python: {error}.") from error
  except Exception as error:  # the file is a user's own program
    raise ConfigError(f"{path} fails when imported: {_told(error)}.") from error
  if not hasattr(module, "get_config"):
    raise ConfigError(f"{path} has no function get_config(variants); see configs/.")
  return module


def _told(error: Exception) -> str:
  return f"{type(error).__name__}: {' '.join(str(error).split()).rstrip('.')}"


def _value_of(name: str, argv: list[str]) -> str:
  """Returns the value of --name=VALUE or --name VALUE, or the empty string."""
  found = []
  for i, argument in enumerate(argv):
    flag, equals, value = argument.partition("=")
    if flag in (f"--{name}", f"-{name}"):
      found.append(value if equals else "".join(argv[i + 1 : i + 2]))
  if len(found) > 1:
    raise ConfigError(f"--{name} is given {len(found)} times; give it once.")
  return "".join(found)


def _without(name: str, argv: list[str]) -> list[str]:
  """Returns argv less --name=VALUE or --name VALUE."""
  kept, skip = [], False
  for argument in argv:
    flag, equals, _ = argument.partition("=")
    if skip or flag in (f"--{name}", f"-{name}"):
      skip = not skip and not equals
    else:
      kept.append(argument)
  return kept


def _overrides(argv: list[str]) -> list[str]:
  return [match[1] for match in map(_OVERRIDE.match, argv) if match]


def _no_key(key: str, known: dict[str, Any]) -> str:
  """Returns what is said of a name that is no key."""
  below = [name for name in known if name.startswith(f"{key}.")]
  if below:
    return f"is a group of keys, such as config.{below[0]}; see --help for all keys."
  hint = configuration.nearest(key, known)
  if hint:
    return f"is unknown; did you mean config.{hint}? See --help for all keys."
  return "is unknown; see --help for all keys."


def _wrong_value(said: str, config: ConfigDict) -> str:
  """Returns what a value should have been, of a complaint about a key's type."""
  found = re.match(r"flag --config\.([\w.]+)=(.*?): ", said)
  if found is None or found[1] not in (known := configuration.flat_keys(config)):
    return ""
  kind = _KINDS.get(type(known[found[1]]), f"like {known[found[1]]!r}")
  return f"config.{found[1]}={found[2]} is not {kind}"


def _workdir(path: str) -> Path:
  try:
    return Path(path).expanduser()
  except RuntimeError as error:  # the home of a user that there is not
    raise ConfigError(f"--workdir={path} is no place here; give another.") from error
