"""Holds weights near where they were when a task ended."""

from typing import Annotated

import jax
import jax.numpy as jnp

from ebmjax.config.schema import Fraction, NonNegative
from ebmjax.methods import MethodSpec, Plugin, gradient_learner


def anchor(
  problem,
  *,
  strength: Annotated[NonNegative, "weight of the squared distance"] = 0.1,
  follow: Annotated[Fraction, "of the way that the anchor goes at a boundary"] = 1.0,
  biases: Annotated[bool, "whether vectors are held, too"] = True,
):
  def init(params, model_state):
    return jnp.zeros(()), params  # no weight during the first task

  def loss(own, row_losses, params, model_state, key, batch):
    losses, model_state = row_losses(params, model_state, key, batch)
    pairs = zip(*map(jax.tree.leaves, (params, own[1])), strict=True)
    away = sum(jnp.sum((p - a) ** 2) for p, a in pairs if biases or p.ndim > 1)
    return losses.mean() + own[0] * away, model_state

  def consolidate(own, params, model_state, key, view):
    moved = jax.tree.map(lambda a, p: a + follow * (p - a), own[1], params)
    return jnp.full((), strength), moved

  return gradient_learner(problem, Plugin(init, loss, consolidate=consolidate))


SPEC = MethodSpec(anchor, title="anchor", boundaries=True)
