"""What gradient-based methods share.

Such a method is plain gradient descent plus a `Plugin`: state of its own, a loss, what
it records after every step, and what it does when a task ends.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from ebmjax.types import Batch, Learner, Network, Problem, PyTree, TaskView

_TRACK_TAG = (
  3  # fold_in tag of the key of `track`; 0 and 1 may be keys that a split gives
)


class GradientState(NamedTuple):
  """The network's variables, the optimiser's state and the method's own."""

  params: PyTree
  model_state: PyTree  # the network's other variables
  opt_state: optax.OptState
  own: PyTree = ()  # the method's own


class StepInputs(NamedTuple):
  """What the loss of a step is computed from, besides the parameters."""

  problem: Problem
  model_state: PyTree
  key: Array
  batch: Batch

  def row_losses(
    self, params: PyTree, batch: Batch | None = None
  ) -> tuple[Array, PyTree]:
    """Returns the objective's losses [B] of the batch, or of another one.

    The second value is the network's model state after it.
    """
    batch = self.batch if batch is None else batch
    return row_losses(self.problem, params, self.model_state, self.key, batch)


class StepRecord(NamedTuple):
  """What one step did."""

  before: PyTree  # parameters
  after: PyTree  # parameters
  model_state: PyTree  # after the step
  gradient: PyTree  # of the whole loss, at `before`
  key: Array  # independent of the one that the loss had
  batch: Batch
  aux: PyTree = ()  # the third value of the loss, if it returns one


class Boundary(NamedTuple):
  """What a method is given when a task ends."""

  params: PyTree
  model_state: PyTree
  key: Array
  view: TaskView  # of the finished task


def _init_nothing(params: PyTree, model_state: PyTree) -> PyTree:
  del params, model_state
  return ()


def _mean_loss(own: PyTree, params: PyTree, step: StepInputs) -> tuple[Array, PyTree]:
  del own
  losses, model_state = step.row_losses(params)
  return jnp.mean(losses), model_state


class Plugin(NamedTuple):
  """What a method adds to gradient descent; `own` is its state, a tree of arrays."""

  init: Callable[[PyTree, PyTree], PyTree] = _init_nothing  # (params, model_state)
  # (own, params, step inputs) -> loss [], model_state, and optionally a third value
  # for `track`
  loss: Callable[[PyTree, PyTree, StepInputs], tuple[Any, ...]] = _mean_loss
  # (own, record) -> own, after every step
  track: Callable[[PyTree, StepRecord], PyTree] | None = None
  # (own, boundary) -> own, when a task ends
  consolidate: Callable[[PyTree, Boundary], PyTree] | None = None


def gradient_learner(problem: Problem, plugin: Plugin | None = None) -> Learner:
  """Returns gradient descent on the objective, with what a method adds to it.

  The optimiser keeps its state across task boundaries, as in the released code.
  """
  network, tx = problem.network, problem.tx
  added = plugin or Plugin()

  def init(key: Array) -> GradientState:
    params, model_state = network.init(key)
    own = added.init(params, model_state)
    return GradientState(params, model_state, tx.init(params), own)

  def step(
    state: GradientState, key: Array, batch: Batch
  ) -> tuple[GradientState, dict[str, Array]]:
    inputs = StepInputs(problem, state.model_state, key, batch)

    def loss(params: PyTree) -> tuple[Array, tuple[PyTree, ...]]:
      value, *rest = added.loss(state.own, params, inputs)
      return value, tuple(rest)

    found, gradient, params, opt_state = descend(
      tx, loss, state.params, state.opt_state, has_aux=True
    )
    value, (model_state, *aux) = found
    own = state.own
    if added.track is not None:
      track_key = jax.random.fold_in(key, _TRACK_TAG)
      record = StepRecord(
        state.params, params, model_state, gradient, track_key, batch, *aux
      )
      own = added.track(own, record)
    return GradientState(params, model_state, opt_state, own), {"loss": value}

  def energies(state: GradientState, x: Array) -> Array:
    return all_energies(network, state.params, state.model_state, x)

  consolidate = added.consolidate and partial(_consolidate, added.consolidate)
  return Learner(init, step, consolidate, energies)


def _consolidate(
  change: Callable[[PyTree, Boundary], PyTree],
  state: GradientState,
  key: Array,
  view: TaskView,
) -> GradientState:
  boundary = Boundary(state.params, state.model_state, key, view)
  return state._replace(own=change(state.own, boundary))


def descend(
  tx: optax.GradientTransformation,
  loss: Callable[[PyTree], Any],
  params: PyTree,
  opt_state: optax.OptState,
  *,
  has_aux: bool = False,
) -> tuple[Any, PyTree, PyTree, optax.OptState]:
  """Takes a step of an optimiser on loss(params) -> [], or with `has_aux` [], aux.

  Returns what the loss returned, its gradient, the new parameters and optimiser state.
  """
  found, gradient = jax.value_and_grad(loss, has_aux=has_aux)(params)
  updates, opt_state = tx.update(gradient, opt_state, params)
  return found, gradient, optax.apply_updates(params, updates), opt_state


def row_losses(
  problem: Problem,
  params: PyTree,
  model_state: PyTree,
  key: Array,
  batch: Batch,
  train: bool = True,
) -> tuple[Array, PyTree]:
  """Returns the objective's losses [B] of a batch, and the model state after it."""

  def energies(labels: Array) -> tuple[Array, PyTree]:
    return problem.network.energies(params, model_state, batch.x, labels, train=train)

  return problem.objective(energies, key, batch)


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
