"""What the methods that follow a gradient share."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from ebmjax.objectives import Objective
from ebmjax.types import Batch, Learner, Network, PyTree


class GradientState(NamedTuple):
  """Parameters, the network's other variables, and the optimiser's moments."""

  params: PyTree
  model_state: PyTree
  opt_state: optax.OptState


def gradient_learner(
  network: Network, objective: Objective, tx: optax.GradientTransformation
) -> Learner:
  """Returns the learner that descends the mean of `objective` over each batch.

  The optimiser's state is kept over task boundaries, as in the released code.
  """

  def init(key: Array) -> GradientState:
    params, model_state = network.init(key)
    return GradientState(params, model_state, tx.init(params))

  def loss(
    params: PyTree, model_state: PyTree, key: Array, batch: Batch
  ) -> tuple[Array, PyTree]:
    def energies(labels: Array) -> tuple[Array, PyTree]:
      return network.energies(params, model_state, batch.x, labels, train=True)

    losses, model_state = objective(energies, key, batch)
    return jnp.mean(losses), model_state

  def step(
    state: GradientState, key: Array, batch: Batch
  ) -> tuple[GradientState, dict[str, Array]]:
    (value, model_state), gradient = jax.value_and_grad(loss, has_aux=True)(
      state.params, state.model_state, key, batch
    )
    updates, opt_state = tx.update(gradient, state.opt_state, state.params)
    params: Any = optax.apply_updates(state.params, updates)
    return GradientState(params, model_state, opt_state), {"loss": value}

  def energies(state: GradientState, x: Array) -> Array:
    labels = jnp.arange(network.num_classes)
    return network.energies(state.params, state.model_state, x, labels)[0]

  return Learner(init, step, _keep, energies)


def _keep(state: PyTree, key: Array, view: Any) -> PyTree:
  """Returns the state as it is: nothing happens at a boundary."""
  del key, view
  return state
