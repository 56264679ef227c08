"""Components by name: a row of a registry, or the import path of a spec elsewhere."""

import importlib
from collections.abc import Mapping
from typing import Any, TypeVar

from ebmjax.config.schema import choices_sentence
from ebmjax.errors import ConfigError

Spec = TypeVar("Spec")


def find_in(group: str, registry: Mapping[str, Spec], name: str, kind: type) -> Spec:
  """Finds the spec that config.GROUP.name names: a registered one, or MODULE:NAME.

  Without a registry, the key is config.GROUP itself.
  """
  if name in registry:
    return registry[name]
  key = f"config.{group}{'.name' if registry else ''}={name!r}"
  if ":" not in name:
    known = f"{choices_sentence(name, registry)} " if registry else ""
    raise ConfigError(
      f"{key} is unknown; {known}Name one of your own by its import path, "
      "package.module:SPEC."
    )
  found = resolve(name)
  if not isinstance(found, kind):
    raise ConfigError(
      f"{key} is of type {type(found).__name__}, not {kind.__name__}; give the import "
      f"path of a {kind.__name__}."
    )
  return found  # type: ignore[return-value]


def resolve(path: str) -> Any:
  """Imports the object of a path such as "package.module:NAME"."""
  module, _, name = path.partition(":")
  try:
    found = importlib.import_module(module)
  except Exception as error:  # the module is a user's own program
    raise ConfigError(
      f"{path!r} cannot be imported ({type(error).__name__}: {error}); check the path, "
      "and that its folder is in PYTHONPATH."
    ) from error
  try:
    return getattr(found, name)
  except AttributeError as error:
    raise ConfigError(
      f"{module} has no {name or 'name after the colon'}; give package.module:NAME."
    ) from error
