"""What the methods that follow a gradient share.

Such a method is plain gradient descent plus a `Plugin`: its own state, its part of the
loss, what it records of every step, and what it does when a task ends.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from ebmjax.types import Batch, Learner, Network, Problem, PyTree, TaskView

_TRACK = 3  # a use of a step's key apart; 0 and 1 are what splitting it gives
# (params, model_state, key, batch) -> losses [B], model_state
RowLosses = Callable[[PyTree, PyTree, Array, Batch], tuple[Array, PyTree]]


class GradientState(NamedTuple):
  """Parameters, the network's other variables, the optimiser's moments, the rest."""

  params: PyTree
  model_state: PyTree
  opt_state: optax.OptState
  own: PyTree = ()  # the method's own


class StepRecord(NamedTuple):
  """What one step did, for a method that keeps track."""

  before: PyTree  # parameters
  after: PyTree  # parameters
  model_state: PyTree  # after the step
  gradient: PyTree  # of the whole loss, at `before`
  found: PyTree = ()  # what else the loss returned


def _init_nothing(params: PyTree, model_state: PyTree) -> PyTree:
  del params, model_state
  return ()


def _mean_loss(
  own: PyTree,
  row_losses: RowLosses,
  params: PyTree,
  model_state: PyTree,
  key: Array,
  batch: Batch,
) -> tuple[Array, PyTree]:
  del own
  losses, model_state = row_losses(params, model_state, key, batch)
  return jnp.mean(losses), model_state


def _track_nothing(own: PyTree, record: StepRecord, key: Array, batch: Batch) -> PyTree:
  del record, key, batch
  return own


class Plugin(NamedTuple):
  """What a method adds to plain descent; `own` is its state, a tree of arrays."""

  init: Callable[[PyTree, PyTree], PyTree] = _init_nothing  # (params, model_state)
  # (own, row_losses, params, model_state, key, batch) -> loss [], model_state
  # and, where `track` is to have it, what else was computed on the way
  loss: Callable[..., tuple[Array, PyTree] | tuple[Array, PyTree, PyTree]] = _mean_loss
  # (own, record, key, batch) -> own, after every step
  track: Callable[[PyTree, StepRecord, Array, Batch], PyTree] = _track_nothing
  # (own, params, model_state, key, view) -> own, when a task ends; None: nothing to do
  consolidate: Callable[[PyTree, PyTree, PyTree, Array, TaskView], PyTree] | None = None


def gradient_learner(problem: Problem, plugin: Plugin | None = None) -> Learner:
  """Returns the learner that descends the objective, with what a method adds.

  The optimiser keeps its state across task boundaries, as in the released code.
  """
  network, tx = problem.network, problem.tx
  added, row_losses = plugin or Plugin(), row_losses_of(problem)

  def init(key: Array) -> GradientState:
    params, model_state = network.init(key)
    own = added.init(params, model_state)
    return GradientState(params, model_state, tx.init(params), own)

  def step(
    state: GradientState, key: Array, batch: Batch
  ) -> tuple[GradientState, dict[str, Array]]:
    def loss(params: PyTree) -> tuple[Array, tuple[PyTree, ...]]:
      value, *rest = added.loss(
        state.own, row_losses, params, state.model_state, key, batch
      )
      return value, tuple(rest)

    (value, (model_state, *found)), gradient = jax.value_and_grad(loss, has_aux=True)(
      state.params
    )
    updates, opt_state = tx.update(gradient, state.opt_state, state.params)
    params: Any = optax.apply_updates(state.params, updates)
    record = StepRecord(state.params, params, model_state, gradient, *found)
    own = added.track(state.own, record, jax.random.fold_in(key, _TRACK), batch)
    return GradientState(params, model_state, opt_state, own), {"loss": value}

  def energies(state: GradientState, x: Array) -> Array:
    return all_energies(network, state.params, state.model_state, x)

  consolidate = added.consolidate and partial(_consolidate, added.consolidate)
  return Learner(init, step, consolidate, energies)


def _consolidate(
  change: Callable[..., PyTree], state: GradientState, key: Array, view: TaskView
) -> GradientState:
  own = change(state.own, state.params, state.model_state, key, view)
  return state._replace(own=own)


def row_losses_of(problem: Problem, train: bool = True) -> RowLosses:
  """Returns the function of the objective's value for each row of a batch."""

  def row_losses(
    params: PyTree, model_state: PyTree, key: Array, batch: Batch
  ) -> tuple[Array, PyTree]:
    def energies(labels: Array) -> tuple[Array, PyTree]:
      return problem.network.energies(params, model_state, batch.x, labels, train=train)

    return problem.objective(energies, key, batch)

  return row_losses


def all_energies(
  network: Network, params: PyTree, model_state: PyTree, x: Array
) -> Array:
  """Returns energies [B, C] of all labels, as at test time."""
  labels = jnp.arange(network.num_classes)
  return network.energies(params, model_state, x, labels)[0]


def is_due(step: Array, every: int) -> Array:
  """Returns [] bool: whether `step`, counted from 0, ends a period of `every` steps.

  The step is shared by all seeds, so a branch on it stays a branch under vmap.
  """
  return (step + 1) % every == 0
