"""Times several seeds in one process, with every driver."""

from ebmjax.runtime import scan
from ebmjax.tools.bench import tables, training
from ebmjax.tools.bench.cases import TRAINING, Training, make_training
from ebmjax.tools.bench.measuring import OURS, Options, Row, compare

TITLE = "Several seeds in one process, seed-steps per second"
CASES = TRAINING
SEEDS = (4, 10)  # beside one


def measure(case: Training, options: Options) -> Row:
  """Returns seed-steps per second, and their ratios to those of one seed alone.

  Every seed makes a case's steps in a round: the states of all seeds are copied once a
  round, and a shorter one would count that too often.
  """
  runners = {OURS: training.ours(make_training(case), case.steps)}
  for seeds in SEEDS:
    for driver in scan.DRIVERS:
      if driver != "auto":
        spec = make_training(case, seeds, driver)
        runners[f"{seeds} seeds, {driver}"] = training.ours(spec, case.steps)
  row = compare(case.name, runners, options.rounds)
  # It has how much slower the others are; the gain of a sweep is the inverse.
  row["ratio"] = {
    name: {"median": 1 / s["median"], "min": 1 / s["max"], "max": 1 / s["min"]}
    for name, s in row["ratio"].items()
  }
  return row


def cells(row: Row) -> dict[str, str]:
  """Returns seed-steps per second, and their ratio to one seed's."""
  shown = tables.rates(row)
  return {"1 seed": shown.pop(OURS)} | shown


TABLES = (cells,)
