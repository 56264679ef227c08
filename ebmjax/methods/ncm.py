"""Nearest class mean: the energy of a label is the distance to its mean.

    E(x, y) = |phi(x) - mu_y|^2

with phi the features of a network that is never trained, and mu_y their mean over all
rows of y so far. There is nothing to forget: a class's mean depends on its own rows
alone, in any order, and task boundaries are not used.

State: counts [C] and means [C, F], and the untrained network.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from ebmjax.methods import studies
from ebmjax.methods._moments import Moments, closed_form_learner, shares
from ebmjax.methods._rules import EACH_CLASS_ALONE
from ebmjax.methods.spec import MethodSpec, setting
from ebmjax.types import Learner, Problem


class _Rule(NamedTuple):
  centre: Array  # [F], of all rows: distances between vectors far from 0 lose digits
  means: Array  # [C, F], less the centre


def ncm(problem: Problem) -> Learner:
  """Builds the classifier by class means of the network's features."""

  def solve(moments: Moments) -> _Rule:
    centre = shares(moments) @ moments.means
    return _Rule(centre, moments.means - centre[None, :])

  def score(rule: _Rule, phi: Array) -> Array:
    apart = phi - rule.centre[None, :]
    squares = jnp.sum(jnp.square(apart), axis=1)[:, None]
    means = jnp.sum(jnp.square(rule.means), axis=1)[None, :]
    return squares + means - 2 * apart @ rule.means.T

  return closed_form_learner(problem, solve, score, scatter=False)


NCM = MethodSpec(
  ncm,
  title="NCM",
  published={
    benchmark: setting("one pass over the images, each counted once", protocol)
    for benchmark, protocol in studies.ONE_PASS.items()
  },
  **EACH_CLASS_ALONE,
)
