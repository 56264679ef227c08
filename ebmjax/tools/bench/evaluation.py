"""Times an evaluation of the whole test set, all tasks and all labels."""

import time
from collections.abc import Callable

import jax.numpy as jnp

from ebmjax.runtime import evaluation, feeding, scan
from ebmjax.runtime.sharding import ONE_DEVICE
from ebmjax.runtime.trainer import RunSpec
from ebmjax.tools.bench.cases import TRAINING, Training, make_evaluation
from ebmjax.tools.bench.measuring import OURS, Options, Row, spread
from ebmjax.tools.bench.tables import median, number, span

TITLE = "Evaluation of the whole test set"
CASES = TRAINING
_ENOUGH = 60.0  # seconds after which no further round begins


def measure(case: Training, options: Options) -> Row:
  """Returns the seconds of an evaluation at the end of training, and its rate."""
  spec = make_evaluation(case)
  evaluate = make(spec)
  evaluate([0])  # compiles
  images = int((spec.stream.test_rows[0] >= 0).sum())
  tasks = list(range(spec.stream.labels.shape[1]))
  seconds: list[float] = []
  while len(seconds) < options.rounds and sum(seconds) < _ENOUGH:
    begun = time.perf_counter()
    evaluate(tasks)
    seconds.append(time.perf_counter() - begun)
  return {
    "case": case.name,
    "rounds": len(seconds),
    "images": images,
    "labels": int(spec.stream.classes.shape[2]),
    "seconds": spread(seconds),
    "rate": {OURS: spread([images / s for s in seconds])},
  }


def make(spec: RunSpec) -> Callable[[list[int]], None]:
  """Returns evaluate(tasks), which ends when the counts of all of them are at hand."""
  block = spec.config.eval.batch_size
  run = evaluation.make_evaluate(
    spec.learner, block, scan.Compiler(spec.driver, options=spec.options)
  )
  states = scan.make_init(spec.learner, scan.Compiler(spec.driver))(spec.tables.key)
  num_tasks, num_classes = spec.stream.classes.shape[1:]
  candidates = jnp.ones(num_classes, bool)
  images = ONE_DEVICE.replicate(feeding.whole(spec.test_images))

  def evaluate(tasks: list[int]) -> None:
    counts = {
      task: run(states, spec.tables, images, jnp.int32(task), candidates)
      for task in tasks
    }
    evaluation.collect(counts, num_tasks, set(tasks))

  return evaluate


def cells(row: Row) -> dict[str, str]:
  """Returns a row of the table."""
  return {
    "images": str(row["images"]),
    "labels": str(row["labels"]),
    "seconds": median(row["seconds"]),
    "range": span(row["seconds"], number),
    "images per second": median(row["rate"][OURS]),
  }


TABLES = (cells,)
