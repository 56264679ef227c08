"""Times the estimator beside the runner: the same training, the same predictions."""

from typing import Any

from ebmjax.config import default, flat_keys
from ebmjax.data import DATASETS
from ebmjax.models.estimator import EnergyClassifier
from ebmjax.runtime.trainer import RunSpec
from ebmjax.tools.bench import evaluation, tables, training
from ebmjax.tools.bench.cases import Training, load, make, noise
from ebmjax.tools.bench.measuring import Options, Row, interleave, spread, timed

TITLE = "The estimator beside the runner"
_CALLS = 50  # with one image each, in a round


# As many steps as MNIST has whole batches.
CASES = (Training("Estimator, EBM, all of MNIST's classes", "splitmnist.py", 468),)


def measure(case: Training, options: Options) -> Row:
  """Returns rates of both: steps, predicted images, and calls with one image."""
  config = load(case.config, case.changes)
  config.stream.update(tasks=1, iterations=case.steps)
  info, batch = DATASETS[config.data.name], int(config.stream.batch_size)
  dataset = noise(config.data.name, train=case.steps * batch, test=info.test.size)
  spec = make(config, dataset)
  model = estimator(spec)
  x, y, tests = dataset.train_x, dataset.train_y, dataset.test_x

  def learn(rows: int, size: int) -> None:
    for start in range(0, rows, size):
      model.partial_fit(x[start : start + size], y[start : start + size])
    model.predict(tests[:1])  # waits for the last step

  def answer() -> None:
    for i in range(_CALLS):
      model.predict(tests[i : i + 1])

  evaluate = evaluation.make(spec)
  runners = {
    "steps, estimator": timed(lambda: learn(len(x), batch), case.steps),
    "steps, runner": training.ours(spec, case.steps),
    "images, estimator": timed(lambda: model.predict(tests), len(tests)),
    "images, runner": timed(lambda: evaluate([0]), len(tests)),
    "predict, one image": timed(answer, _CALLS),
    "partial_fit, one image": timed(lambda: learn(_CALLS, 1), _CALLS),
  }
  rates = interleave(runners, options.rounds)
  pairs = [(f"{what}, estimator", f"{what}, runner") for what in ("steps", "images")]
  return {
    "case": case.name,
    "rounds": options.rounds,
    "rate": {name: spread(values) for name, values in rates.items()},
    "ratio": {
      ours.partition(",")[0]: spread(
        [a / b for a, b in zip(rates[ours], rates[theirs], strict=True)]
      )
      for ours, theirs in pairs
    },
  }


def estimator(spec: RunSpec) -> EnergyClassifier:
  """Returns an estimator that trains as the run does."""
  config, usual = spec.config, flat_keys(default())
  own: dict[str, Any] = {
    key: value
    for key, value in flat_keys(config).items()
    if key.split(".")[0] in ("network", "optimiser", "objective", "negatives")
    and value != usual.get(key)
  }
  return EnergyClassifier(
    config.method.name,
    config.network.name,
    settings=own,
    batch_size=int(config.stream.batch_size),
    boundaries="manual",
  )


TABLES = (tables.rates,)
