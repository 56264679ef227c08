r"""Streaming quadratic discriminant analysis: a shared covariance and each class's own.

The energy of a label is minus the log-likelihood of the features under a Gaussian of
its class, less what all labels have in common:

    E(x, y) = (d_y^T P_y d_y + log det P_y^-1) / 2,   d_y = phi(x) - mu_y,
    P_y^-1 = (1 - a) ((1 - s) S + s I) + a A_y^T A_y / n_y

with phi the features of a network that is never trained, S the covariance within all
classes, A_y^T A_y the R largest principal directions of the scatter of y about its mean
(`_factors`) and n_y its number of rows. It lies between SLDA (a = 0) and one Gaussian
per class, as Friedman's regularised discriminant analysis (1989) does, and stores R x F
numbers per class instead of a covariance of F x F. Over random features the boundaries
between classes are not restricted to quadrics of the inputs.

Everything is accumulated in one pass: nothing is forgotten, a class may begin at any
time, and task boundaries are not used. The order of rows matters only through the
directions beyond the first R, which every batch drops.

State: counts [C], means [C, F], scatter [F, F], factors [C, R, F], and the untrained
network.
"""

from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ebmjax.config.schema import Count, Positive, Share
from ebmjax.methods import studies
from ebmjax.methods._moments import (
  Moments,
  closed_form_learner,
  covariance,
  shares,
  shrunk,
  solve_positive,
)
from ebmjax.methods._rules import EACH_CLASS_ALONE
from ebmjax.methods.spec import MethodSpec, setting
from ebmjax.types import Learner, Problem


class _Rule(NamedTuple):
  """E(x, y) = bias_y - phi_c . weights_y - |phi_c . directions_y - offset_y|^2 / 2."""

  centre: Array  # [F], phi_c is phi less it
  weights: Array  # [F, C]
  bias: Array  # [C]
  directions: Array  # [F, C, R]
  offset: Array  # [C, R]


def sqda(
  problem: Problem,
  *,
  rank: Annotated[Count, "principal directions kept for each class's covariance"] = 40,
  own: Annotated[
    Share, "weight of the class's own covariance against the shared one"
  ] = 0.2,
  shrinkage: Annotated[Positive, "weight of the identity in the covariance"] = 1e-4,
) -> Learner:
  """Builds streaming quadratic discriminant analysis over the network's features."""

  def solve(moments: Moments) -> _Rule:
    spread = shrunk(covariance(moments), shrinkage)
    return _quadratic_rule(moments, spread, own)

  def score(rule: _Rule, phi: Array) -> Array:
    apart = phi - rule.centre[None, :]
    width, classes, kept = rule.directions.shape
    along = (apart @ rule.directions.reshape(width, -1)).reshape(-1, classes, kept)
    inside = jnp.sum(jnp.square(along - rule.offset[None]), axis=2) / 2
    return rule.bias[None, :] - apart @ rule.weights - inside

  return closed_form_learner(problem, solve, score, rank=rank)


def _quadratic_rule(moments: Moments, shared: Array, own: float) -> _Rule:
  """Returns the rule of (1 - own) shared + own A_y^T A_y / n_y, by Woodbury's identity.

  With P the inverse of `shared` [F, F], B the factor of y over its share and
  T = I + B P B^T = K K^T, the inverse is (P - P B^T T^-1 B P) / (1 - own), and the
  determinant that of T, apart from factors that all labels share.
  """
  centre = shares(moments) @ moments.means
  apart = moments.means - centre[None, :]
  factors = jnp.asarray(moments.factors)
  classes, rank, width = factors.shape
  scale = own / ((1 - own) * jnp.maximum(moments.counts, 1))
  factors *= jnp.sqrt(scale)[:, None, None]
  right = jnp.concatenate([apart, factors.reshape(-1, width)])
  solved = solve_positive(shared, right.T)
  weights = solved[:, :classes]
  inverse = solved[:, classes:].T.reshape(classes, rank, width)  # B P
  small = factors @ jnp.swapaxes(inverse, 1, 2)
  small += jnp.eye(rank, dtype=factors.dtype)[None]
  root = jnp.linalg.cholesky(small)
  directions = jax.scipy.linalg.solve_triangular(root, inverse, lower=True)
  volume = jnp.sum(jnp.log(jnp.diagonal(root, axis1=1, axis2=2)), axis=1)
  bias = jnp.sum(apart.T * weights, axis=0) / 2
  directions /= jnp.sqrt(1 - own)
  return _Rule(
    centre,
    weights / (1 - own),
    bias / (1 - own) + volume,
    jnp.transpose(directions, (2, 0, 1)),
    jnp.einsum("crf,cf->cr", directions, apart),
  )


_SOURCE = "one pass over the images; keys chosen on held-out training images"
# A class of CIFAR-100 has 500 rows, which tell less of its own covariance.
_CHOSEN: dict[str, dict[str, Any]] = {
  "cifar100": {"rank": 80, "own": 0.1, "shrinkage": 2e-3},
}

SQDA = MethodSpec(
  sqda,
  title="SQDA",
  published={
    benchmark: setting(_SOURCE, protocol, **_CHOSEN.get(benchmark, {}))
    for benchmark, protocol in studies.ONE_PASS.items()
  },
  small={"rank": 3},
  **EACH_CLASS_ALONE,
)
