"""Two tasks of two classes each, of random rows of six pixels."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ebmjax.types import Batch, TaskView

PIXELS, CLASSES, SIZE = 6, 4, 8


def batch_of(task: int, dtype: Any = jnp.uint8) -> Batch:
  """Returns a batch of the task."""
  rng = np.random.default_rng(task)
  return Batch(
    x=jnp.asarray(rng.integers(0, 256, (SIZE, PIXELS)), dtype),
    y=jnp.asarray(2 * task + rng.integers(0, 2, SIZE), jnp.int32),
    task=jnp.full(SIZE, task, jnp.int32),
    seen=jnp.arange(CLASSES) < 2 * task + 2,
    negatives=jnp.arange(CLASSES) // 2 == task,
    step=jnp.int32(0),
  )


def end_of(task: int) -> TaskView:
  """Returns the end of the task, whose images are those of its batch."""
  batch, rows = batch_of(task), jnp.arange(SIZE)
  return TaskView(
    batch.x, batch.y, jnp.zeros(0, int), rows, rows >= 0, jnp.int32(task), batch.seen
  )


def after_first_task(learner: Any) -> Any:
  """Returns the learner's state when it has seen one batch and the task has ended."""
  state = jax.jit(learner.init)(jax.random.key(0))
  state, _ = jax.jit(learner.step)(state, jax.random.key(1), batch_of(0))
  return learner.consolidate(state, jax.random.key(2), end_of(0))


def in_third_task(learner: Any) -> tuple[Any, Batch]:
  """Returns a state that has moved on since the boundary, and a third task's batch.

  What is copied at a boundary then differs from what is trained, and 1/t from 1 - 1/t.
  """
  state = after_first_task(learner)
  state, _ = jax.jit(learner.step)(state, jax.random.key(3), batch_of(1))
  return state, batch_of(1)._replace(task=jnp.full(SIZE, 2, jnp.int32))
