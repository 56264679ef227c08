"""How the cost grows with labels, batch, width and seeds: the EBM's MLP, random data.

One size at a time leaves the base, which has the width of permuted MNIST's network. Of
both, training and inference of all labels, what is given is milliseconds a batch: a
step, or the labels of a batch of images. Several seeds go through together. The peer is
timed in its shared form, and in the faster of its two ways, for one seed only.
"""

import statistics
from typing import NamedTuple

from ebmjax.runtime import scan
from ebmjax.runtime.trainer import RunSpec
from ebmjax.tools.bench import inference, measuring, peer, training
from ebmjax.tools.bench.cases import load, make, noise
from ebmjax.tools.bench.measuring import OURS, Options, Rate, Rates, Row
from ebmjax.tools.bench.tables import label, median

TITLE = "Growth with size, milliseconds a batch"
WORKS = ("training", "inference")
_PER_TASK = 10  # labels of a task: the candidates of a training step
_STEPS = 10  # of a compiled chunk
_IMAGES = 2_000
_SECONDS = 0.4  # of a round, for one that is timed


class Sizes(NamedTuple):
  """A point of a curve; the defaults are the base."""

  labels: int = 100
  batch: int = 128
  hidden: int = 1000
  seeds: int = 1


AXES: dict[str, tuple[int, ...]] = {
  "labels": (10, 30, 100, 300, 1000),
  "batch": (32, 128, 512, 2048),
  "hidden": (100, 400, 1000, 2000),
  "seeds": (1, 2, 4, 8),
}


class Point(NamedTuple):
  """One point of the axis `name`."""

  axis: str
  sizes: Sizes

  @property
  def name(self) -> str:
    """Returns what the point is called in messages and tables."""
    return f"Curve, {getattr(self.sizes, self.axis)} {self.axis}"


CASES = tuple(
  Point(axis, Sizes()._replace(**{axis: value}))
  for axis, values in AXES.items()
  for value in values
)


def measure(point: Point, options: Options) -> Row:
  """Returns milliseconds a batch, by what was timed: {work: {name: spread}}."""
  sizes, alone = point.sizes, point.sizes.seeds == 1
  row: Row = {"case": point.name, "axis": point.axis, "rounds": options.rounds}
  row |= {"value": getattr(sizes, point.axis), "sizes": sizes._asdict()}
  drivers = ["auto"] if alone else [one for one in scan.DRIVERS if one != "auto"]
  specs = {driver: make_point(sizes, driver) for driver in drivers}
  python, spec = options.peer if alone else None, specs[drivers[0]]
  for work in WORKS:
    runners = {_name(driver): _ours(spec, work) for driver, spec in specs.items()}
    with peer.peers(python, spec, work, 1, forms=("shared",)) as (others, _):
      for one in others.values():
        one.last(_SECONDS)
      rates = measuring.interleave(runners | others, options.rounds)
    row[work] = _milliseconds(rates, work, sizes)
  return row


def make_point(sizes: Sizes, driver: str = "auto") -> RunSpec:
  """Returns the parts of a run with a network and batches of these sizes."""
  changes = {
    "stream.tasks": max(sizes.labels // _PER_TASK, 1),
    "stream.batch_size": sizes.batch,
    "stream.iterations": _STEPS,
    "eval.batch_size": sizes.batch,
    "network.hidden": sizes.hidden,
    "seeds": sizes.seeds,
  }
  config = load("splitmnist.py", tuple(changes.items()))
  # As many of every label as give each task a batch.
  images = max(_IMAGES, sizes.labels * -(-sizes.batch // _PER_TASK))
  return make(config, noise("mnist", images, sizes.batch, sizes.labels), driver)


def _name(driver: str) -> str:
  return OURS if driver == "auto" else f"{OURS}, {driver}"


def _ours(spec: RunSpec, work: str) -> Rate:
  seeds = len(spec.seeds)
  if work == "training":
    return lasting(training.ours(spec, _STEPS), seeds * _STEPS, _SECONDS)
  images = spec.config.eval.batch_size
  return lasting(inference.ours(spec, 1), seeds * images, _SECONDS)


def lasting(one_round: Rate, amount: float, seconds: float) -> Rate:
  """Returns `one_round` as often as fills `seconds`; to the rate over all of them.

  A round does `amount` of what its rate counts. One is run here to see how long it is.
  """
  times = max(1, round(seconds * one_round() / amount))
  return lambda: statistics.harmonic_mean([one_round() for _ in range(times)])


def _milliseconds(rates: Rates, work: str, sizes: Sizes) -> Row:
  """Returns {name: spread} of the time of a batch, of each form's fastest way."""
  amount = sizes.seeds * (sizes.batch if work == "inference" else 1)
  return {
    form: measuring.spread([1e3 * amount / rate for rate in rates[name]])
    for form, name in measuring.strictest(rates).items()
  }


def cells(row: Row) -> dict[str, str]:
  """Returns a row of the table."""
  return {
    f"{work}: {label(name)}": median(found)
    for work in WORKS
    for name, found in row[work].items()
  }


TABLES = (cells,)
