"""Times training steps, ours and the peer's."""

from ebmjax.runtime import scan
from ebmjax.runtime.trainer import RunSpec, Trainer
from ebmjax.tools.bench import peer, tables
from ebmjax.tools.bench.cases import TRAINING, Training, make_training
from ebmjax.tools.bench.measuring import OURS, Options, Rate, Row, compare, timed

TITLE = "Training, steps per second"
CASES = TRAINING
TABLES = (tables.rates, tables.ways)


def ours(spec: RunSpec, steps: int) -> Rate:
  """Returns a function that trains all seeds `steps` steps, to seed-steps a second."""
  trainer = Trainer(spec)
  chunk = next(scan.chunks(spec.stream, 0, steps, steps))
  return timed(lambda: trainer.train(chunk), len(spec.seeds) * steps)


def measure(case: Training, options: Options) -> Row:
  """Returns the case's rates in steps per second, and the ratios of its rounds."""
  spec = make_training(case)
  runners = {OURS: ours(spec, case.steps)}
  with peer.peers(options.peer, spec, "training", case.steps) as (others, failed):
    return compare(case.name, runners | others, options.rounds, failed)
