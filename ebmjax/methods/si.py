r"""Synaptic intelligence: weights are held by what their movement did to the loss.

Zenke et al. (2017):

    L = L_task + strength * sum_p Omega_p (theta_p - theta'_p)^2
    W_p <- W_p - g_p (theta_new,p - theta_old,p)            at every step
    Omega_p <- Omega_p + W_p / ((theta_p - theta'_p)^2 + damping),
    theta' <- theta, W <- 0                                 at the end of a task

The movement is the optimiser's own, of the same step as the gradient g. With
`path_gradient` = total, g is that of the whole loss, as in van de Ven's and the paper's
code; task leaves out the penalty's gradient, as in the original.

Without boundaries it consolidates every `consolidate_every` steps. A period of 1 has no
effect, since the weights are then always at the anchor.

State: the optimiser's, and W, Omega and theta', each as params.
"""

from typing import Annotated, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from ebmjax.config.schema import NonNegative, Positive, Traced
from ebmjax.methods import _quadratic, studies
from ebmjax.methods._gradient import (
  Boundary,
  Plugin,
  StepRecord,
  gradient_learner,
  is_due,
)
from ebmjax.methods._quadratic import Penalty
from ebmjax.methods.spec import ConsolidateEvery, MethodSpec, setting
from ebmjax.types import Learner, Problem, PyTree


class _Own(NamedTuple):
  penalty: Penalty  # Omega and theta'
  path: PyTree  # W


def si(
  problem: Problem,
  *,
  consolidate_every: ConsolidateEvery = 0,
  strength: Annotated[NonNegative, Traced(), "weight of the quadratic penalty"] = 1.0,
  damping: Annotated[
    Positive, Traced(), "added to the squared change of a weight"
  ] = 0.1,
  path_gradient: Annotated[
    Literal["total", "task"], "gradient of the whole loss, or of the task's loss alone"
  ] = "total",
) -> Learner:
  """Builds SI, at boundaries or every `consolidate_every` steps."""
  every, loss = consolidate_every, _quadratic.penalised_loss(strength)

  def init(params: PyTree, model_state: PyTree) -> _Own:
    del model_state
    return _Own(_quadratic.no_penalty(params), jax.tree.map(jnp.zeros_like, params))

  def finalize(own: _Own, params: PyTree) -> _Own:
    def grow(omega: Array, anchor: Array, path: Array, p: Array) -> Array:
      return omega + path / (jnp.square(p - anchor) + damping)

    importance = jax.tree.map(
      grow, own.penalty.importance, own.penalty.anchor, own.path, params
    )
    empty = jax.tree.map(jnp.zeros_like, own.path)
    return _Own(Penalty(importance, params), empty)

  def track(own: _Own, record: StepRecord) -> _Own:
    gradient = record.gradient
    if path_gradient == "task":
      of_penalty = jax.grad(
        lambda p: strength * _quadratic.quadratic_penalty(own.penalty, p)
      )
      gradient = jax.tree.map(jnp.subtract, gradient, of_penalty(record.before))
    path = jax.tree.map(
      lambda w, g, new, old: w - g * (new - old),
      own.path,
      gradient,
      record.after,
      record.before,
    )
    own = own._replace(path=path)
    if not every:
      return own
    due = is_due(record.batch.step, every)
    return lax.cond(due, lambda: finalize(own, record.after), lambda: own)

  def consolidate(own: _Own, boundary: Boundary) -> _Own:
    return finalize(own, boundary.params)

  return gradient_learner(
    problem, Plugin(init, loss, track, None if every else consolidate)
  )


SI = MethodSpec(
  si,
  title="SI",
  boundaries=True,
  published={
    "boundary_free": studies.TYPES_2022.setting(consolidate_every=100),
    "splitmnist": studies.SCENARIOS_2019.setting("splitmnist", strength=0.5),
    "permmnist": studies.SCENARIOS_2019.setting("permmnist", strength=0.1),
    "cifar10": studies.TYPES_2022.setting(strength=1.0),
    "cifar100": studies.REPLAY_2020.setting("cifar100", strength=1.0),
    "splitmnist/boundary_free": studies.TYPES_2022.setting(strength=10.0),
    "cifar10/boundary_free": studies.TYPES_2022.setting(strength=10.0),
    "cifar100/boundary_free": studies.TYPES_2022.setting(strength=10.0),
    "splitmnist/contrastive": setting("the best on held-out images", strength=100.0),
    "cifar10/contrastive": studies.NOT_PUBLISHED.setting(strength=100.0),
    "hsu": studies.HSU_2018.setting(strength=3000.0, path_gradient="task"),
  },
  cost=1.42,
)
