"""Quadratic penalties: each weight is held near an anchor by its importance."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from ebmjax.methods._gradient import (
  Boundary,
  Plugin,
  StepInputs,
  StepRecord,
  is_due,
)
from ebmjax.methods.importance import Block, over_task, scaled
from ebmjax.types import PyTree


class Penalty(NamedTuple):
  """sum_p importance_p (theta_p - anchor_p)^2; both are trees as params."""

  importance: PyTree
  anchor: PyTree


class PenaltyState(NamedTuple):
  """What a plugin with a penalty keeps."""

  penalty: Penalty
  pending: PyTree  # importance accumulated since the last period; () at boundaries


# (params, model_state, block) -> importance, a tree as params
Measure = Callable[[PyTree, PyTree, Block], PyTree]
# (penalty, importance, params) -> penalty that includes a finished task
Update = Callable[[Penalty, PyTree, PyTree], Penalty]


def penalty_plugin(
  measure: Measure,
  update: Update,
  *,
  factor: float,
  per_row: bool,
  every: int,
  samples: int = 0,
) -> Plugin:
  """Builds the plugin that adds `factor` times the penalty to the task's loss.

  `measure` sums an importance over rows (`per_row`), or computes one for a whole block.
  The mean over a finished task, or over each period of `every` steps, is passed to
  `update`. `samples` images of a task are measured; 0: all.
  """

  def init(params: PyTree, model_state: PyTree) -> PenaltyState:
    del model_state
    pending = jax.tree.map(jnp.zeros_like, params) if every else ()
    return PenaltyState(no_penalty(params), pending)

  def consolidate(own: PenaltyState, boundary: Boundary) -> PenaltyState:
    params, model_state, key, view = boundary
    part = partial(measure, params, model_state)
    total, images, blocks = over_task(part, view, key, samples)
    mean = scaled(total, 1 / (images if per_row else blocks))
    return own._replace(penalty=update(own.penalty, mean, params))

  def track(own: PenaltyState, record: StepRecord) -> PenaltyState:
    batch = record.batch
    block = Block(batch.x, batch.y, jnp.ones_like(batch.y, bool), batch.seen)
    found = measure(record.after, record.model_state, block)
    terms = batch.y.shape[0] if per_row else 1
    share = scaled(found, 1 / (terms * every))
    pending = jax.tree.map(jnp.add, own.pending, share)

    def finalize() -> PenaltyState:
      empty = jax.tree.map(jnp.zeros_like, pending)
      return PenaltyState(update(own.penalty, pending, record.after), empty)

    due = is_due(batch.step, every)
    return lax.cond(due, finalize, lambda: own._replace(pending=pending))

  loss = penalised_loss(factor)
  if every:
    return Plugin(init, loss, track)
  return Plugin(init, loss, consolidate=consolidate)


def no_penalty(params: PyTree) -> Penalty:
  """Returns importance 0 everywhere."""
  return Penalty(jax.tree.map(jnp.zeros_like, params), params)


def quadratic_penalty(penalty: Penalty, params: PyTree) -> Array:
  """Returns []: sum_p importance_p (theta_p - anchor_p)^2."""
  parts = jax.tree.map(
    lambda importance, anchor, p: jnp.sum(importance * jnp.square(p - anchor)),
    penalty.importance,
    penalty.anchor,
    params,
  )
  return sum(jax.tree.leaves(parts), start=jnp.zeros(()))


def penalised_loss(factor: float) -> Callable[..., tuple[Array, PyTree]]:
  """Returns the loss of a `Plugin` whose state has a field `penalty`.

  The penalty is added to the task's loss, `factor` times.
  """

  def loss(own: Any, params: PyTree, step: StepInputs) -> tuple[Array, PyTree]:
    losses, model_state = step.row_losses(params)
    added = factor * quadratic_penalty(own.penalty, params)
    return jnp.mean(losses) + added, model_state

  return loss


def merge(penalty: Penalty, importance: PyTree, params: PyTree) -> Penalty:
  """Returns the one penalty that equals two: `penalty` and one anchored at `params`.

  sum_k F_k (theta - theta_k)^2 = A (theta - mu)^2 + const, with A' = A + F and
  mu' = (A mu + F theta) / A'. Nothing grows with the number of tasks, and nothing
  cancels at large strengths, as the expanded squares would.
  """

  def centre(a: Array, mu: Array, f: Array, theta: Array) -> Array:
    both = a + f
    # As a step from mu: exact where one of the two weights is 0.
    return mu + jnp.where(both > 0, f / jnp.where(both > 0, both, 1), 1) * (theta - mu)

  total = jax.tree.map(jnp.add, penalty.importance, importance)
  anchor = jax.tree.map(centre, penalty.importance, penalty.anchor, importance, params)
  return Penalty(total, anchor)
