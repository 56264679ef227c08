r"""Ridge regression of one-hot labels on frozen features, from running sums.

McDonnell et al. (2023, RanPAC), over random ReLU features the variant `ranpac`:

    E(x, y) = -w_y^T phi(x),   W = (G + l I)^-1 Q,   G = mean phi phi^T,
    Q = mean phi onehot(y)^T,  l = penalty * trace(G) / F

G and Q are computed from class means and the scatter within classes, which are exact at
every step, in any order of rows (`_moments`): W is where joint training of a linear
head would end, so nothing can be forgotten. Deviation: RanPAC adds l to sums over
images, and chooses it on held-out images; a share of the mean squared feature depends
neither on the number of passes over the images nor on the scale of the features.

State: counts [C], means [C, F], scatter [F, F], and the untrained network.
"""

from typing import Annotated

import jax.numpy as jnp
from jax import Array

from ebmjax.config.schema import Positive
from ebmjax.methods import studies
from ebmjax.methods._moments import (
  Moments,
  closed_form_learner,
  covariance,
  shares,
  solve_positive,
)
from ebmjax.methods._rules import EACH_CLASS_ALONE
from ebmjax.methods.spec import MethodSpec, setting
from ebmjax.types import Learner, Problem


def ridge(
  problem: Problem,
  *,
  penalty: Annotated[
    Positive, "ridge penalty, relative to the mean squared feature"
  ] = 1e-4,
) -> Learner:
  """Builds the ridge classifier over the network's features."""

  def solve(moments: Moments) -> Array:
    sums = shares(moments)[:, None] * moments.means
    gram = covariance(moments) + moments.means.T @ sums
    width = gram.shape[0]
    size = jnp.trace(gram) / width
    # No division by 0 if all features are 0, or if there are no rows.
    least = penalty * jnp.where(size > 0, size, 1.0)
    gram += least * jnp.eye(width, dtype=gram.dtype)
    return solve_positive(gram, sums.T)

  def score(w: Array, phi: Array) -> Array:
    return -phi @ w

  return closed_form_learner(problem, solve, score)


RIDGE = MethodSpec(
  ridge,
  title="ridge",
  published={
    benchmark: setting(studies.NOT_PUBLISHED.source, protocol)
    for benchmark, protocol in studies.ONE_PASS.items()
  },
  **EACH_CLASS_ALONE,
)
