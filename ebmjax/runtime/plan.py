"""Plans when a run pauses its training, and for what, from its config alone."""

from typing import Any, NamedTuple


class Milestone(NamedTuple):
  """A pause after `step` steps: to consolidate, evaluate and save."""

  step: int
  task: int  # the task in training, or just finished, 0-based; -1 before the first
  ends_task: bool  # a task ends here (nominally, without boundaries)
  evaluate: bool


def make_plan(config: Any, ends: list[int]) -> list[Milestone]:
  """Returns the milestones in order; `ends` [T] are the steps at which tasks end.

  Step 0 is one if the untrained network's accuracy is needed, for forward transfer.
  Every later milestone is also a checkpoint.
  """
  steps = ends[-1]
  every, saves = config.eval.every, config.checkpoint.every
  extra = set(range(every, steps, every)) if every else set()
  at = sorted(set(ends) | extra | set(range(saves, steps, saves)))
  milestones = [
    Milestone(
      step=step,
      task=sum(end < step for end in ends),
      ends_task=step in ends,
      evaluate=step == steps
      or step in extra
      or (step in ends and config.eval.at_task_ends),
    )
    for step in at
  ]
  before = [Milestone(0, -1, False, True)] if config.eval.at_task_ends else []
  return before + milestones


def evaluated_ends(config: Any, steps: int) -> list[Milestone]:
  """Returns those ends of tasks at which a run of `steps` steps is evaluated."""
  tasks = config.stream.tasks
  ends = [steps * (task + 1) // tasks for task in range(tasks)]  # streams.task_ends
  plan = make_plan(config, ends)
  return [milestone for milestone in plan if milestone.ends_task and milestone.evaluate]


def tasks_to_evaluate(milestone: Milestone, num_tasks: int, stream: Any) -> range:
  """Returns the tasks to evaluate at a milestone, of the configuration's `stream`.

  All of them before training and at the end, and without boundaries, where every class
  is a candidate throughout; and where a task ends before tasks of new classes, which
  are to be told from those seen. Otherwise the tasks so far and the next one, whose
  task-incremental accuracy is the forward transfer.
  """
  aware = stream.setting == "boundary_aware"
  if not aware or milestone.task < 0 or meets_new_classes(milestone, stream):
    return range(num_tasks)
  return range(min(milestone.task + 2, num_tasks))


def meets_new_classes(milestone: Milestone, stream: Any) -> bool:
  """Returns whether a task ends here and those after it have classes of their own."""
  classes_known = stream.setting == "boundary_aware" and stream.scenario == "class"
  return milestone.ends_task and classes_known
