r"""iCaRL: exemplars chosen by herding; classes predicted by the nearest mean of them.

Rebuffi et al. (2017), in van de Ven & Tolias's form (2019), from which the published
rows come. The outputs are sigmoids of z = -E, one for each class, and

    L = mean_b sum_{c seen} BCE(z_bc, target_bc),
    target_bc = sigmoid(z^old_bc / temperature)   for classes seen before this task
              = [y_b = c]                         for the task's own

z^old being the previous network's, for every row, new or stored. The training data are
the union of the task's images and the exemplars. A batch's rows come from the task
alone; each is replaced by a random exemplar with the exemplars' share of the union as

    probability n_exemplars / (n_task + n_exemplars)

Deviation: the size of a task is not known while it lasts, and n_task is that of the one
before; in the first task nothing is replaced.

At a boundary m = floor(budget / classes seen). Older classes keep their first m; each
new class gets m by herding over phi(x), the network's features scaled to length 1:

    pick k + 1:  argmin_i || mu - (phi_i + sum_{j <= k} phi_j) / (k + 1) ||

mu being the class's mean of phi, scaled to length 1. The first m of a longer list are
the list that herding m would give.

A label's energy is the squared distance of phi(x) to the class's mean of exemplars,
scaled to length 1, under the network as it is now. A class without exemplars is farther
than any other; while no class has any (the first task), the network's own energies
stand in.

State: the optimiser's; exemplars [C, floor(budget / classes of a task), ...] as batches
hold images, their number [C], the previous network, the classes it knows [C], n_task.
"""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from ebmjax.config.schema import Count, Positive, Rule, Traced
from ebmjax.methods import studies
from ebmjax.methods._gradient import (
  Boundary,
  GradientState,
  Plugin,
  StepInputs,
  all_energies,
  gradient_learner,
)
from ebmjax.methods._herding import herd, unit
from ebmjax.methods._rules import budget_rules, classifier_rules, plain_feature_rules
from ebmjax.methods.importance import task_images
from ebmjax.methods.spec import MethodSpec
from ebmjax.types import Batch, Learner, Network, Problem, PyTree, TaskView

_BLOCK = 128  # images at a time
_AUGMENT_TAG = 2  # fold_in tag: augmentation
# Squared distances of vectors of length 1 are at most 4. It is not larger than needed,
# since reports scale the energies of an image by their largest.
FARTHEST = 8.0


class _Own(NamedTuple):
  exemplars: Array  # [C, most, ...]
  counts: Array  # [C] int32, the exemplars of each class, the best first
  old_params: PyTree
  old_model_state: PyTree
  known: Array  # [C] bool, the classes of all finished tasks
  task_size: Array  # [] int32, images of the task that finished last


class _Prepared(NamedTuple):
  """What `energies` needs of a state, computed once for many images."""

  params: PyTree
  model_state: PyTree
  means: Array  # [C, F], of length 1
  has_mean: Array  # [C] bool


def icarl(
  problem: Problem,
  *,
  temperature: Annotated[
    Positive, Traced(), "temperature of the old network's outputs"
  ] = 2.0,
  budget: Annotated[Count, "total number of stored images"] = 1000,
) -> Learner:
  """Returns iCaRL, for a classifier; the problem's objective is not used."""
  network = problem.network
  per_task = network.num_classes // problem.num_tasks
  most = budget // per_task

  def init(params: PyTree, model_state: PyTree) -> _Own:
    classes, row = network.num_classes, problem.row
    return _Own(
      exemplars=jnp.zeros((classes, most, *row.shape), row.dtype),
      counts=jnp.zeros(classes, jnp.int32),
      old_params=params,
      old_model_state=model_state,
      known=jnp.zeros(classes, bool),
      task_size=jnp.int32(0),
    )

  def loss(own: _Own, params: PyTree, step: StepInputs) -> tuple[Array, PyTree]:
    x, y = mix_in_exemplars(own, step.key, step.batch, problem.augment)
    old = -all_energies(network, own.old_params, own.old_model_state, x)
    goal = targets(y, old, own.known, temperature)
    labels = jnp.arange(network.num_classes)
    energies, model_state = network.energies(
      params, step.model_state, x, labels, train=True
    )
    return binary_loss(-energies, goal, step.batch.seen), model_state

  def consolidate(own: _Own, boundary: Boundary) -> _Own:
    params, model_state, _, view = boundary  # herding is deterministic
    exemplars, count = _add_task(
      own, network, params, model_state, view, budget, per_task
    )
    return _Own(exemplars, count, params, model_state, view.seen, jnp.sum(view.valid))

  def prepare(state: GradientState) -> _Prepared:
    own = state.own
    means = _class_means(network, state.params, state.model_state, own)
    return _Prepared(state.params, state.model_state, means, own.counts > 0)

  def energies(state: GradientState | _Prepared, x: Array) -> Array:
    ready = prepare(state) if isinstance(state, GradientState) else state
    return _energies(network, ready, x)

  learner = gradient_learner(problem, Plugin(init, loss, consolidate=consolidate))
  return learner._replace(energies=energies, prepare=prepare)


def targets(y: Array, old: Array, known: Array, temperature: float) -> Array:
  """Returns [B, C]: softened old logits for known classes [C], one-hot y for others."""
  soft = jax.nn.sigmoid(old / temperature)
  return jnp.where(known[None, :], soft, jax.nn.one_hot(y, known.shape[0]))


