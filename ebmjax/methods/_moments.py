r"""Class means and one within-class scatter of frozen features, exact at every step.

A batch is merged into what was there before (Chan et al. 1979), so that no number is
the small difference of two large ones:

    mu_y <- mu_y + (n_batch / n) (mean of the batch's rows of y - mu_y)
    S    <- S + sum_b (phi_b - mu_old) (phi_b - mu_new)^T,   each of the row's class

Apart from rounding the order of rows does not matter, a class may begin at any time,
and passing over the same rows again changes neither the means nor S / n.

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
  params: Moments  # all that is learned
  frozen: tuple[PyTree, PyTree]  # the network's parameters and other variables


class _Ready(NamedTuple):
  """A state made ready to answer for many images."""

  frozen: tuple[PyTree, PyTree]
  rule: PyTree
  known: Array  # [C] bool


def empty_moments(
  num_classes: int, width: int, *, scatter: bool, rank: int = 0
) -> Moments:
  """Returns the moments of no rows, with factors of so many directions a class."""
  return Moments(
    jnp.zeros(num_classes, jnp.int32),
    jnp.zeros((num_classes, width)),
    # Nothing empty can be saved.
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
    # The rows about their own mean, and what is between that and the mean before.
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
  """Returns function(moments) in float32, computed in float64 where there is one."""
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
  """Returns the network as it is drawn, and F, the number of its features."""
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

  solve(moments) -> rule, once before an evaluation, in float64 where it is of the
  scatter; score(rule, phi [B, F]) -> [B, C].
  The network stays as it was drawn. A step's loss is the mean squared distance of its
  rows' features to their classes' means: what `solve` makes of them is not known yet.
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

  def prepare(state: _State) -> _Ready:
    moments = state.params
    rule = _in_float64(solve, moments) if scatter else solve(moments)
    return _Ready(state.frozen, rule, moments.counts > 0)

  def energies(state: _State | _Ready, x: Array) -> Array:
    ready = prepare(state) if isinstance(state, _State) else state
    phi = network.features(*ready.frozen, x)
    return with_unknown(score(ready.rule, phi), ready.known)

  return Learner(init, step, None, energies, prepare)


def with_unknown(energies: Array, known: Array) -> Array:
  """Returns energies [B, C], those of classes not known [C] above all others of a row.

  As far above the highest known energy as that is above the lowest, and 1: finite, and
  of the same size, since reports scale a row's energies by their range.
  """
  among = known[None, :]
  high = jnp.max(jnp.where(among, energies, -jnp.inf), axis=1, keepdims=True)
  low = jnp.min(jnp.where(among, energies, jnp.inf), axis=1, keepdims=True)
  above = jnp.where(jnp.any(known), high + (high - low) + 1, 0.0)
  return jnp.where(among, energies, above)
