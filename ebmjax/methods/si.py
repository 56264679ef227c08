r"""Synaptic intelligence: weights are held by what their movement did to the loss.

Zenke et al. (2017):

    L = L_task + strength * sum_p Omega_p (theta_p - theta'_p)^2
    W_p <- W_p - g_p (theta_new,p - theta_old,p)            at every step
    Omega_p <- Omega_p + W_p / ((theta_p - theta'_p)^2 + damping),
    theta' <- theta, W <- 0                                 at the end of a task

The movement is the optimiser's own, of the same step as the gradient g. With
`path_gradient` = total, g is that of the whole loss, as in van de Ven's and the
paper's code; task leaves the pull out, as in the original.

Without boundaries it consolidates every `consolidate_every` steps; every single one has
no effect at all, since the anchor then is where the weights are.

State: the optimiser's, and W, Omega and theta', each as params.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from ebmjax.methods import _quadratic
from ebmjax.methods._gradient import Addition, Move, gradient_learner, is_due
from ebmjax.methods._quadratic import Anchored
from ebmjax.types import Batch, Learner, Problem, PyTree, TaskView

PATH_GRADIENTS = ("total", "task")


class _Own(NamedTuple):
  held: Anchored  # Omega and theta'
  path: PyTree  # W


def si(problem: Problem, config: Any) -> Learner:
  """Returns SI, at boundaries or every `config.consolidate_every` steps."""
  every, loss = config.consolidate_every, _quadratic.loss(config.strength)

  def init(params: PyTree, model_state: PyTree) -> _Own:
    del model_state
    return _Own(_quadratic.start(params), jax.tree.map(jnp.zeros_like, params))

  def close(own: _Own, params: PyTree) -> _Own:
    def grow(omega: Array, anchor: Array, path: Array, p: Array) -> Array:
      return omega + path / (jnp.square(p - anchor) + config.damping)

    importance = jax.tree.map(
      grow, own.held.importance, own.held.anchor, own.path, params
    )
    empty = jax.tree.map(jnp.zeros_like, own.path)
    return _Own(Anchored(importance, params), empty)

  def track(own: _Own, move: Move, key: Array, batch: Batch) -> _Own:
    del key
    gradient = move.gradient
    if config.path_gradient == "task":
      held = jax.grad(lambda p: config.strength * _quadratic.pull(own.held, p))
      gradient = jax.tree.map(jnp.subtract, gradient, held(move.before))
    path = jax.tree.map(
      lambda w, g, new, old: w - g * (new - old),
      own.path,
      gradient,
      move.after,
      move.before,
    )
    own = own._replace(path=path)
    if not every:
      return own
    due = is_due(batch.step, every)
    return lax.cond(due, lambda: close(own, move.after), lambda: own)

  def consolidate(
    own: _Own, params: PyTree, model_state: PyTree, key: Array, view: TaskView
  ) -> _Own:
    del model_state, key, view
    return close(own, params)

  return gradient_learner(
    problem, Addition(init, loss, track, None if every else consolidate)
  )
