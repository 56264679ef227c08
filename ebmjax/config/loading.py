"""Reads the command line; every mistake in it ends in one sentence."""

import importlib.util
import os
import re
import shlex
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from absl import flags
from ml_collections import ConfigDict, config_flags

from ebmjax.config import default, flat_keys, with_settings
from ebmjax.config.experiments import Experiment
from ebmjax.config.groups import CHOICES, explain_unknown, keys_of, require_keys
from ebmjax.config.schema import Key
from ebmjax.errors import ConfigError, UsageError
from ebmjax.paths import expand

_KINDS = {bool: "True or False", int: "a whole number", float: "a number"}
_OVERRIDE = re.compile(r"--?config\.([\w.\[\]]+)(?:=|$)")


def root() -> Path:
  """Returns the folder that holds configs/: the repository or the installed package."""
  package = Path(__file__).resolve().parents[1]
  return package if (package / "configs").is_dir() else package.parent


def python_path() -> str:
  """Returns a PYTHONPATH with which child processes import this copy of the package."""
  here = str(Path(__file__).resolve().parents[2])
  return os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))


def parse(argv: list[str]) -> tuple[ConfigDict, Path]:
  """Parses `argv`, as in sys.argv, to a configuration and a workdir."""
  chosen = _value_of("config", argv)
  if not chosen:
    raise ConfigError(
      "no experiment is named; give one such as --config=configs/permmnist.py."
    )
  config = _load_for(chosen, argv)
  known = flat_keys(config)
  for key in _overrides(argv):
    if key not in known:
      raise ConfigError(f"config.{key} {explain_unknown(key, known)}")
  values = _read_flags(_without("config", argv), config)
  return values.config, expand(values.workdir or default_workdir(chosen))


def distributed(argv: list[str]) -> str:
  """Returns the value of --distributed, which is needed before all other flags."""
  return _value_of("distributed", argv) or "auto"


def load(chosen: str, choices: Mapping[str, Any] | None = None) -> ConfigDict:
  """Loads the configuration of FILE[:variants]; `choices` replace those of the file.

  A choice is a key such as "method.name", which decides what other keys there are.
  """
  path, _, variants = chosen.partition(":")
  module = _module(chosen)
  experiment = getattr(module, "EXPERIMENT", None)
  if isinstance(experiment, Experiment):
    return experiment.config(variants, choices)
  try:
    config = module.get_config(variants) if variants else module.get_config()
  except Exception as error:  # the file is a user's own program
    raise ConfigError(f"get_config of {path} fails: {_describe(error)}.") from error
  if not isinstance(config, ConfigDict):
    raise ConfigError(
      f"get_config of {path} returns {type(config).__name__}, not a ConfigDict; return "
      "what ebmjax.config.default() gives, with its changes."
    )
  require_keys(config, path)
  return with_settings(config, choices) if choices else config


def _load_for(chosen: str, argv: list[str]) -> ConfigDict:
  """Loads the configuration with the choices that flags of `argv` make."""
  names = [key for key in _overrides(argv) if key in CHOICES]
  return load(chosen, {key: _value_of(f"config.{key}", argv) for key in names})


def command(argv: list[str]) -> str:
  """Returns the command of `argv` without its workdir, to repeat the run."""
  return shlex.join(["python", "-m", "ebmjax.main", *_without("workdir", argv[1:])])


def help_text(usage: str, argv: list[str]) -> str:
  """Returns the usage, the chosen experiment's description, and its keys."""
  chosen = _value_of("config", argv)
  config = _load_for(chosen, argv) if chosen else default()
  keys, values = keys_of(flat_keys(config)), flat_keys(config)
  title = f"Keys of {chosen}:" if chosen else "Keys and their defaults:"
  lines = [_describe_key(name, key, values[name]) for name, key in keys.items()]
  parts = [
    usage.strip(),
    (_module(chosen).__doc__ or "").strip() if chosen else "",
    "\n".join([title, *lines]),
    _describe_variants(variants_of(chosen) if chosen else ()),
  ]
  return "\n\n".join(part for part in parts if part)


