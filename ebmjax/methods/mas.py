r"""Memory aware synapses: weights are held by how much the outputs depend on them.

Aljundi et al. (2018), f being the outputs -E(x, c) of the classes c seen so far:

    L = L_task + strength * sum_p Omega_p (theta_p - theta*_p)^2
    Omega_p <- Omega_p + importance_p,  theta* <- theta   at the end of a task
    importance_p = mean over images of |d/dtheta_p sum_c f_c(x)^2|          (per_row)
    importance_p = mean over blocks of 128 images of
                   |d/dtheta_p mean over images and classes of f_c(x)^2|    (batch)

`importance` = per_row is the definition; batch is the form behind the published figure
(Hsu et al. 2018): gradients of opposite signs cancel within a block, so Omega is
smaller, and a strength is only meaningful together with it. Labels are not used.

Energies are not normalised. A classifier's logits have a level that training sets, but
an energy may be shifted by any function of the image without changing a prediction, and
the squares see that shift: Omega then also holds the energies' absolute level.

Without boundaries it consolidates every `consolidate_every` steps, the importance being
the mean over the batches since. A period of 1 has no effect: whenever the gradient is
taken, the weights are at the anchor.

State: the optimiser's, and Omega and theta*, each as params. Periodic: a third tree,
the importance so far.
"""

from functools import partial
from typing import Annotated, Literal

import jax
import jax.numpy as jnp
from jax import Array

from ebmjax.config.schema import NonNegative, Traced
from ebmjax.methods import studies
from ebmjax.methods._gradient import all_energies, gradient_learner
from ebmjax.methods._quadratic import Penalty, penalty_plugin
from ebmjax.methods.importance import Block, sum_over_rows
from ebmjax.methods.spec import ConsolidateEvery, MethodSpec
from ebmjax.types import Learner, Network, Problem, PyTree


def mas(
  problem: Problem,
  *,
  consolidate_every: ConsolidateEvery = 0,
  strength: Annotated[NonNegative, Traced(), "weight of the quadratic penalty"] = 1.0,
  importance: Annotated[
    Literal["batch", "per_row"], "gradient of the batch's mean output, or of each row's"
  ] = "batch",
) -> Learner:
  """Builds MAS, at boundaries or every `consolidate_every` steps."""

  def add(penalty: Penalty, omega: PyTree, params: PyTree) -> Penalty:
    return Penalty(jax.tree.map(jnp.add, penalty.importance, omega), params)

  plugin = penalty_plugin(
    partial(importance_sum, problem.network, kind=importance),
    add,
    factor=strength,
    per_row=importance == "per_row",
    every=consolidate_every,
  )
  return gradient_learner(problem, plugin)


def importance_sum(
  network: Network, params: PyTree, model_state: PyTree, block: Block, kind: str
) -> PyTree:
  """Returns importance, a tree as params: a sum over the valid [B] rows (per_row).

  With `kind` batch it is one term for all of them. Outputs of seen classes count.
  """
  rows, seen = (block.x, block.valid), block.seen

  def norms(params: PyTree, rows: PyTree) -> Array:
    """Returns [B], the sum of the squared outputs, 0 where a row does not count."""
    x, valid = rows
    outputs = all_energies(network, params, model_state, x)
    counted = valid[:, None] & seen[None, :]
    return jnp.sum(jnp.where(counted, jnp.square(outputs), 0.0), axis=1)

  if kind == "per_row":
    return sum_over_rows(norms, params, rows, 1)
  count = jnp.maximum(jnp.sum(block.valid) * jnp.sum(seen), 1)
  mean = jax.grad(lambda p: jnp.sum(norms(p, rows)) / count)(params)
  return jax.tree.map(jnp.abs, mean)


MAS = MethodSpec(
  mas,
  title="MAS",
  boundaries=True,
  published={
    "boundary_free": studies.TYPES_2022.setting(consolidate_every=100),
    "splitmnist": studies.HSU_2018.setting("splitmnist", strength=1.0),
    "permmnist": studies.HSU_2018.setting("permmnist", strength=0.003),
    "cifar10": studies.NOT_PUBLISHED.setting(strength=0.001),
    "cifar100": studies.NOT_PUBLISHED.setting(strength=0.001),
    "hsu": studies.HSU_2018.setting(strength=1e4),
  },
  cost=1.31,
)
