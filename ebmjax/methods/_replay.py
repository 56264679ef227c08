"""What methods that train on old rows beside new ones share."""

from typing import Literal

import jax.numpy as jnp
from jax import Array

from ebmjax.methods._gradient import Plugin, StepInputs, gradient_learner
from ebmjax.methods.buffers import Drawn
from ebmjax.types import Batch, Learner, Problem, PyTree

ReplayWeights = Literal["by_task", "mean", "sum"]


def weighted_learner(problem: Problem) -> Learner:
  """Returns descent on a weighted sum of the rows' losses.

  The state's `own` must hold the weights [B] when it takes a step.
  """

  def loss(weights: Array, params: PyTree, step: StepInputs) -> tuple[Array, PyTree]:
    losses, model_state = step.row_losses(params)
    return jnp.sum(weights * losses), model_state

  return gradient_learner(problem, Plugin(loss=loss))


def replayed(batch: Batch, drawn: Drawn) -> Batch:
  """Returns the batch of the drawn rows, as many as the current ones.

  Where fewer were stored, current rows fill the places, since statistics and negatives
  of the batch look at all of its rows; their weight is 0.
  """
  valid = drawn.valid.reshape(-1, *[1] * (batch.x.ndim - 1))
  y = jnp.where(drawn.valid, drawn.y, batch.y)
  # Without boundaries the stored rows may be ahead of the batch's classes.
  seen = batch.seen | (jnp.bincount(y, length=batch.seen.shape[0]) > 0)
  return Batch(
    x=jnp.where(valid, drawn.x, batch.x),
    y=y,
    task=jnp.full_like(batch.task, -1),
    seen=seen,
    negatives=seen,
    step=batch.step,
  )


def joint(batch: Batch, drawn: Drawn) -> Batch:
  """Returns the batch of 2 B rows: the current ones, then the drawn."""
  old = replayed(batch, drawn)
  rows = ((batch.x, old.x), (batch.y, old.y), (batch.task, old.task))
  x, y, task = (jnp.concatenate(pair) for pair in rows)
  return old._replace(x=x, y=y, task=task)


def shares(valid: Array) -> Array:
  """Returns the weights [N] of a mean over the valid rows, all 0 if there is none."""
  return valid / jnp.maximum(jnp.sum(valid), 1)


def row_weights(mode: str, valid: Array, number: Array | None) -> Array:
  """Returns weights [2 B] of the joint batch's losses; valid [B] of the drawn rows.

  `number` is the task's, counted from 1, or None where it is hidden.
  """
  size, stored = valid.shape[0], jnp.sum(valid).astype(jnp.float32)
  if mode == "mean":
    current, old = size / (size + stored), stored / (size + stored)
  elif mode == "sum":
    current = old = jnp.float32(1)
  else:
    current = jnp.float32(0.5) if number is None else 1 / number
    old = 1 - current
  rest = valid * (old / jnp.maximum(stored, 1))
  return jnp.concatenate([jnp.full(size, current / size), rest])
