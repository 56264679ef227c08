r"""Class means and one within-class scatter of frozen features, exact at every step.

A batch is merged into what was there before (Chan et al. 1979), so that no number is
the small difference of two large ones:

    mu_y <- mu_y + (n_batch / n) (mean of the batch's rows of y - mu_y)
    S    <- S + sum_b (phi_b - mu_old) (phi_b - mu_new)^T,   each of the row's class

Apart from rounding, the order of rows does not matter. A class may begin at any time,
and a second pass over the same rows changes neither the means nor S / n.

The steps are in float32; the one system of equations before an evaluation is solved in
float64, since covariances of pixels and of random features are close to singular.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from ebmjax.methods._factors import add_to_factors
from ebmjax.types import Batch, Learner, Problem, PyTree


class Moments(NamedTuple):
  """What is kept of all rows so far."""

  counts: Array  # [C] int32
  means: Array  # [C, F]
  scatter: Array | tuple[()]  # [F, F]; () where it is not asked for
  factors: Array | tuple[()] = ()  # [C, R, F], `_factors`; () where not asked for


class _State(NamedTuple):
  params: Moments  # all that it learns
  frozen: tuple[PyTree, PyTree]  # the network's parameters and other variables


class _Prepared(NamedTuple):
  """What `energies` needs of a state, computed once for many images."""

  frozen: tuple[PyTree, PyTree]
  rule: PyTree
  seen: Array  # [C] bool


def empty_moments(
  num_classes: int, width: int, *, scatter: bool, rank: int = 0
) -> Moments:
  """Returns the moments of no rows, with factors of `rank` directions per class."""
  return Moments(
    jnp.zeros(num_classes, jnp.int32),
    jnp.zeros((num_classes, width)),
    # Checkpoints cannot hold empty arrays.
    jnp.zeros((width, width)) if scatter else (),
    jnp.zeros((num_classes, rank, width)) if rank else (),
  )


def add_rows(moments: Moments, phi: Array, y: Array) -> Moments:
  """Returns the moments with rows phi [B, F] of classes y [B]."""
  counts, means, scatter, factors = moments
  hot = jax.nn.one_hot(y, counts.shape[0])
  new = jnp.sum(hot, axis=0)
  total = counts + new.astype(jnp.int32)
  batch_means = (hot.T @ phi) / jnp.maximum(new, 1)[:, None]
  # A new class starts at its batch's mean: at 0 its scatter would lose digits.
  old = jnp.where((counts > 0)[:, None], means, batch_means)
  share = new / jnp.maximum(total, 1)
  # Not old + share * (batch_means - old) for a new class, which has no old mean.
  means = jnp.where((total > 0)[:, None], old + share[:, None] * (batch_means - old), 0)
  if not isinstance(scatter, tuple):
    scatter = scatter + (phi - old[y]).T @ (phi - means[y])
  if not isinstance(factors, tuple):
    # The rows about the batch's mean, and the step from the old mean to it.
    between = jnp.sqrt(counts * share)[:, None] * (batch_means - old)
    factors = add_to_factors(factors, phi - batch_means[y], y, new, between)
  return Moments(total, means, scatter, factors)


def covariance(moments: Moments) -> Array:
  """Returns [F, F]: the scatter within classes, divided by the number of rows."""
  return jnp.asarray(moments.scatter) / jnp.maximum(jnp.sum(moments.counts), 1)


def shrunk(covariance: Array, share: float) -> Array:
  """Returns a covariance [F, F] with a share of it replaced by the identity."""
  identity = jnp.eye(covariance.shape[0], dtype=covariance.dtype)
  return (1 - share) * covariance + share * identity


def shares(moments: Moments) -> Array:
  """Returns [C]: the share of each class in all rows."""
  return moments.counts / jnp.maximum(jnp.sum(moments.counts), 1)


def solve_positive(matrix: Array, right: Array) -> Array:
  """Returns X [F, K] with matrix X = right; matrix [F, F] is positive definite."""
  factor = jax.scipy.linalg.cho_factor(matrix, lower=True)
  return jax.scipy.linalg.cho_solve(factor, right)


def _in_float64(function: Callable[[Moments], PyTree], moments: Moments) -> PyTree:
  """Returns function(moments) in float32, computed in float64 except on TPUs."""
  if jax.default_backend() == "tpu":
    return function(moments)

  def cast(tree: PyTree, kind: Any) -> PyTree:
    def one(leaf: Array) -> Array:
      floats = jnp.issubdtype(leaf.dtype, jnp.floating)
      return lax.convert_element_type(leaf, kind) if floats else leaf

    return jax.tree.map(one, tree)

  with jax.enable_x64(True):
    return cast(function(cast(moments, jnp.float64)), jnp.float32)


def frozen_features(problem: Problem, key: Array) -> tuple[tuple[PyTree, PyTree], int]:
  """Returns the network's initial variables, and F, the number of its features."""
  frozen = problem.network.init(key)
  row = jnp.zeros((1, *problem.row.shape), problem.row.dtype)
  width = jax.eval_shape(problem.network.features, *frozen, row).shape[1]
  return frozen, width


def closed_form_learner(
  problem: Problem,
  solve: Callable[[Moments], PyTree],
  score: Callable[[PyTree, Array], Array],
  *,
  scatter: bool = True,
  rank: int = 0,
) -> Learner:
  """Returns the learner that keeps moments of the network's features.

  solve(moments) -> rule runs once before an evaluation, in float64 if there is a
  scatter; score(rule, phi [B, F]) -> [B, C]. The network is never trained. The loss of
  a step is the mean squared distance of its features to the means of their classes,
  since the rule is not computed at every step.
  """
  network = problem.network

  def init(key: Array) -> _State:
    frozen, width = frozen_features(problem, key)
    classes = network.num_classes
    return _State(empty_moments(classes, width, scatter=scatter, rank=rank), frozen)

  def step(state: _State, key: Array, batch: Batch) -> tuple[_State, dict[str, Array]]:
    del key
    phi = network.features(*state.frozen, batch.x)
    moments = add_rows(state.params, phi, batch.y)
    apart = jnp.sum(jnp.square(phi - moments.means[batch.y]), axis=1)
    return state._replace(params=moments), {"loss": jnp.mean(apart)}

  def prepare(state: _State) -> _Prepared:
    moments = state.params
    rule = _in_float64(solve, moments) if scatter else solve(moments)
    return _Prepared(state.frozen, rule, moments.counts > 0)

  def energies(state: _State | _Prepared, x: Array) -> Array:
    ready = prepare(state) if isinstance(state, _State) else state
    phi = network.features(*ready.frozen, x)
    return mask_unseen(score(ready.rule, phi), ready.seen)

  return Learner(init, step, None, energies, prepare)


def mask_unseen(energies: Array, seen: Array) -> Array:
  """Gives unseen classes, of energies [B, C], an energy above every seen one.

  It exceeds the highest seen energy by the range of a row's seen energies, plus 1: it
  is finite and of their size, since reports scale a row's energies by their range.
  """
  among = seen[None, :]
  high = jnp.max(jnp.where(among, energies, -jnp.inf), axis=1, keepdims=True)
  low = jnp.min(jnp.where(among, energies, jnp.inf), axis=1, keepdims=True)
  above = jnp.where(jnp.any(seen), high + (high - low) + 1, 0.0)
  return jnp.where(among, energies, above)
