"""When a run pauses its training, and for what: a pure function of its config."""

from typing import Any, NamedTuple


class Stop(NamedTuple):
  """A pause after `step` steps."""

  step: int
  task: int  # the task in training, or just finished, 0-based; -1 before the first
  ends_task: bool  # a task ends here (nominally, without boundaries)
  evaluate: bool


def make_plan(config: Any, ends: list[int]) -> list[Stop]:
  """Returns the stops in order; `ends` [T] are the steps at which tasks end.

  Step 0 is a stop where the untrained network's accuracy is wanted, for the forward
  transfer. Every stop after it is also a checkpoint.
  """
  steps = ends[-1]
  every, saves = config.eval.every, config.checkpoint.every
  extra = set(range(every, steps, every)) if every else set()
  at = sorted(set(ends) | extra | set(range(saves, steps, saves)))
  stops = [
    Stop(
      step=step,
      task=sum(end < step for end in ends),
      ends_task=step in ends,
      evaluate=step == steps
      or step in extra
      or (step in ends and config.eval.at_task_ends),
    )
    for step in at
  ]
  before = [Stop(0, -1, False, True)] if config.eval.at_task_ends else []
  return before + stops


def evaluated_ends(config: Any, steps: int) -> list[Stop]:
  """Returns those ends of tasks at which a run of `steps` steps is evaluated."""
  tasks = config.stream.tasks
  ends = [steps * (task + 1) // tasks for task in range(tasks)]  # streams.task_ends
  return [stop for stop in make_plan(config, ends) if stop.ends_task and stop.evaluate]


def tasks_to_evaluate(stop: Stop, num_tasks: int, hides_task: bool) -> range:
  """Returns the tasks worth asking at a stop.

  All of them before training and at the end, and without boundaries, where every class
  is a candidate throughout. Otherwise the tasks so far and the one to come, whose
  task-incremental accuracy is the forward transfer.
  """
  if hides_task or stop.task < 0:
    return range(num_tasks)
  return range(min(stop.task + 2, num_tasks))
