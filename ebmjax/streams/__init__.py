"""Streams: what a learner sees, and when, as tables of one seed built on the host.

A stream is a pure function of (specification, labels of the data set, seed). Nothing
in it depends on images, devices, chunk sizes or the number of seeds.

Twenty images of four classes in two tasks, three batches of two each:

>>> import numpy as np
>>> from ebmjax import streams
>>> from ebmjax.config import default
>>> spec, y = default().stream, np.arange(20) % 4
>>> spec.tasks, spec.iterations, spec.batch_size = 2, 3, 2
>>> stream = streams.build(spec, y, y, seed=0)
>>> stream.rows.shape, stream.horizon.tolist(), streams.task_ends(stream)
((6, 2), [0, 0, 0, 1, 1, 1], [3, 6])
"""

from ebmjax.streams.build import Stream, build, stack, task_ends
from ebmjax.streams.tasks import TaskSet, make_tasks, shown_images

__all__ = [
  "Stream",
  "TaskSet",
  "build",
  "make_tasks",
  "shown_images",
  "stack",
  "task_ends",
]
