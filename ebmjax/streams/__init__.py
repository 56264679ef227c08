"""Streams: what a learner is shown, and when, as host-built tables of one seed.

A stream is a pure function of (specification, labels of the data set, seed). Nothing
in it depends on images, devices, chunk sizes or the number of seeds.
"""

from ebmjax.streams.build import Stream, build, stack, task_ends
from ebmjax.streams.schedules import (
  boundary_aware_schedule,
  boundary_free_schedule,
  joint_schedule,
  task_weights,
)
from ebmjax.streams.tasks import TaskSet, make_tasks, shown_images

__all__ = [
  "Stream",
  "TaskSet",
  "boundary_aware_schedule",
  "boundary_free_schedule",
  "build",
  "joint_schedule",
  "make_tasks",
  "shown_images",
  "stack",
  "task_ends",
  "task_weights",
]

STREAMS = ("split", "permuted")
# joint: no stream at all, every task's images at once from the start.
SETTINGS = ("boundary_aware", "boundary_free", "joint")
SCENARIOS = ("class", "domain", "task")
CLASS_ORDERS = ("fixed", "random")
FIRST_PERMUTATIONS = ("released", "identity", "random")
