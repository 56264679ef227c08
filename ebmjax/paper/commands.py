"""Commands and configurations: what a command runs, and the command of a run."""

import functools
import hashlib
import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from ebmjax.config import loading
from ebmjax.config.identity import WEIGHTS, identity, recorded
from ebmjax.config.validation import resolve
from ebmjax.errors import ConfigError
from ebmjax.methods import METHODS

_FILES = {
  ("split", "mnist", False): "configs/splitmnist.py",
  ("permuted", "mnist", False): "configs/permmnist.py",
  ("split", "cifar10", False): "configs/cifar10.py",
  ("split", "cifar100", False): "configs/cifar100.py",
  ("split", "noise", True): "configs/capacity.py",
  ("split", "cifar10", True): "configs/capacity.py",
}
_PRETRAINING = "configs/pretrain_cifar10.py"  # of CIFAR-100's trunk on CIFAR-10
# Variants that no single key tells: those that come nearest are taken.
_TASKS = ("tasks5", "tasks20", "tasks50")
_CONDITIONINGS = ("v1", "v2", "v3", "end", "end_norm2", "end_fix", "end_fix_norm2")
_GUESSED: dict[str, tuple[tuple[str, ...], ...]] = {
  "configs/splitmnist.py": (("", "source", "hsu"),),
  "configs/permmnist.py": (("", "source"),),
  "configs/cifar10.py": (("", *_CONDITIONINGS, "end_fix_softmax"), ("", "source")),
  "configs/cifar100.py": (
    ("", *_TASKS),
    ("", "all_of_batch", "all_seen"),
    ("", "fixed"),
    ("", "source"),
  ),
  "configs/capacity.py": (("", "medium", "large"), ("", "cifar10")),
  _PRETRAINING: (),
}


@functools.cache
def load(chosen: str) -> ConfigDict:
  """Returns the resolved configuration of FILE[:variants], a file of ours."""
  config = loading.load(str(loading.root() / chosen))
  if config.data.name == "cifar100":
    config.network.pretrained = WEIGHTS
  return resolve(config)


def obstacle(chosen: str, learner: str) -> str | None:
  """Returns why a command cannot run yet, or None."""
  if learner not in METHODS:
    return f"the method {learner} does not exist yet"
  try:
    load(chosen)
  except ConfigError as error:
    return f"{chosen}: {error}"
  return None


@functools.cache
def identity_of(chosen: str) -> str:
  """Returns the identity of FILE[:variants]."""
  return identity(recorded(load(chosen).to_dict()))


def short_name(chosen: str) -> str:
  """Returns a folder's name for FILE[:variants], another one if the file changes.

  Keys at their default do not count: a new one leaves the names as they were.
  """
  own, usual = (json.loads(text) for text in (identity_of(chosen), identity({})))
  changes = {key: value for key, value in own.items() if value != usual.get(key)}
  text = json.dumps(changes, sort_keys=True)
  digest = hashlib.sha256(text.encode()).hexdigest()[:6]
  return f"{Path(loading.default_workdir(chosen)).name}-{digest}"


def command_line(chosen: str, seeds: int) -> str:
  """Returns the command that measures FILE[:variants] with a number of seeds."""
  weights = load(chosen).network.pretrained
  extra = f" --config.network.pretrained={weights}" if weights else ""
  return (
    f"python -m ebmjax.main --config={chosen} --config.seeds={seeds}"
    f" --config.data.require_full=True{extra}"
  )


def describe(flat: Mapping[str, Any]) -> str:
  """Returns FILE[:variants] and the flags that a run of this configuration needs."""
  flat = json.loads(identity(flat))
  file = _file(flat)
  if file is None:
    return "a configuration file of the user's own"
  plain = [] if file == _PRETRAINING else _plain_variants(flat)
  best: tuple[int, str, list[str]] | None = None
  for guessed in itertools.product(*_GUESSED[file], _scenarios(flat)):
    names = ",".join(name for name in [*plain, *guessed] if name)
    chosen = f"{file}:{names}" if names else file
    try:
      own = json.loads(identity_of(chosen))
    except ConfigError:
      continue
    changes = [
      f"--config.{key}={_text(value)}"
      for key, value in sorted(flat.items())
      if own.get(key) != value
    ]
    if best is None or len(changes) < best[0]:
      best = (len(changes), chosen, changes)
    if not changes:
      break
  if best is None:
    return "a configuration file of the user's own"
  return " ".join([best[1], *best[2]])


def _file(flat: Mapping[str, Any]) -> str | None:
  if (flat["data.name"], flat["network.trunk"]) == ("cifar10", "conv5"):
    return _PRETRAINING
  key = (flat["stream.name"], flat["data.name"], flat["data.memorise"])
  return _FILES.get(key)


def _plain_variants(flat: Mapping[str, Any]) -> list[str]:
  """Returns the variants that single keys tell, in the usual order."""
  sbc, objective = flat["network.name"] == "sbc", flat["objective"]
  names = [flat["stream.setting"]] if flat["stream.setting"] != "boundary_aware" else []
  if objective == "joint_pairs" or (objective == "contrastive" and sbc):
    names.append(objective)
  if flat["method.name"] != "finetune":
    names.append(flat["method.name"])
  return names + (["sbc"] if sbc else [])


def _scenarios(flat: Mapping[str, Any]) -> tuple[str, ...]:
  """Returns the variants to try; a `source` may be domain-incremental by itself."""
  return ("", "domain") if flat["stream.scenario"] == "domain" else ("",)


def _text(value: Any) -> str:
  """Returns a value as a flag takes it; `identity` has made every number a float."""
  if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
    return str(int(value))
  return str(tuple(value)) if isinstance(value, list) else str(value)
