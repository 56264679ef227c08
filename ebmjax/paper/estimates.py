"""How long a seed of a command takes: from its own runs, else from the nearest ones.

Runs on another kind of device say nothing about this one.
"""

import functools
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from ebmjax import data, methods
from ebmjax.config import lookup
from ebmjax.config.groups import is_installed
from ebmjax.config.identity import decisive
from ebmjax.paper import commands
from ebmjax.paper.ledger import Measurement
from ebmjax.paper.store import Entry

CPU = "cpu"
_GUESSED_RATE = 200.0  # steps per second, if nothing similar was measured
_SMALLEST_TASK = {("mnist", 5): 11263}  # digits 4 and 5


# The keys that a run must share with another to be as fast; sharing fewer of them gives
# a guess. A method that learns each class alone is compared with its own kind.
_ALIKE = ("data.name", "stream.name", "network.name")
_SPEEDS = ((_ALIKE, "speed"), (_ALIKE[:-1], "guess"))
_OWN_SPEEDS = (((*_ALIKE, "method.name"), "speed"), (("method.name",), "guess"))


class Estimate(NamedTuple):
  """The expected time of one seed, and what the estimate rests on."""

  seconds: float
  basis: str  # "runs": its own; "speed": that of the nearest run; "guess"


def estimate(
  command: str,
  measured: Measurement | None,
  entries: Sequence[Entry] = (),
  device: str = CPU,
) -> Estimate:
  """Estimates the time of one seed of FILE[:variants] on a kind of device.

  Without runs of its own, the speed is that of the nearest of `entries`, corrected for
  the cost of the method.
  """
  own = _from_runs(measured, device) if measured else None
  return own or _from_nearest(commands.load(command), entries, device)


@functools.cache
def this_device() -> str:
  """Returns the kind of device that runs started here use.

  A separate process asks JAX, because asking reserves the device's memory.
  """
  asked = "import jax; print(jax.devices()[0].device_kind)"
  found = subprocess.run(
    [sys.executable, "-c", asked], capture_output=True, text=True, check=False
  )
  return found.stdout.strip() if found.returncode == 0 else CPU


def steps(config: ConfigDict) -> int:
  """Returns the training steps of one seed."""
  stream = config.stream
  if stream.setting != "boundary_free":
    return int(stream.tasks * stream.iterations)
  size = data.find(config.data.name).train.size
  if stream.name == "split":
    size = _SMALLEST_TASK.get((config.data.name, stream.tasks), size // stream.tasks)
  return int(stream.epochs_per_task * stream.tasks * (size // stream.batch_size))


def _from_runs(measured: Measurement, device: str) -> Estimate | None:
  """Returns the newest run's wall time, or the time of its steps if that is longer."""
  own = [entry for entry in measured.entries if entry.device == device]
  if not own:
    return None
  entry = max(own, key=lambda entry: entry.finished)
  times = [0.0]
  if entry.wall_time:
    times.append(entry.wall_time / len(entry.seeds))
  if entry.steps and entry.steps_per_second:
    times.append(entry.steps / entry.steps_per_second)
  return Estimate(max(times), "runs") if max(times) else None


def _from_nearest(
  config: ConfigDict, entries: Sequence[Entry], device: str
) -> Estimate:
  """Estimates the time from the most similar run on this kind of device."""
  timed = [e for e in entries if e.device == device and e.steps_per_second]
  rate, basis = _GUESSED_RATE, "guess"
  by_class = methods.find(config.method.name).positives_alone
  wanted = config.to_dict()
  for keys, rests_on in _OWN_SPEEDS if by_class else _SPEEDS:
    alike = [
      entry
      for entry in timed
      if all(entry.config.get(key) == lookup(config, key) for key in keys)
      and is_installed(entry.config)  # or the cost of its method is not known
    ]
    nearest = min(alike, key=lambda entry: _distance(entry.run, wanted), default=None)
    if nearest is not None and nearest.steps_per_second:
      sizes = nearest.config["stream.batch_size"] / config.stream.batch_size
      rate = nearest.steps_per_second * _cost(nearest.config["method.name"]) * sizes
      basis = rests_on
      break
  return Estimate(steps(config) / rate * _cost(config.method.name), basis)


def _cost(method: str) -> float:
  return methods.find(method).cost


def _distance(one: Mapping[str, Any], other: Mapping[str, Any]) -> int:
  """Counts the keys, except the method's, in which two configurations differ."""
  first, second = (_decisive(json.dumps(config)) for config in (one, other))
  return sum(
    first.get(key) != second.get(key)
    for key in first.keys() | second.keys()
    if not key.startswith("method.")
  )


@functools.cache
def _decisive(config: str) -> dict[str, Any]:
  """Returns the keys of a configuration in JSON that decide its result."""
  return decisive(json.loads(config))
