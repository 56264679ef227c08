"""Checks a configuration: the type, range and choice of every key, then the rules."""

from ml_collections import ConfigDict

from ebmjax.config import flat_keys
from ebmjax.config.constraints import default_negatives, rules
from ebmjax.config.groups import keys_of, require_keys, versions
from ebmjax.errors import ConfigError


def resolve(config: ConfigDict) -> ConfigDict:
  """Returns a validated copy in which `config.negatives` is not `auto`.

  It also has the result versions of its components, which identify a run.
  """
  config = config.copy_and_resolve_references()
  require_keys(config, "the configuration")
  if config.negatives == "auto":
    config.negatives = default_negatives(config)
  validate(config)
  with config.unlocked():
    config.version = ConfigDict(versions(flat_keys(config)))
  return config


def validate(config: ConfigDict) -> None:
  """Raises ConfigError at the first fault, with the key, its value and the remedy."""
  given = flat_keys(config)
  for name, key in keys_of(given).items():
    value = given[name]
    if value is None:  # which ml_collections accepts for any type
      raise ConfigError(
        f"config.{name}=None is not a value; leave it out for its default."
      )
    fault = key.fault(value)
    if fault:
      raise ConfigError(f"config.{name}={value!r} {fault}")
  for broken, sentence in rules(config):
    if broken:
      raise ConfigError(sentence)
