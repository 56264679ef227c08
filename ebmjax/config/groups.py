"""The groups of a configuration, each with the keys of its chosen component."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from ebmjax import data, methods, networks
from ebmjax.config import flat_keys, nested
from ebmjax.config.locked import LockedDict
from ebmjax.config.schema import Key, Range, nearest
from ebmjax.errors import ConfigError
from ebmjax.losses import LOSSES
from ebmjax.methods import optimisers
from ebmjax.negatives import NEGATIVES
from ebmjax.streams.augmentation import AUGMENTATIONS
from ebmjax.streams.spec import SETTINGS, STREAMS, stream_keys

# Keys that decide which other keys their group has.
CHOICES = {
  *("data.name", "stream.name", "stream.setting"),
  *("network.name", "method.name", "optimiser.name"),
}
# Keys that say where data are, not what they are; they may differ between machines.
PLACES = (
  *("data.dir", "data.source", "data.download", "data.require_full"),
  "network.pretrained",
)


def _key(name: str, default: Any, text: str, least: int | None = None, **more: Any):
  return Key(name, default, text, range=Range(least=least), **more)


_ROOT = (
  # JAX's keys have 32 bits, and larger seeds would repeat smaller ones.
  Key("seed", 0, "first seed", range=Range(0, 2**31 - 1), free=True),
  _key("seeds", 1, "number of seeds, all in one process", 1, free=True),
  Key("objective", "contrastive", "training loss", choices=tuple(LOSSES)),
  Key(
    "negatives",
    "auto",
    "labels to compare the true one with; auto: by objective and setting",
    choices=("auto", *NEGATIVES),
  ),
)
_DATA = (
  Key("source", "auto", "where to look for the data", choices=data.SOURCES, free=True),
  Key("dir", "", "folder of the files or of TFDS sets; '': TFDS' default", free=True),
  Key("require_full", False, "accept only the complete official set", free=True),
  Key("download", True, "download a missing set", free=True),
  Key(
    "augment",
    "none",
    "random changes to every image each time it is drawn",
    choices=tuple(AUGMENTATIONS),
  ),
  Key("mean", (), "mean of each channel, pixels from 0 to 1; (): the data set's"),
  Key("std", (), "standard deviation of each channel, in the same way"),
  _key("images", 0, "number of training images to use, from the first; 0: all", 0),
  _key(
    "validation",
    0,
    "training images per class to hold out and score on, not the test set",
    0,
  ),
  Key("memorise", False, "use random labels and test on the training images"),
)
_EVAL = (
  Key("at_task_ends", True, "evaluate at task ends; the last step is always evaluated"),
  _key("every", 0, "also evaluate after every N steps; 0: do not", 0),
  _key("batch_size", 200, "test images in a batch", 1),
  Key("metrics", (), "import paths of your own metrics, package.module:METRIC"),
)
_CHECKPOINT = (
  _key("every", 2000, "steps between checkpoints", 1),
  # One stays whole while the next is written.
  _key("keep", 2, "checkpoints to keep", 2),
)
_RUNNER = (
  _key("chunk", 100, "training steps per compiled call", 1),
  Key(
    "driver",
    "auto",
    "seeds in turn (map) or side by side (vmap); auto: map on CPU, else vmap",
    choices=("auto", "map", "vmap"),
  ),
  Key(
    "precision",
    "auto",
    "precision of matrix products; auto: JAX's; bfloat16: summed in float32",
    choices=("auto", "highest", "tf32", "bfloat16"),
  ),
  _key("devices", 0, "devices for the seeds, over all processes; 0: all", 0),
  _key("batch_devices", 1, "devices that share each batch", 1),
  _key("image_memory", 0, "bytes of images kept on a device; 0: half of its memory", 0),
)
_FIXED: dict[str, tuple[Key, ...]] = {
  "eval": tuple(key._replace(free=True) for key in _EVAL),
  "checkpoint": tuple(key._replace(free=True) for key in _CHECKPOINT),
  # Only the precision changes results.
  "runner": tuple(key._replace(free=key.name != "precision") for key in _RUNNER),
}


class _Group(NamedTuple):
  """A group whose keys are those of its chosen component."""

  title: str
  default: str
  registry: Mapping[str, Any]
  find: Callable[[str], Any]  # a spec, by its name or import path


COMPONENTS = {
  "data": _Group("data set", "mnist", data.DATASETS, data.find),
  "network": _Group("network", "ebm", networks.NETWORKS, networks.find),
  "method": _Group(
    "continual-learning method", "finetune", methods.METHODS, methods.find
  ),
  "optimiser": _Group("optimiser", "adam", optimisers.OPTIMISERS, optimisers.find),
}
_DEFAULTS = {
  **{f"{group}.name": made.default for group, made in COMPONENTS.items()},
  "stream.name": "split",
  "stream.setting": "boundary_aware",
}


def keys_of(settings: Mapping[str, Any]) -> dict[str, Key]:
  """Returns all keys, by dotted name, of the components that flat `settings` choose."""
  chosen = {key: settings.get(key, default) for key, default in _DEFAULTS.items()}
  if not methods.find(chosen["method.name"]).uses_optimiser:
    chosen["optimiser.name"] = "none"
  groups: dict[str, Mapping[str, Key]] = {
    "": {key.name: key for key in _ROOT},
    "data": _component("data", chosen, _DATA),
    "stream": stream_keys(chosen["stream.name"], chosen["stream.setting"]),
    "network": _component("network", chosen),
    "method": _component("method", chosen),
    "optimiser": _component("optimiser", chosen),
    **{group: {key.name: key for key in keys} for group, keys in _FIXED.items()},
  }
  found = {
    f"{group}.{name}" if group else name: key
    for group, keys in groups.items()
    for name, key in keys.items()
  }
  return found | {
    key: found[key]._replace(default=value) for key, value in chosen.items()
  }


def _component(
  group: str, chosen: Mapping[str, Any], shared: tuple[Key, ...] = ()
) -> dict[str, Key]:
  title, default, registry, find = COMPONENTS[group]
  name = Key(
    "name",
    default,
    f"the {title}, or the import path of a spec",
    choices=tuple(registry),
    open_choices=True,
  )
  own = {key.name: key for key in (name, *shared)}
  keys = find(chosen[f"{group}.name"]).keys
  return own | {n: key for n, key in keys.items() if n not in own}


def versions(settings: Mapping[str, Any]) -> dict[str, int]:
  """Returns the result version of each component that flat `settings` choose."""
  return {
    group: made.find(settings[f"{group}.name"]).version
    for group, made in COMPONENTS.items()
  }


def is_installed(settings: Mapping[str, Any]) -> bool:
  """Returns whether the components that flat `settings` choose can be found here."""
  try:
    keys_of(settings)
  except ConfigError:
    return False
  return True


def complete(settings: Mapping[str, Any], *, drop_unknown: bool = False) -> ConfigDict:
  """Makes the configuration of flat `settings`, with defaults for all other keys.

  Settings of components that are not chosen are left out, so that an experiment can
  have settings for every choice. A key that no component has is refused, or left out
  with `drop_unknown`.
  """
  keys = keys_of(settings)
  groups = {name.partition(".")[0] for name in keys if "." in name}
  for key in settings:
    if key in groups or not (drop_unknown or key in keys or _is_known(key)):
      raise ConfigError(f"config.{key} {explain_unknown(key, keys)}")
  tree = nested({name: key.default for name, key in keys.items()})
  config = LockedDict({k: LockedDict(v) if k in groups else v for k, v in tree.items()})
  given = {key: value for key, value in settings.items() if key in keys}
  given["optimiser.name"] = config.optimiser.name  # "none" if the method uses none
  for key, value in given.items():
    group, _, name = key.rpartition(".")
    try:
      (config[group] if group else config)[name] = value
    except (TypeError, ValueError) as error:
      raise ConfigError(
        f"config.{key}={value!r} is of the wrong type; give a value such as "
        f"{keys[key].default!r}."
      ) from error
  config.lock()  # so that a mistyped key is refused
  return config


def _is_known(key: str) -> bool:
  """Returns whether any registered component has a key of this name."""
  group, _, name = key.rpartition(".")
  if group == "stream":
    return any(name in stream_keys(s, t) for s in STREAMS for t in SETTINGS)
  return bool(_owners(group, name)) or key in keys_of({})


def _owners(group: str, name: str) -> list[str]:
  """Returns the registered components of a group that have a key of this name."""
  registry = COMPONENTS[group].registry if group in COMPONENTS else {}
  return [n for n, spec in registry.items() if name in spec.keys]


def explain_unknown(key: str, known: Collection[str]) -> str:
  """Explains why `key` is not valid."""
  below = [name for name in known if name.startswith(f"{key}.")]
  if below:
    return f"is a group of keys, such as config.{below[0]}; see --help for all keys."
  group, _, name = key.rpartition(".")
  others = _owners(group, name)
  if others:
    return (
      f"is a key of {', '.join(others)}, not of the chosen config.{group}.name; see "
      "--help for all keys."
    )
  if _is_known(key):
    return (
      f"is not a key of the chosen config.{group}.name and config.{group}.setting; see "
      "--help for all keys."
    )
  hint = nearest(key, known)
  if hint:
    return f"is unknown; did you mean config.{hint}? See --help for all keys."
  return "is unknown; see --help for all keys."


def require_keys(config: ConfigDict, origin: str) -> None:
  """Refuses a configuration that lacks keys of its components, or has other keys.

  Result versions, which `resolve` adds, are accepted.
  """
  given = {k: v for k, v in flat_keys(config).items() if not k.startswith("version.")}
  known = keys_of(given)
  for key in given:
    if key not in known:
      raise ConfigError(f"config.{key} of {origin} {explain_unknown(key, known)}")
  for key in known:
    if key not in given:
      raise ConfigError(
        f"config.{key} is missing in {origin}; start from ebmjax.config.default(), and "
        "change choices with ebmjax.config.with_settings."
      )
