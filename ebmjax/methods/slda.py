r"""Streaming linear discriminant analysis: class means under one shared covariance.

Hayes and Kanan (2020), as van de Ven et al. (2021) ran it on these benchmarks:

    E(x, y) = -(d_y^T P (phi(x) - mu) - d_y^T P d_y / 2),   d_y = mu_y - mu,
    P = ((1 - s) S + s I)^-1

with phi the features of a network that is never trained, mu_y their class means, mu
their mean over all rows and S their covariance within classes. It is half the squared
distance of phi to mu_y under P, less that to mu. Deviation: theirs is taken from 0, not
from mu, which adds the same number to all labels of a row. Centred at mu, an energy
does not depend on the origin of the features, and float32 keeps its digits.

Means and covariance are exact at every step, in any order of rows (`_moments`), and
task boundaries are not used.

Over random Fourier features it is RanDumb (Prabhu et al. 2024), the variant `randumb`.

State: counts [C], means [C, F], scatter [F, F], and the untrained network.
"""

from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jax import Array

from ebmjax.config.schema import Positive
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
  centre: Array  # [F]
  weights: Array  # [F, C]
  bias: Array  # [C]


def slda(
  problem: Problem,
  *,
  shrinkage: Annotated[Positive, "weight of the identity in the covariance"] = 1e-4,
) -> Learner:
  """Builds streaming linear discriminant analysis over the network's features."""

  def solve(moments: Moments) -> _Rule:
    spread = shrunk(covariance(moments), shrinkage)
    centre = shares(moments) @ moments.means
    apart = (moments.means - centre[None, :]).T
    w = solve_positive(spread, apart)
    return _Rule(centre, w, jnp.sum(apart * w, axis=0) / 2)

  def score(rule: _Rule, phi: Array) -> Array:
    return rule.bias[None, :] - (phi - rule.centre[None, :]) @ rule.weights

  return closed_form_learner(problem, solve, score)


SLDA = MethodSpec(
  slda,
  title="SLDA",
  published={
    benchmark: setting(studies.GENERATIVE_2021.source, protocol, shrinkage=1e-4)
    for benchmark, protocol in studies.ONE_PASS.items()
  },
  **EACH_CLASS_ALONE,
)
