"""One file for a classifier: a header in JSON and arrays, nothing that runs code."""

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from ml_collections import ConfigDict

from ebmjax.config import flat_keys
from ebmjax.config.upgrade import upgrade
from ebmjax.config.validation import resolve
from ebmjax.data import npz
from ebmjax.errors import ConfigError, DataError, WorkdirError
from ebmjax.models import form as forms
from ebmjax.models.learning import OnlineLearner
from ebmjax.models.loading import outputs, read_run, restore
from ebmjax.models.rejection import Reservoir
from ebmjax.runtime import atomic, failures

if TYPE_CHECKING:
  from ebmjax.models.estimator import EnergyClassifier

_FORMAT = 1


def save(model: "EnergyClassifier", path: Path) -> None:
  """Writes all that `load` needs, in one step: a file that was there stays whole."""
  learner, reservoir = model._learner, model._reservoir
  header = {
    "format": _FORMAT,
    "params": model.get_params(),
    "config": learner.config.to_dict(),
    "form": forms.to_json(model._form),
    "labels": model._labels,
    "task": learner.task,
    "step": learner.step,
    "reservoir": reservoir.state(),
  }
  arrays: Any = {"classes": learner.classes, **_leaves(learner.states)}
  if reservoir.seen and reservoir.size:
    arrays["reservoir"] = reservoir.rows()
  if learner.kept:
    x, y = (np.concatenate(parts) for parts in zip(*learner.kept, strict=True))
    arrays |= {"kept_x": x, "kept_y": y}
  packed = io.BytesIO()
  text = json.dumps(header, default=_plain).encode()
  np.savez(packed, header=np.frombuffer(text, np.uint8), **arrays)
  with failures.explain_write_errors(path, "or give another file"):
    atomic.write(path, packed.getvalue())


def load(
  kind: "type[EnergyClassifier]", path: Path, seed: int | None
) -> "EnergyClassifier":
  """Returns the classifier of a file that `save` wrote, or of a finished run."""
  if path.is_dir():
    return _from_run(kind, path, seed)
  if not path.is_file():  # reading a pipe would never end
    raise DataError(f"{path} does not exist; give the file of a saved model.")
  if seed is not None:
    raise ConfigError(f"{path} is a file of one model; leave the seed out.")
  arrays = npz.read(path, None, "give another file")
  try:
    header = json.loads(arrays.pop("header").tobytes())
    if header["format"] != _FORMAT:
      raise ValueError(f"format {header['format']}")
    config = resolve(ConfigDict(upgrade(header["config"])))
    found = _assemble(kind, header, config, arrays)
  except (
    *(LookupError, TypeError, ValueError, AttributeError, OverflowError),
    *(RecursionError, MemoryError, ConfigError),
  ) as error:
    raise DataError(
      f"{path} is damaged, or not a model that this version can load ({error}); give "
      "another file."
    ) from error
  return found


def _assemble(
  kind: "type[EnergyClassifier]", header: Any, config: ConfigDict, arrays: Any
) -> "EnergyClassifier":
  model = kind(**header["params"])
  classes = arrays["classes"]
  form = forms.from_json(header["form"])
  learner = OnlineLearner(
    config, form, classes=classes.shape[1], tasks=classes.shape[0]
  )
  learner.states = _with_leaves(learner.states, arrays)
  learner.classes = classes
  learner.task, learner.step = int(header["task"]), int(header["step"])
  if "kept_x" in arrays:
    learner.kept = [(arrays["kept_x"], arrays["kept_y"])]
  reservoir = Reservoir(model.calibration_rows, seed=model.random_state)
  # Earlier files hold the number of rows seen alone.
  sample = header.get("reservoir") or reservoir.state() | {"seen": header["seen"]}
  reservoir.restore(arrays.get("reservoir", np.empty(0)), sample)
  model._adopt(form, learner, header["labels"], reservoir)
  return model


def _from_run(
  kind: "type[EnergyClassifier]", path: Path, seed: int | None
) -> "EnergyClassifier":
  """Returns the classifier that continues where a finished run ended."""
  found = read_run(path)
  stream = found.config.stream
  if stream.scenario != "class" or stream.name == "permuted":
    raise WorkdirError(
      f"{path} is a run of stream {stream.name!r} in scenario {stream.scenario!r}, "
      "whose labels are not those of single inputs; use ebmjax.load to predict with it."
    )
  seed = found.seeds[0] if seed is None else seed
  (labels,), (tasks,) = outputs(found, [seed])
  trained = restore(found)
  config = found.config.copy_and_resolve_references()
  config.seed, config.seeds = seed, 1
  shape = tasks.classes.shape
  learner = OnlineLearner(config, found.form, classes=shape[1], tasks=shape[0])
  place = found.seeds.index(seed)
  learner.states = jax.tree.map(lambda leaf: leaf[place][None], trained.states)
  learner.step, learner.task = trained.step, shape[0] - 1
  learner.classes = tasks.classes.copy()
  model = kind(
    config.method.name,
    config.network.name,
    settings=_settings(config),
    boundaries="auto" if stream.setting == "boundary_aware" else "none",
    batch_size=int(stream.batch_size),
    random_state=seed,
  )
  reservoir = Reservoir(model.calibration_rows, seed=seed)
  model._adopt(found.form, learner, labels, reservoir)
  return model


def _settings(config: ConfigDict) -> dict[str, Any]:
  """Returns the keys of a run that an estimator's `settings` hold."""
  kept = (
    *("method.", "network.", "optimiser.", "objective", "negatives"),
    *("data.augment", "runner.precision"),
  )
  return {
    key: value
    for key, value in flat_keys(config).items()
    if key.startswith(kept) and key not in ("method.name", "network.name")
  }


def _leaves(states: Any) -> dict[str, np.ndarray]:
  pairs = jax.tree_util.tree_leaves_with_path(states)
  return {_name(path): np.asarray(leaf) for path, leaf in pairs}


def _with_leaves(like: Any, arrays: Any) -> Any:
  """Returns states of the structure of `like` with the arrays of a file."""

  def one(path: Any, leaf: Any) -> Any:
    found = arrays[_name(path)]
    if found.shape != leaf.shape or found.dtype != leaf.dtype:
      raise ValueError(f"{_name(path)} holds {found.dtype} of shape {found.shape}")
    return jax.numpy.asarray(found)

  return jax.tree_util.tree_map_with_path(one, like)


def _name(path: Any) -> str:
  return "state" + jax.tree_util.keystr(path)


def _plain(value: Any) -> Any:
  """Returns what JSON can hold of a NumPy scalar or an array."""
  if isinstance(value, np.generic | np.ndarray):
    return value.tolist()
  raise ConfigError(f"a parameter of type {type(value).__name__} cannot be saved.")
