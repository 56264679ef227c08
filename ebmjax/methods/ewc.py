r"""Elastic weight consolidation: old weights are held by their Fisher information.

EWC (Kirkpatrick et al. 2017), one term a finished task k:

    L = L_task + strength / 2 * sum_k sum_p F_{k,p} (theta_p - theta*_{k,p})^2

Online EWC (Schwarz et al. 2018), one running term, faded by `decay` (gamma):

    L = L_task + strength / 2 * decay * sum_p F_p (theta_p - theta*_p)^2,
    F <- F_task + decay F,  theta* <- theta   at the end of a task

The fading inside the loss beside that of the update is van de Ven's form, from which
the published strengths come. F is the mean over the task's images, by the recipe
`config.fisher`: a strength means nothing without it.

Without boundaries Online EWC consolidates every `consolidate_every` steps, F_task being
the mean over the batches since. Every single step, as the paper words it, has no effect
at all: the anchor is where the weights are whenever the gradient is taken.

State: the optimiser's, and importance and anchor, each as params; exact EWC needs no
more than that for any number of tasks (`_quadratic.merge`). Periodic: a third tree, F
so far.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ebmjax.methods import _quadratic
from ebmjax.methods._gradient import Addition, Move, gradient_learner
from ebmjax.methods._quadratic import Anchored, Held
from ebmjax.methods.importance import fisher_sum, over_task, scaled
from ebmjax.types import Batch, Learner, Problem, PyTree, TaskView


def ewc(problem: Problem, config: Any) -> Learner:
  """Returns EWC with a term for every finished task."""
  return gradient_learner(problem, _addition(problem, config, online=False))


def online_ewc(problem: Problem, config: Any) -> Learner:
  """Returns Online EWC, at boundaries or every `config.consolidate_every` steps."""
  return gradient_learner(problem, _addition(problem, config, online=True))


def _addition(problem: Problem, config: Any, *, online: bool) -> Addition:
  every = config.consolidate_every if online else 0
  loss = _quadratic.loss(config.strength / 2 * (config.decay if online else 1.0))

  def init(params: PyTree, model_state: PyTree) -> Held:
    del model_state
    return _quadratic.begin(params, every)

  def add(held: Anchored, fisher: PyTree, params: PyTree) -> Anchored:
    if not online:
      return _quadratic.merge(held, fisher, params)
    faded = scaled(held.importance, config.decay)
    return Anchored(jax.tree.map(jnp.add, fisher, faded), params)

  def consolidate(
    own: Held, params: PyTree, model_state: PyTree, key: Array, view: TaskView
  ) -> Held:
    def part(x: Array, y: Array, valid: Array) -> PyTree:
      return fisher_sum(
        problem.network, params, model_state, x, y, valid, view.seen, config.fisher
      )

    total, images, blocks = over_task(part, view, key, config.fisher_samples)
    terms = blocks if config.fisher == "batch" else images
    return own._replace(held=add(own.held, scaled(total, 1 / terms), params))

  def track(own: Held, move: Move, key: Array, batch: Batch) -> Held:
    del key
    everyone = jnp.ones_like(batch.y, bool)
    found = fisher_sum(
      problem.network,
      move.after,
      move.model_state,
      batch.x,
      batch.y,
      everyone,
      batch.seen,
      config.fisher,
    )
    terms = 1 if config.fisher == "batch" else batch.y.shape[0]

    def close(held: Anchored, fisher: PyTree) -> Anchored:
      return add(held, fisher, move.after)

    share = scaled(found, 1 / (terms * every))
    return _quadratic.gather(own, share, batch.step, every, close)

  if every:
    return Addition(init, loss, track)
  return Addition(init, loss, consolidate=consolidate)
