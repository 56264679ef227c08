r"""Experience replay: a few stored images of old tasks are trained on beside new ones.

Li et al. (2022, the rows with a replay buffer), after Chaudhry et al. (2019). From the
second task on, a step takes its batch and as many distinct images from the buffer:

    L = a * mean over the batch + b * mean over the replayed rows

With `replay_weights` = by_task, a = 1 / t and b = 1 - 1 / t, t counting tasks from 1:
the released code's for the classifier and on CIFAR-100. mean: one mean over all rows,
the released code's for the energy network on MNIST and CIFAR-10. sum: a = b = 1, the
paper's equation. Deviation: the defaults are the released code's two. Both halves go
through the network together: negatives from a task's classes are drawn from all classes
seen so far, negatives from the batch from the labels of both halves. While nothing is
stored, the method is plain training, to the bit.

At a boundary the `budget` is reallocated (`buffers.add_task`), by `quota`: equally over
tasks, as in the released code, or over classes, as in the paper's text (Deviation: the
default is over tasks). Where batches are augmented, an image is stored after one random
change, as in the released code: otherwise padding would reveal which images are new.

Without boundaries (`consolidate_every` > 0, of any size), every batch is offered to a
reservoir, which holds a uniform sample of all rows so far, as they were shown: where
batches are augmented, after their one random change. There t is not known, and by_task
means a = b = 1/2.

State: the optimiser's, and the buffer: x [budget, ...] as batches hold it, labels,
owner and rank [budget] int32, and their number; the reservoir has no owner or rank.
"""

from typing import Annotated, Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from ebmjax.config.schema import Count, Number, Rule
from ebmjax.methods import buffers, studies
from ebmjax.methods._gradient import (
  Boundary,
  Plugin,
  StepInputs,
  StepRecord,
  gradient_learner,
)
from ebmjax.methods._replay import ReplayWeights, joint, row_weights
from ebmjax.methods._rules import budget_rules
from ebmjax.methods.buffers import Buffer, Quota, Reservoir
from ebmjax.methods.spec import MethodSpec, setting
from ebmjax.types import Learner, Problem, PyTree

_DRAW_TAG = 2  # fold_in tag of the key that draws from the buffer


def er(
  problem: Problem,
  *,
  consolidate_every: Annotated[
    Number, "0: store at task boundaries; 1 or more: a reservoir of all batches"
  ] = 0,
  budget: Annotated[Count, "total number of stored images"] = 1000,
  quota: Annotated[Quota, "what the budget is divided equally among"] = "task",
  replay_weights: Annotated[
    ReplayWeights, "weights of new and old rows: 1/t and 1-1/t, one mean, or a sum"
  ] = "by_task",
) -> Learner:
  """Builds experience replay, with boundaries or, by a reservoir, without."""
  free = consolidate_every > 0
  plugin = _plugin(problem, budget, replay_weights, no_boundaries=free)
  if free:
    return gradient_learner(problem, plugin._replace(track=_offer_batch))

  def consolidate(own: Buffer, boundary: Boundary) -> Buffer:
    key, view = boundary.key, boundary.view
    return buffers.add_task(own, key, view, quota, problem.augment)

  return gradient_learner(problem, plugin._replace(consolidate=consolidate))


def _plugin(
  problem: Problem, budget: int, replay_weights: str, *, no_boundaries: bool
) -> Plugin:
  def init(params: PyTree, model_state: PyTree) -> Buffer | Reservoir:
    del params, model_state
    if no_boundaries:
      return buffers.empty_reservoir(problem.row, budget)
    return buffers.empty_buffer(problem.row, budget)

  def loss(
    own: Buffer | Reservoir, params: PyTree, step: StepInputs
  ) -> tuple[Array, PyTree]:
    batch = step.batch

    def plain() -> tuple[Array, PyTree]:
      losses, model_state = step.row_losses(params)
      return jnp.mean(losses), model_state

    def with_replay() -> tuple[Array, PyTree]:
      size = batch.y.shape[0]
      drawn = buffers.draw(jax.random.fold_in(step.key, _DRAW_TAG), own, size)
      losses, model_state = step.row_losses(params, joint(batch, drawn))
      number = None if no_boundaries else batch.task[0] + 1
      weights = row_weights(replay_weights, drawn.valid, number)
      return jnp.sum(weights * losses), model_state

    # A branch, not a weight of 0: in the first task, normalising layers see the same
    # rows as in plain training.
    return lax.cond(own.taken > 0, with_replay, plain)

  return Plugin(init, loss)


def _offer_batch(own: Reservoir, record: StepRecord) -> Reservoir:
  return buffers.offer(own, record.key, record.batch.x, record.batch.y)


def _constraints(config: Any) -> list[Rule]:
  if config.method.consolidate_every:  # a reservoir, which has no quotas
    return []
  by_class = config.method.quota == "class"
  remedy = "use 'class', or config.method.quota='task'"
  return budget_rules(config, by_class=by_class, remedy=remedy)


_RELEASED = "the released code"

ER = MethodSpec(
  er,
  title="ER",
  boundaries=True,
  mixes_tasks=True,
  joins_batch=True,
  constraints=_constraints,
  published={
    "boundary_free": setting(_RELEASED, consolidate_every=1),
    "splitmnist": studies.PAPER.setting(budget=1000),
    "permmnist": studies.PAPER.setting(budget=1000),
    "cifar10": studies.PAPER.setting(budget=1000),
    "cifar100": studies.PAPER.setting(budget=2000),
    "splitmnist/energy": setting(_RELEASED, replay_weights="mean"),
    "permmnist/energy": setting(_RELEASED, replay_weights="mean"),
    "cifar10/energy": setting(_RELEASED, replay_weights="mean"),
  },
  cost=1.8,
)
