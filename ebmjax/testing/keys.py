"""Requirements on the keys of any component, and on its use of random keys."""

from collections.abc import Mapping
from typing import Any

import jax

from ebmjax.config.schema import Key


def require_documented(keys: Mapping[str, Key]) -> None:
  """Requires a line of help for every key, and a default that is allowed."""
  for name, key in keys.items():
    assert key.help, f'the key {name} has no help; write Annotated[TYPE, "what it is"]'
    fault = key.fault(key.default)
    assert fault is None, f"the default {name}={key.default!r} {fault}"


def require_valid(values: Mapping[str, Any], keys: Mapping[str, Key], of: str) -> None:
  """Requires that values belong to known keys and are allowed."""
  for name, value in values.items():
    known = ", ".join(keys) or "none"
    assert name in keys, f"{of} sets {name}, which is not a key; the keys are {known}"
    fault = keys[name].fault(value)
    assert fault is None, f"{of} sets {name}={value!r}, which {fault}"


def reuses_key(function: Any, *given: Any) -> bool:
  """Returns whether a random key is used twice; JAX finds out while tracing."""
  with jax.debug_key_reuse(True):
    try:
      jax.jit(function).trace(*given)
    except jax.errors.KeyReuseError:
      return True
  return False
