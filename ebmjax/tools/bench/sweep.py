"""Times several seeds in one process, with every driver."""

from ebmjax.runtime import scan
from ebmjax.tools.bench import training
from ebmjax.tools.bench.cases import Training, make_training
from ebmjax.tools.bench.measuring import OURS, Rate, Row, interleave, make_row

SEEDS = (4, 10)  # beside one


def measure(case: Training, rounds: int) -> Row:
  """Returns seed-steps per second, and their ratios to those of one seed alone.

  Every seed makes a case's steps in a round: the states of all seeds are copied once a
  round, and a shorter one would count that too often.
  """
  alone = make_training(case)
  runners: dict[str, Rate] = {OURS: training.ours(alone, case.steps)}
  for seeds in SEEDS:
    for driver in scan.DRIVERS:
      if driver != "auto":
        spec = make_training(case, seeds, driver)
        runners[f"{seeds} seeds, {driver}"] = training.ours(spec, case.steps)
  rates = interleave(runners, rounds)
  row = make_row(case.name, rates)
  # make_row has how much slower the others are; the gain of a sweep is the inverse.
  row["ratio"] = {
    name: {"median": 1 / s["median"], "min": 1 / s["max"], "max": 1 / s["min"]}
    for name, s in row["ratio"].items()
  }
  return row
