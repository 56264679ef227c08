"""The configuration that the parameters of an estimator stand for."""

from collections.abc import Mapping
from typing import Any

from ml_collections import ConfigDict

from ebmjax import methods, networks
from ebmjax.config import default, flat_keys, with_settings
from ebmjax.config.groups import explain_unknown
from ebmjax.config.validation import resolve
from ebmjax.errors import ConfigError

_BOUNDARIES = ("auto", "manual", "none")


def configuration(params: Mapping[str, Any], num_inputs: int) -> ConfigDict:
  """Returns the configuration of an estimator's parameters, checked like any other.

  `num_inputs` is how many numbers an input has.
  """
  _require_usable(params)
  spec, network = methods.find(params["method"]), params["network"]
  if network == "auto":
    closed_form = spec.network == "raw" and "learning_rate" not in spec.keys
    network = "fourier" if closed_form else spec.network or "ebm"
  free = params["boundaries"] == "none"
  given: dict[str, Any] = {
    "data.name": "own",
    "stream.setting": "boundary_free" if free else "boundary_aware",
    "stream.batch_size": params["batch_size"],
    "method.name": params["method"],
    "network.name": network,
    "objective": "contrastive" if networks.find(network).energy else "ce",
    "seed": params["random_state"],
    **{f"method.{key}": value for key, value in spec.settings("own").items()},
  }
  if network == "fourier":  # the usual choice for normalised inputs
    given |= {"network.gamma": 1.0 / num_inputs, "network.num_features": 1000}
  settings = params["settings"] or {}
  config = with_settings(default(), given | dict(settings))
  known = flat_keys(config)
  for key in settings:
    if key not in known:
      raise ConfigError(f"config.{key}, of settings, {explain_unknown(key, known)}")
  return resolve(config)


def _require_usable(params: Mapping[str, Any]) -> None:
  """Raises at a parameter that no key of a configuration checks."""
  boundaries, settings = params["boundaries"], params["settings"]
  if boundaries not in _BOUNDARIES:
    raise ConfigError(
      f"boundaries={boundaries!r} is none of auto, manual and none: choose one."
    )
  if not isinstance(settings or {}, Mapping):
    raise ConfigError(f"settings={settings!r} is no mapping of keys to values.")
  for name in ("method", "network"):
    if not isinstance(params[name], str):
      raise ConfigError(
        f"{name} is of type {type(params[name]).__name__}: give a name, or the import "
        "path of a spec, such as '__main__:SPEC' for one of this script."
      )


def require_even(config: ConfigDict, announced: Any) -> None:
  """Raises where a method needs to know the classes of all tasks beforehand."""
  if not methods.find(config.method.name).even_tasks:
    return
  tasks = int(config.stream.tasks)
  if announced is None or len(announced) % tasks:
    raise ConfigError(
      f"{config.method.name} needs tasks of as many classes each: announce all classes "
      "in the first call (classes=...), a multiple of settings={'stream.tasks': ...}."
    )
