"""A synthetic history whose numbers follow from a seed, in any size."""

import numpy as np

from ebmjax.report import History
from ebmjax.types import Evaluation


def make_history(
  tasks: int = 3,
  classes: int = 6,
  runs: int = 2,
  per_task: int = 2,
  names: tuple[str, ...] | None = None,
) -> History:
  """Returns an untrained evaluation, then `per_task` evaluations of every task.

  Learners forget: a task's accuracy falls with each task that follows it.
  """
  rng = np.random.default_rng(0)
  count = 1 + tasks * per_task
  position = np.arange(count)
  finished = position // per_task
  at_end = (position % per_task == 0) & (position > 0)
  current = np.minimum(-(-position // per_task), tasks)  # tasks begun
  accuracy = np.full((count, runs, tasks), np.nan)
  masked = np.full((count, runs, tasks), np.nan)
  confusion = np.zeros((count, runs, classes, classes), np.int32)
  width = classes // tasks if classes >= tasks else classes
  for e in range(count):
    for task in range(tasks):
      base = 0.98 * 0.8 ** max(current[e] - task - 1, 0)
      if task < current[e]:
        accuracy[e, :, task] = base * (1 - 0.08 * rng.random(runs))
      if task <= current[e] or e == 0:
        masked[e, :, task] = 0.5 + 0.1 * rng.random(runs) + 0.3 * (task < current[e])
    seen = max(current[e], 1) * width
    late = rng.integers(0, 40, (runs, seen, seen)) * (np.arange(seen) + 1) // seen
    confusion[e, :, :seen, :seen] = late + 60 * np.eye(seen, dtype=int)
  energies = 0.4 + 0.4 * rng.random((count, runs, classes, classes))
  energies *= 1 - 0.9 * np.eye(classes)
  rejects = at_end & (finished < tasks)
  ranking = np.where(rejects[:, None], 0.2 + 0.6 * rng.random((5, count, runs)), np.nan)
  ranking[4, 1:] = 0.3 * rng.random((count - 1, runs))  # calibration, always defined
  evaluations = Evaluation(
    accuracy, masked, confusion, energies.astype(np.float32), *ranking
  )
  named = names or tuple(str(c) for c in range(classes))
  steps = position * (1000 // per_task)
  return History(steps, finished, at_end, evaluations, named, tuple(range(runs)))


def make_config(
  network: str = "ebm",
  method: str = "finetune",
  objective: str = "contrastive",
  stream: str = "split",
  data: str = "mnist",
  tasks: int | None = None,
  setting: str = "boundary_aware",
  scenario: str = "class",
) -> dict:
  """Returns the part of a run's config that the report reads."""
  usual = 10 if stream == "permuted" else 5
  return {
    "network": {"name": network},
    "method": {"name": method},
    "objective": objective,
    "data": {"name": data},
    "stream": {
      "name": stream,
      "setting": setting,
      "scenario": scenario,
      "tasks": usual if tasks is None else tasks,
    },
  }
