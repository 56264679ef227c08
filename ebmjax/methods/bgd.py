r"""Bayesian gradient descent: certain weights move little, and certainty is learned.

Zeno et al. (2018). Every weight is a normal distribution of mean mu and deviation
sigma. At each step, over K = `mc_samples` draws of eps ~ N(0, 1), all at the old mu and
sigma:

    g_k = d/dtheta sum_b loss(x_b, y_b)   at theta = mu + sigma eps_k
    mu <- mu - step_size * sigma^2 * mean_k g_k
    sigma <- sigma sqrt(1 + a^2) - sigma a,  a = sigma/2 * mean_k (g_k eps_k)

The loss is a sum over the batch, not its mean: each row is evidence. The objective is
the configured one; with candidates from the batch alone it is the authors' labels
trick. There is no optimiser and no learning rate, so `config.optimiser` is not used.
Nothing happens at a boundary. Energies are those of mu.

A sigma grows where the sampled curvature is negative: if `std_init` is too large for
the network, deviations and loss diverge. The authors use 0.01 to 0.06.

State: mu and sigma, each as params, and the network's other variables.
"""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from ebmjax.config.schema import Count, Positive, Rate, Traced
from ebmjax.methods import studies
from ebmjax.methods._gradient import all_energies, row_losses
from ebmjax.methods.spec import MethodSpec
from ebmjax.types import Batch, Learner, Problem, PyTree


class BayesianState(NamedTuple):
  """Every weight's mean and deviation, and the network's other variables."""

  params: PyTree  # mu
  std: PyTree  # sigma
  model_state: PyTree


class _Sums(NamedTuple):
  """What is added up over the draws."""

  gradient: PyTree
  product: PyTree  # of gradient and noise
  loss: Array  # []


def bgd(
  problem: Problem,
  *,
  std_init: Annotated[Rate, "initial standard deviation of every weight"] = 0.02,
  step_size: Annotated[
    Positive, Traced(), "eta, the scale of the steps of the means"
  ] = 1.0,
  mc_samples: Annotated[Count, "Monte-Carlo gradients per step"] = 10,
) -> Learner:
  """Returns Bayesian gradient descent; `problem.tx` is not used."""
  network = problem.network

  def init(key: Array) -> BayesianState:
    params, model_state = network.init(key)
    std = jax.tree.map(lambda p: jnp.full_like(p, std_init), params)
    return BayesianState(params, std, model_state)

  def step(
    state: BayesianState, key: Array, batch: Batch
  ) -> tuple[BayesianState, dict[str, Array]]:
    sums, model_state = _sums_of_draws(problem, state, key, batch, mc_samples)

    def move(mean: Array, std: Array, gradient: Array) -> Array:
      return mean - step_size * jnp.square(std) * (gradient / mc_samples)

    params = jax.tree.map(move, state.params, state.std, sums.gradient)
    std = jax.tree.map(lambda s, p: shrink(s, p / mc_samples), state.std, sums.product)
    loss = sums.loss / (mc_samples * batch.y.shape[0])
    return BayesianState(params, std, model_state), {"loss": loss}

  def energies(state: BayesianState, x: Array) -> Array:
    return all_energies(network, state.params, state.model_state, x)

  return Learner(init, step, None, energies)


def shrink(std: Array, curvature: Array) -> Array:
  """Returns the new deviations: smaller where the curvature is positive.

  sigma (sqrt(1 + a^2) - a) with a = sigma/2 * curvature, the mean of gradient times
  noise. Since (sqrt(1 + a^2) - a) (sqrt(1 + a^2) + a) = 1, a > 0 needs no subtraction:
  however small, a deviation stays above 0.
  """
  a = std * curvature / 2
  factor = jnp.hypot(1.0, a) + jnp.abs(a)
  return std * jnp.where(a > 0, 1 / factor, factor)


def _sums_of_draws(
  problem: Problem, state: BayesianState, key: Array, batch: Batch, draws: int
) -> tuple[_Sums, PyTree]:
  """Returns the sums over all draws, and the first one's model_state."""

  def add(
    carry: tuple[_Sums, PyTree], each: tuple[Array, Array]
  ) -> tuple[tuple[_Sums, PyTree], None]:
    (sums, kept), (index, key) = carry, each
    loss, model_state, gradient, noise = _draw(problem, state, key, batch)
    product = jax.tree.map(jnp.multiply, gradient, noise)
    sums = jax.tree.map(jnp.add, sums, _Sums(gradient, product, loss))
    # One step moves running statistics once, however many draws it takes.
    first = index == 0
    kept = jax.tree.map(lambda n, k: jnp.where(first, n, k), model_state, kept)
    return (sums, kept), None

  zeros = jax.tree.map(jnp.zeros_like, state.params)
  start = (_Sums(zeros, zeros, jnp.zeros(())), state.model_state)
  keys = jax.random.split(key, draws)
  # One draw at a time: memory holds one gradient, not all of them.
  return lax.scan(add, start, (jnp.arange(draws), keys))[0]


def _draw(
  problem: Problem, state: BayesianState, key: Array, batch: Batch
) -> tuple[Array, PyTree, PyTree, PyTree]:
  """Returns one draw's loss [], model_state, gradient and noise."""
  noise_key, loss_key = jax.random.split(key)
  noise = _normal(noise_key, state.params)
  sample = jax.tree.map(lambda m, s, e: m + s * e, state.params, state.std, noise)

  def total_loss(params: PyTree) -> tuple[Array, PyTree]:
    losses, model_state = row_losses(
      problem, params, state.model_state, loss_key, batch
    )
    return jnp.sum(losses), model_state

  (loss, model_state), gradient = jax.value_and_grad(total_loss, has_aux=True)(sample)
  return loss, model_state, gradient, noise


def _normal(key: Array, tree: PyTree) -> PyTree:
  """Returns a tree like `tree` of draws from N(0, 1)."""
  leaves, structure = jax.tree.flatten(tree)
  keys = jax.random.split(key, len(leaves))
  # Drawing noise takes longer than the gradient. Threefry makes two words at a time,
  # but its default form, which can be split over devices, folds them into one. Nothing
  # is split here: using both words halves the time.
  with jax.threefry_partitionable(False):
    noise = [
      jax.random.normal(k, leaf.shape, leaf.dtype)
      for k, leaf in zip(keys, leaves, strict=True)
    ]
  return jax.tree.unflatten(structure, noise)


BGD = MethodSpec(
  bgd,
  title="BGD",
  all_outputs=True,
  uses_optimiser=False,
  published={
    "splitmnist": studies.ZENO_2018.setting("splitmnist", std_init=0.017),
    "permmnist": studies.ZENO_2018.setting("permmnist", std_init=0.02),
    "cifar10": studies.ZENO_2018.setting(std_init=0.015, step_size=10.0),
    "cifar100": studies.ZENO_2018.setting(std_init=0.015, step_size=10.0),
  },
  cost=16.3,
)
