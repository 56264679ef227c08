"""Keeps weights close to where they were when a task ended."""

from typing import Annotated

import jax
import jax.numpy as jnp

from ebmjax.config.schema import Fraction, NonNegative
from ebmjax.methods import MethodSpec, Plugin, gradient_learner


def anchor(
  problem,
  *,
  strength: Annotated[NonNegative, "weight of the squared distance"] = 0.1,
  follow: Annotated[
    Fraction, "how far the anchor moves to the weights at a boundary"
  ] = 1.0,
  biases: Annotated[bool, "anchor biases as well"] = True,
):
  def init(params, model_state):
    return jnp.zeros(()), params  # no weight during the first task

  def loss(own, params, step):
    losses, model_state = step.row_losses(params)
    pairs = zip(*map(jax.tree.leaves, (params, own[1])), strict=True)
    away = sum(jnp.sum((p - a) ** 2) for p, a in pairs if biases or p.ndim > 1)
    return losses.mean() + own[0] * away, model_state

  def consolidate(own, boundary):
    moved = jax.tree.map(lambda a, p: a + follow * (p - a), own[1], boundary.params)
    return jnp.full((), strength), moved

  return gradient_learner(problem, Plugin(init, loss, consolidate=consolidate))


SPEC = MethodSpec(anchor, title="anchor", boundaries=True)
