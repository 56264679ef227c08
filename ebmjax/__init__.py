"""Continual learning with energy-based models in JAX.

The public names are imported when they are first used, so that the losses alone cost
no more than JAX.
"""

import importlib
from typing import Any

__version__ = "0.2.0"
_MODULES = (
  *("config", "data", "losses", "methods", "metrics", "models", "negatives"),
  *("networks", "objectives", "prediction", "streams", "testing", "types"),
)
_NAMES = {
  "run": "ebmjax.experiment",
  "load": "ebmjax.models",
  "EnergyClassifier": "ebmjax.models",
}
__all__ = [*_MODULES, *_NAMES]


def __getattr__(name: str) -> Any:
  if name in _MODULES:
    return importlib.import_module(f"ebmjax.{name}")
  if name in _NAMES:
    return getattr(importlib.import_module(_NAMES[name]), name)
  raise AttributeError(f"module 'ebmjax' has no attribute {name!r}")


def __dir__() -> list[str]:
  return sorted([*globals(), *__all__])
