"""The keys of a stream: those of its kind of tasks, and those of its setting."""

from typing import Any

from ebmjax.config.schema import Key, Range

SCENARIOS = ("class", "domain", "task")

_TASKS = Key(
  "tasks",
  5,
  "number of tasks",
  range=Range(least=1, most=127),  # a stream's table of tasks is int8
)
_SCENARIO = Key(
  "scenario",
  "class",
  "at test time the task is unknown (class, or domain: shared labels) or known (task)",
  choices=SCENARIOS,
)
_BATCH = Key("batch_size", 128, "rows of a batch", range=Range(least=1))
_CLASS_ORDER = Key(
  "class_order",
  "fixed",
  "order in which classes are assigned to tasks; random: one for each seed",
  choices=("fixed", "random"),
)
_CLASS_GROUPS = Key(
  "class_groups", (), "classes of each task, such as ((0, 1), (2, 3, 4)); (): evenly"
)
# Deviation: `released`, as in the authors' code, leaves pixels in place for seed 0
# alone; the paper does not mention it.
_FIRST_PERMUTATION = Key(
  "first_permutation",
  "released",
  "order of the first task's pixels; released: the identity for seed 0 only",
  choices=("released", "identity", "random"),
)
_ITERATIONS = Key("iterations", 2000, "training steps per task", range=Range(least=1))
_EPOCHS = Key("epochs_per_task", 10, "passes over the images of a task", range=Range(1))

# The kinds of tasks, with their keys.
STREAMS: dict[str, tuple[Key, ...]] = {
  "split": (_CLASS_ORDER, _CLASS_GROUPS),
  "permuted": (_FIRST_PERMUTATION,),
}
# What is known of task boundaries, and the keys that say how long training takes.
# joint: no stream, but the images of all tasks from the start.
SETTINGS: dict[str, tuple[Key, ...]] = {
  "boundary_aware": (_ITERATIONS,),
  "boundary_free": (_EPOCHS,),
  "joint": (_ITERATIONS,),
}
NAME = Key(
  "name",
  "split",
  "tasks split the classes, or permute the pixels",
  choices=tuple(STREAMS),
)
SETTING = Key(
  "setting",
  "boundary_aware",
  "what is known about task boundaries",
  choices=tuple(SETTINGS),
)


def stream_keys(name: str, setting: str) -> dict[str, Key]:
  """Returns the keys of config.stream for a kind of tasks and a setting."""
  own = (*STREAMS.get(name, ()), *SETTINGS.get(setting, ()))
  return {key.name: key for key in (NAME, SETTING, _TASKS, _SCENARIO, *own, _BATCH)}


def hides_tasks(stream: Any) -> bool:
  """Returns whether config.stream hides from a learner where tasks begin and end."""
  return bool(stream.setting != "boundary_aware")
