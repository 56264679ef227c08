"""A small model for each class, trained by Adam on the rows of that class alone.

A step touches the models of the labels in its batch and no others, not even their
moments: nothing can be forgotten, a class may begin at any time, and task boundaries do
not matter. The models are one tree with a leading axis [C]; a step loops over the
labels that are present, so that its cost does not grow with the number of classes.
"""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from ebmjax.config.schema import Number, Rate
from ebmjax.methods._gradient import descend
from ebmjax.methods._moments import frozen_features, mask_unseen
from ebmjax.types import Batch, Learner, Problem, PyTree

LearningRate = Annotated[Rate, "Adam's learning rate at the start of a class"]
DecaySteps = Annotated[
  Number, "steps of a class over which the rate decays to 0 by a cosine; 0: constant"
]


# Parameters, statistics that training moves, and Adam's moments; leading axis [C].
Trained = tuple[PyTree, PyTree, PyTree]


def _nothing(*arguments: Any) -> None:
  del arguments


class ClassModels(NamedTuple):
  """The functions of a method with a model for each class.

  `shared` is what all classes share; phi [B, F] are the features of the problem's
  network. Neither is trained.
  """

  # (key, F) -> parameters of one class, and its statistics, {} if there are none
  init: Callable[[Array, int], tuple[PyTree, PyTree]]
  # (params and statistics of a class, targets, phi, key, its own rows [B] bool)
  # -> losses [B], moved statistics
  losses: Callable[..., tuple[Array, PyTree]]
  # (params and statistics [C, ...], shared, counts [C], phi) -> energies [B, C]
  energies: Callable[[PyTree, PyTree, PyTree, Array, Array], Array]
  init_shared: Callable[[Array, int], PyTree] = _nothing  # (key, F) -> shared
  # (shared, phi) -> what `losses` takes as targets, once for a batch
  targets: Callable[[PyTree, Array], PyTree] = _nothing


class ClassState(NamedTuple):
  """The state of all models."""

  params: PyTree  # leading axis [C]
  statistics: PyTree  # leading axis [C]
  moments: PyTree  # Adam's, leading axis [C]
  counts: Array  # [C] int32, rows seen
  shared: PyTree
  frozen: tuple[PyTree, PyTree]  # the network's parameters and other variables


def per_class_learner(
  problem: Problem, models: ClassModels, learning_rate: float, decay_steps: int
) -> Learner:
  """Returns the learner with a model for each class of the problem."""
  network, classes = problem.network, problem.network.num_classes
  rate: Any = learning_rate
  if decay_steps:
    rate = optax.cosine_decay_schedule(learning_rate, decay_steps)
  tx = optax.adam(rate)

  def step(
    state: ClassState, key: Array, batch: Batch
  ) -> tuple[ClassState, dict[str, Array]]:
    phi = network.features(*state.frozen, batch.x)
    targets = models.targets(state.shared, phi)
    new = jnp.bincount(batch.y, length=classes)
    present = jnp.nonzero(new, size=min(classes, batch.y.shape[0]), fill_value=0)[0]

    def one(i: Array, carry: tuple[Trained, Array]) -> tuple[Trained, Array]:
      trained, total = carry
      label = present[i]
      is_own = batch.y == label

      def losses(params: PyTree, statistics: PyTree) -> tuple[Array, PyTree]:
        own_key = jax.random.fold_in(key, label)
        return models.losses(params, statistics, targets, phi, own_key, is_own)

      trained, loss = _train_one(tx, losses, trained, label, is_own)
      return trained, total + loss

    start = (state.params, state.statistics, state.moments), jnp.float32(0)
    trained, total = lax.fori_loop(0, jnp.sum(new > 0), one, start)
    counts = state.counts + new.astype(jnp.int32)
    params, statistics, moments = trained
    state = ClassState(params, statistics, moments, counts, state.shared, state.frozen)
    return state, {"loss": total / batch.y.shape[0]}

  def energies(state: ClassState, x: Array) -> Array:
    phi = network.features(*state.frozen, x)
    trained = state.params, state.statistics
    found = models.energies(*trained, state.shared, state.counts, phi)
    return mask_unseen(found, state.counts > 0)

  init = partial(_init, problem, models, tx)
  return Learner(init, step, None, energies)


def _init(
  problem: Problem, models: ClassModels, tx: optax.GradientTransformation, key: Array
) -> ClassState:
  """Returns the state before the first step."""
  classes = problem.network.num_classes
  frozen, width = frozen_features(problem, key)
  own, shared = jax.random.split(jax.random.fold_in(key, 1))
  # All classes start alike: their energies differ only by what they have learned.
  params, statistics = jax.tree.map(
    lambda leaf: jnp.tile(leaf, (classes, *[1] * leaf.ndim)), models.init(own, width)
  )
  moments, counts = jax.vmap(tx.init)(params), jnp.zeros(classes, jnp.int32)
  rest = models.init_shared(shared, width)
  return ClassState(params, statistics, moments, counts, rest, frozen)


def _train_one(
  tx: optax.GradientTransformation,
  losses: Callable[[PyTree, PyTree], tuple[Array, PyTree]],
  trained: Trained,
  label: Array,
  is_own: Array,
) -> tuple[Trained, Array]:
  """Trains one class's model on its rows, `is_own` [B]; also returns their loss."""

  def descended(before: Trained) -> tuple[Trained, Array]:
    params, statistics, moments = before

    def loss(params: PyTree) -> tuple[Array, PyTree]:
      found, moved = losses(params, statistics)
      return jnp.sum(jnp.where(is_own, found, 0.0)) / jnp.sum(is_own), moved

    (value, moved), _, params, moments = descend(
      tx, loss, params, moments, has_aux=True
    )
    return (params, moved, moments), value * jnp.sum(is_own)

  def untouched(before: Trained) -> tuple[Trained, Array]:
    return before, jnp.float32(0)

  # This branch is always taken. Without it, XLA fuses the step into the update of the
  # stacked arrays, for which it copies those of all classes.
  before = jax.tree.map(lambda leaf: leaf[label], trained)
  after, total = lax.cond(jnp.any(is_own), descended, untouched, before)
  put = partial(lax.dynamic_update_index_in_dim, index=label, axis=0)
  return jax.tree.map(put, trained, after), total