def binary_loss(logits: Array, goal: Array, seen: Array) -> Array:
  """Returns []: the mean over rows of the sum over seen classes of cross-entropies."""
  terms = optax.sigmoid_binary_cross_entropy(logits, goal)
  return jnp.mean(jnp.sum(jnp.where(seen[None, :], terms, 0.0), axis=1))


def mix_in_exemplars(
  own: _Own, key: Array, batch: Batch, augment: Callable[[Array, Array], Array]
) -> tuple[Array, Array]:
  """Returns x [B, ...] and y [B]: the batch with random exemplars in some places.

  Exemplars are stored unchanged, for the means of their classes, and are augmented when
  they enter a batch.
  """
  swap_key, which_key = jax.random.split(key)
  ends = jnp.cumsum(own.counts)
  number = ends[-1]
  share = number / jnp.maximum(number + own.task_size, 1)
  swap = jax.random.bernoulli(swap_key, share, batch.y.shape)
  which = jax.random.randint(which_key, batch.y.shape, 0, jnp.maximum(number, 1))
  label = jnp.searchsorted(ends, which, side="right").astype(batch.y.dtype)
  label = jnp.minimum(label, ends.shape[0] - 1)
  stored = own.exemplars[label, which - (ends - own.counts)[label]]
  stored = augment(jax.random.fold_in(key, _AUGMENT_TAG), stored)
  wide = swap.reshape(-1, *[1] * (batch.x.ndim - 1))
  return jnp.where(wide, stored, batch.x), jnp.where(swap, label, batch.y)


def distances(phi: Array, means: Array, has_mean: Array) -> Array:
  """Returns [B, C]: squared distances of phi [B, F] to means [C, F], or FARTHEST."""
  squares = jnp.sum(jnp.square(phi), axis=1)[:, None]
  mean_squares = jnp.sum(jnp.square(means), axis=1)[None, :]
  apart = squares + mean_squares - 2 * phi @ means.T
  return jnp.where(has_mean[None, :], apart, FARTHEST)


def _add_task(
  own: _Own,
  network: Network,
  params: PyTree,
  model_state: PyTree,
  view: TaskView,
  budget: int,
  per_task: int,
) -> tuple[Array, Array]:
  """Returns exemplars and their counts [C] after a task of `per_task` classes.

  Holds the features of the whole task, [M, F], at once.
  """

  def phi_of(rows: Array) -> Array:
    return unit(network.features(params, model_state, task_images(view, rows)))

  classes = own.counts.shape[0]
  size = jnp.zeros(classes, jnp.int32).at[view.y[view.rows]].add(view.valid)
  most = own.exemplars.shape[1]
  number = jnp.minimum(budget // jnp.sum(view.seen), most)
  # A class without images gets a label out of range, which is dropped at the end.
  labels = jnp.nonzero(size, size=per_task, fill_value=classes)[0]
  members = (view.y[view.rows][None, :] == labels[:, None]) & view.valid[None, :]
  picks = herd(_in_blocks(phi_of, view.rows), members, number, most)
  chosen = lax.map(lambda rows: task_images(view, view.rows[rows]), picks)
  count = jnp.minimum(jnp.where(size > 0, size, own.counts), number)
  return own.exemplars.at[labels].set(chosen, mode="drop"), count


def _class_means(
  network: Network, params: PyTree, model_state: PyTree, own: _Own
) -> Array:
  """Returns [C, F]: each class's mean of its exemplars' features, of length 1."""

  def one(of_class: tuple[Array, Array]) -> Array:
    images, count = of_class
    places = jnp.arange(images.shape[0])
    phi = _in_blocks(
      lambda places: unit(network.features(params, model_state, images[places])),
      places,
    )
    return unit(jnp.sum(jnp.where((places < count)[:, None], phi, 0.0), axis=0))

  return lax.map(one, (own.exemplars, own.counts))


def _energies(network: Network, ready: _Prepared, x: Array) -> Array:
  """Returns [B, C]: distances to the class means, or the network's own energies."""

  def nearest() -> Array:
    phi = unit(network.features(ready.params, ready.model_state, x))
    return distances(phi, ready.means, ready.has_mean)

  def plain() -> Array:
    return all_energies(network, ready.params, ready.model_state, x)

  return lax.cond(jnp.any(ready.has_mean), nearest, plain)


def _in_blocks(function: Callable[[Array], Array], rows: Array) -> Array:
  """Returns function(rows) [N, F] of rows [N], computed in blocks."""
  padded = jnp.pad(rows, (0, -rows.shape[0] % _BLOCK)).reshape(-1, _BLOCK)
  found = lax.map(function, padded)
  return found.reshape(-1, found.shape[-1])[: rows.shape[0]]


def _constraints(config: Any) -> list[Rule]:
  return [
    *classifier_rules(config),
    *plain_feature_rules(config),
    *budget_rules(config, by_class=True, remedy="use 'class'"),
  ]


ICARL = MethodSpec(
  icarl,
  title="iCaRL",
  boundaries=True,
  mixes_tasks=True,
  joins_batch=True,
  own_objective=True,
  even_tasks=True,
  constraints=_constraints,
  published={
    "splitmnist": studies.SCENARIOS_2019.setting("splitmnist", budget=2000),
    "permmnist": studies.SCENARIOS_2019.setting("permmnist", budget=2000),
    "cifar10": studies.SCENARIOS_2019.setting(budget=2000),
    "cifar100": studies.SCENARIOS_2019.setting(budget=2000),
  },
  exempt=dict.fromkeys(
    ("one_class_keeps_energies", "one_class_keeps_state"),
    "a sigmoid's cross-entropy has a gradient for a single class, too",
  ),
  cost=1.42,
)
