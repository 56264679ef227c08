"""Two tasks of two separable classes, small enough to compile and learn in seconds."""

import functools

import jax.numpy as jnp
import numpy as np

from ebmjax.types import Batch, TaskView

PIXELS, CLASSES, SIZE = 12, 4, 16
NUM_TASKS = 2


@functools.cache  # the same for every method
def batch_at(step: int, labels: tuple[int, ...] = (0, 1)) -> Batch:
  """Returns a batch of two separable classes, a function of the step alone."""
  rng = np.random.default_rng(step)
  y = rng.choice(labels, SIZE)
  x = rng.integers(0, 90, (SIZE, PIXELS))
  x[np.arange(SIZE), y] = 255
  mask = jnp.arange(CLASSES) < 2
  return Batch(
    x=jnp.asarray(x, jnp.uint8),
    y=jnp.asarray(y, jnp.int32),
    task=jnp.zeros(SIZE, jnp.int32),
    seen=mask,
    negatives=mask,
    step=jnp.int32(step),
  )


def later_batch(step: int, task: int) -> Batch:
  """Returns a batch of the same labels in a later task: all classes have been seen."""
  number, everything = jnp.full(SIZE, task, jnp.int32), jnp.ones(CLASSES, bool)
  return batch_at(step)._replace(task=number, seen=everything)


@functools.cache
def view_of(task: int) -> TaskView:
  """Returns a finished task of 40 images, two of its rows padding."""
  rng = np.random.default_rng(100 + task)
  y = rng.choice((2 * task, 2 * task + 1), 40)
  x = rng.integers(0, 90, (40, PIXELS))
  x[np.arange(40), y] = 255
  return TaskView(
    x=jnp.asarray(x, jnp.uint8),
    y=jnp.asarray(y, jnp.int32),
    permutation=jnp.zeros(0, jnp.int32),
    rows=jnp.where(jnp.arange(40) < 38, jnp.arange(40), 0),
    valid=jnp.arange(40) < 38,
    task=jnp.int32(task),
    seen=jnp.arange(CLASSES) < 2 * task + 2,
  )