def _describe_key(name: str, key: Key, value: Any) -> str:
  """Formats a key with its value, its help and its choices."""
  margin = " " * 6
  text = f"{key.help}: {', '.join(key.choices)}" if key.choices else key.help
  return f"  --config.{name}={value!r}\n" + textwrap.fill(
    text, 88, initial_indent=margin, subsequent_indent=margin
  )


def variants_of(chosen: str) -> tuple[str, ...]:
  """Returns the variants of FILE[:variants]; () if the file defines no Experiment."""
  experiment = getattr(_module(chosen), "EXPERIMENT", None)
  return experiment.variants if isinstance(experiment, Experiment) else ()


def _describe_variants(variants: tuple[str, ...]) -> str:
  if not variants:
    return ""
  text = f"Variants: {', '.join(variants)}. Several: FILE:{','.join(variants[:2])}"
  return textwrap.fill(text if len(variants) > 1 else f"Variants: {variants[0]}.", 88)


def default_workdir(chosen: str) -> str:
  """Returns runs/NAME-VARIANTS for FILE[:variants]."""
  path, _, variants = chosen.partition(":")
  return str(
    Path("runs") / "-".join([Path(path).stem, *variants.split(",")]).strip("-")
  )


def _read_flags(argv: list[str], config: ConfigDict) -> Any:
  """Parses the flags; errors that are not explained here keep absl's wording."""
  values = flags.FlagValues()
  flags.DEFINE_string("workdir", None, "The run's folder.", flag_values=values)
  flags.DEFINE_string("distributed", "auto", "See main.", flag_values=values)
  try:
    config_flags.DEFINE_config_dict(
      "config", config, flag_values=values, lock_config=True, sys_argv=argv
    )
    rest = values(argv)
  except flags.UnrecognizedFlagError as error:
    said = " ".join(str(error).split()).rstrip(".")
    hint = _suggest_key(error.flagname, config)
    raise UsageError(f"{said}; {hint}see --help.") from error
  except (flags.Error, TypeError, ValueError) as error:
    said = " ".join(str(error).split()).rstrip(".")
    raise ConfigError(f"{_wrong_value(said, config) or said}; see --help.") from error
  if rest[1:]:
    raise UsageError(f"the argument {rest[1]!r} is not a flag; see --help.")
  return values


def _module(chosen: str) -> Any:
  """Imports the file of FILE[:variants]."""
  path = Path(chosen.partition(":")[0])
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
    raise ConfigError(f"{path} fails when imported: {_describe(error)}.") from error
  if not hasattr(module, "get_config"):
    raise ConfigError(f"{path} has no function get_config(variants); see configs/.")
  return module


def _describe(error: Exception) -> str:
  said = " ".join(str(error).split()).rstrip(".")
  return said if isinstance(error, ConfigError) else f"{type(error).__name__}: {said}"


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
  """Removes --name=VALUE or --name VALUE from argv."""
  kept, skip = [], False
  for argument in argv:
    flag, equals, _ = argument.partition("=")
    if skip or flag in (f"--{name}", f"-{name}"):
      skip = not skip and not equals
    else:
      kept.append(argument)
  return kept


def require_overrides(rest: list[str]) -> list[str]:
  """Refuses flags other than changes of keys, and returns the keys."""
  for argument in rest:
    if not _OVERRIDE.match(argument):
      raise UsageError(f"the argument {argument!r} is not known; see --help.")
  return _overrides(rest)


def _overrides(argv: list[str]) -> list[str]:
  return [match[1] for match in map(_OVERRIDE.match, argv) if match]


def _suggest_key(flag: str, config: ConfigDict) -> str:
  """Suggests, as a question, the key that a flag without --config means; or ""."""
  names = [
    name
    for name in flat_keys(config)
    if flag in (name, name.rpartition(".")[2]) or name == f"{flag}.name"
  ]
  return f"did you mean --config.{names[0]}? Else " if names else ""


def _wrong_value(said: str, config: ConfigDict) -> str:
  """Describes what is wrong with a key's value, from absl's message; or ""."""
  found = re.match(r"flag --config\.([\w.]+)=(.*?): ", said)
  if found is None or found[1] not in (known := flat_keys(config)):
    return ""
  kind = _KINDS.get(type(known[found[1]]), f"like {known[found[1]]!r}")
  return f"config.{found[1]}={found[2]} is not {kind}"
