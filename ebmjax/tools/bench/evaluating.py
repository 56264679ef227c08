"""Times an evaluation of the whole test set, all tasks and all labels."""

import time
from collections.abc import Callable

import jax.numpy as jnp

from ebmjax.runtime import evaluation, scan
from ebmjax.runtime.trainer import Setup
from ebmjax.tools.bench.cases import Training, make_evaluation
from ebmjax.tools.bench.measuring import Row, spread

_ENOUGH = 60.0  # seconds after which no further round begins


def measure(case: Training, rounds: int) -> Row:
  """Returns the seconds of an evaluation at the end of training, and its rate."""
  setup = make_evaluation(case)
  evaluate = make(setup)
  evaluate([0])  # compiles
  images = int((setup.stream.test_rows[0] >= 0).sum())
  tasks = list(range(setup.stream.labels.shape[1]))
  seconds: list[float] = []
  while len(seconds) < rounds and sum(seconds) < _ENOUGH:
    begun = time.perf_counter()
    evaluate(tasks)
    seconds.append(time.perf_counter() - begun)
  return {
    "case": case.name,
    "rounds": len(seconds),
    "images": images,
    "labels": int(setup.stream.classes.shape[2]),
    "seconds": spread(seconds),
    "rate": {"ebmjax": spread([images / s for s in seconds])},
  }


def make(setup: Setup) -> Callable[[list[int]], None]:
  """Returns evaluate(tasks), which ends when the counts of all of them are at hand."""
  block = setup.config.eval.batch_size
  run = evaluation.make_evaluate(
    setup.learner, setup.driver, block, options=setup.options
  )
  states = scan.make_init(setup.learner, setup.driver)(setup.tables.key)
  num_tasks, num_classes = setup.stream.classes.shape[1:]
  candidates = jnp.ones(num_classes, bool)

  def evaluate(tasks: list[int]) -> None:
    counts = {
      task: run(states, setup.tables, setup.test_images, jnp.int32(task), candidates)
      for task in tasks
    }
    evaluation.collect(counts, num_tasks, set(tasks))

  return evaluate
