"""How long a seed of a command takes: from its own runs, else from measured speeds."""

from typing import NamedTuple

from ml_collections import ConfigDict

from ebmjax.data import DATASETS
from ebmjax.paper import commands
from ebmjax.paper.ledger import Measurement

# Fine-tuning steps a second of one seed, batches of 128, on two CPU cores: the medians
# of BENCHMARKS.md. (stream, data, network, without boundaries)
RATES = {
  ("split", "mnist", "ebm", False): 949.0,
  ("split", "mnist", "ebm", True): 406.0,  # two gated layers
  ("split", "mnist", "sbc", False): 491.0,
  ("permuted", "mnist", "ebm", False): 290.0,
  ("permuted", "mnist", "ebm", True): 91.3,  # two gated layers
  ("permuted", "mnist", "sbc", False): 94.5,
  ("split", "cifar10", "ebm", False): 8.8,
  ("split", "cifar10", "sbc", False): 6.65,
  ("split", "cifar100", "ebm", False): 45.4,  # fixed statistics
  ("split", "cifar100", "sbc", False): 33.4,  # fixed statistics
}
MOVING_STATISTICS = {"ebm": 24.3, "sbc": 19.6}  # CIFAR-100, trunk in every step
# Times of a step over fine-tuning's, SBC on permuted MNIST.
FACTORS = {
  "finetune": 1.0,
  "ewc": 1.31,
  "online_ewc": 1.33,
  "si": 1.42,
  "lwf": 1.34,
  "mas": 1.31,
  "er": 1.8,
  "icarl": 1.42,
}
# Not measured side by side. BGD made 2.9 steps a second on one of two busy cores, with
# the SBC on permuted MNIST; two are taken to make twice that, against the rate above.
# Of DGR and BI-R the products are counted, on the same network.
GUESSED_FACTORS = {"bgd": 16.3, "dgr": 7.6, "bir": 7.6, "pgma": 1.0}
_RESNET = 54.0  # GSS with it took 3.8 s of one core for a step of ten rows
# What PGMA adds to a step, in seconds: 0.9 and 14 of one core were seen on split MNIST.
_GENERATORS = {"dense": 0.45, "conv": 7.0}
GUESSED_FACTOR = 3.0  # of any other method
GUESSED_RATE = 200.0  # capacity study
# EBM, many labels a row: CIFAR-100's ratios on one core, a guess elsewhere.
_GUESSED_LABELS = {"all_seen": 4.5, "all_of_batch": 1.1}
# CIFAR-10's gradients with the label between the convolutions, over those with it at
# the end, on one core: what comes after it is computed once for each label.
_POSITIONS = {"v1": 2.01, "v2": 1.48, "v3": 1.07, "v4": 1.0}
_SMALLEST_TASK = {("mnist", 5): 11263}  # digits 4 and 5


class Estimate(NamedTuple):
  """Seconds that one seed is expected to take, and what that rests on."""

  seconds: float
  basis: str  # "runs": earlier ones; "speed": measured step times; "guess"


def estimate(chosen: str, measured: Measurement | None) -> Estimate:
  """Returns the time of a seed of FILE[:variants]."""
  own = _from_runs(measured) if measured else None
  return own or _from_speed(commands.load(chosen))


def steps(config: ConfigDict) -> int:
  """Returns the training steps of one seed."""
  stream = config.stream
  if stream.setting != "boundary_free":
    return int(stream.tasks * stream.iterations)
  size = DATASETS[config.data.name].train.size
  if stream.name == "split":
    size = _SMALLEST_TASK.get((config.data.name, stream.tasks), size // stream.tasks)
  return int(stream.epochs_per_task * stream.tasks * (size // stream.batch_size))


def told(seconds: float) -> str:
  """Returns a time in the unit that suits it."""
  if seconds < 90:
    return f"{seconds:.0f} s"
  return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _from_runs(measured: Measurement) -> Estimate | None:
  """Returns the newest run's time; of one that was resumed its steps tell more."""
  entry = max(measured.entries, key=lambda entry: entry.finished)
  times = [0.0]
  if entry.wall_time:
    times.append(entry.wall_time / len(entry.seeds))
  if entry.steps and entry.steps_per_second:
    times.append(entry.steps / entry.steps_per_second)
  return Estimate(max(times), "runs") if max(times) else None


def _from_speed(config: ConfigDict) -> Estimate:
  network, method = config.network.name, config.method.name
  # Only the EBM has another network without boundaries.
  free = config.stream.setting == "boundary_free" and network == "ebm"
  place = (config.stream.name, config.data.name, network, free)
  rate = RATES.get(place) or RATES.get((*place[:3], False)) or GUESSED_RATE
  guess = place[:3] not in {key[:3] for key in RATES} or config.data.memorise
  if config.data.memorise:
    rate = GUESSED_RATE
  elif config.network.trunk == "conv5" and config.network.conv != "fixed_statistics":
    rate = MOVING_STATISTICS[network]
  factor = FACTORS.get(method) or GUESSED_FACTORS.get(method, GUESSED_FACTOR)
  others = _other_factors(config)
  guess = guess or method not in FACTORS or others != 1
  seconds = steps(config) / rate * factor * others * config.stream.batch_size / 128
  if method == "pgma":
    seconds += steps(config) * _GENERATORS[config.method.generator]
  return Estimate(seconds, "guess" if guess else "speed")


def _other_factors(config: ConfigDict) -> float:
  """Returns what costs more than the benchmarks' steps and was not measured."""
  factor = 1.0
  if config.network.trunk == "resnet18":
    factor *= _RESNET
  if config.network.name == "ebm":
    factor *= _GUESSED_LABELS.get(config.negatives, 1.0)
    if config.network.trunk == "conv4":
      factor *= _POSITIONS[config.network.position]
  return factor
