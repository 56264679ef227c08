r"""Deep generative replay: a generator trained beside the classifier dreams old images.

Shin et al. (2017), in the form of van de Ven and Tolias (2019). The generator is a
variational autoencoder. From the second task on, a step dreams as many images as its
batch has, x~ = decoder_old(z) with z ~ N(0, I), and asks the old network for their
labels, y~ = argmin of E_old(x~, y) over the classes it had seen. Then, at task t,

    L = 1/t L(x, y) + (1 - 1/t) L(x~, y~)        of the network,
    V = 1/t ELBO(x) + (1 - 1/t) ELBO(x~)         of the generator,

each mean over its rows, and each with an optimiser of its own. The objective is the
given one, so that energy networks can dream, too: what it draws of a task's classes is
drawn of all classes seen so far, what it draws of the batch's labels of both halves'.
At a boundary both are copied. The first task is plain training.

Deviation: dreamt pixels are rounded to whole numbers of 255, as stored images are.

State: the network's with its optimiser's, the generator's with its own, a copy of both
networks, and the classes [C] that the copy had seen.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from ebmjax.buffers import Drawn
from ebmjax.methods._gradient import GradientState, all_energies
from ebmjax.methods._replay import joint, row_weights, weighted_learner
from ebmjax.networks.vae import VariationalAutoencoder, elbo_losses
from ebmjax.prediction import predict
from ebmjax.types import Batch, Learner, Network, Problem, PyTree, TaskView

_GENERATOR = 2  # a use of the first key apart from the network's


class Dreamer(NamedTuple):
  """A network and a generator as they were at the last boundary."""

  params: PyTree
  model_state: PyTree
  generator: PyTree
  classes: Array  # [C] bool, seen until then; none during the first task


class GenerativeState(NamedTuple):
  """The network in training, the generator in training, and both as they were."""

  solver: GradientState
  generator: PyTree
  generator_opt_state: optax.OptState
  old: Dreamer

  @property
  def params(self) -> PyTree:
    """Returns all that is trained."""
    return {"network": self.solver.params, "generator": self.generator}


def dgr(problem: Problem, config: Any) -> Learner:
  """Returns deep generative replay of images that are rows of grey pixels."""
  network, tx = problem.network, problem.tx
  solver = weighted_learner(problem)
  pixels = math.prod(problem.row.shape)
  vae = VariationalAutoencoder(pixels, config.generator_hidden, config.latent)

  def init(key: Array) -> GenerativeState:
    generator_key = jax.random.fold_in(key, _GENERATOR)
    first = solver.init(key)  # the very key: weights may be known by it
    shapes = (jnp.zeros((1, pixels)), jnp.zeros((1, config.latent)))
    generator = vae.init(generator_key, *shapes)
    nothing = jnp.zeros(network.num_classes, bool)
    old = Dreamer(first.params, first.model_state, generator, nothing)
    return GenerativeState(first, generator, tx.init(generator), old)

  def train_generator(
    state: GenerativeState, key: Array, rows: Batch, weights: Array
  ) -> tuple[PyTree, optax.OptState]:
    x = rows.x.reshape(-1, pixels).astype(jnp.float32) / 255
    noise = jax.random.normal(key, (x.shape[0], config.latent))

    def loss(generator: PyTree) -> Array:
      found: Any = vae.apply(generator, x, noise)
      return jnp.sum(weights * elbo_losses(x, *found))

    gradient = jax.grad(loss)(state.generator)
    updates, opt_state = tx.update(gradient, state.generator_opt_state, state.generator)
    return optax.apply_updates(state.generator, updates), opt_state

  def step(
    state: GenerativeState, key: Array, batch: Batch
  ) -> tuple[GenerativeState, dict[str, Array]]:
    dream_key, solver_key, generator_key = jax.random.split(key, 3)
    drawn = dream(vae, network, state.old, dream_key, batch)
    rows = joint(batch, drawn)
    weights = row_weights("by_task", drawn.valid, batch.task[0] + 1)
    new, metrics = solver.step(state.solver._replace(own=weights), solver_key, rows)
    generator = train_generator(state, generator_key, rows, weights)
    return GenerativeState(new._replace(own=()), *generator, state.old), metrics

  def consolidate(
    state: GenerativeState, key: Array, view: TaskView
  ) -> GenerativeState:
    del key
    params, model_state = state.solver.params, state.solver.model_state
    old = Dreamer(params, model_state, state.generator, view.seen)
    return state._replace(old=old)

  def energies(state: GenerativeState, x: Array) -> Array:
    return solver.energies(state.solver, x)

  return Learner(init, step, consolidate, energies)


def dream(
  vae: VariationalAutoencoder, network: Network, old: Dreamer, key: Array, batch: Batch
) -> Drawn:
  """Returns as many rows as the batch has, labelled by the old network.

  None of them is valid while there is no old network.
  """
  z = jax.random.normal(key, (batch.y.shape[0], vae.latent))
  logits: Any = vae.apply(old.generator, z, method="decode")
  shades = jnp.round(255 * jax.nn.sigmoid(logits))
  x = shades.reshape(batch.x.shape).astype(batch.x.dtype)
  answers = all_energies(network, old.params, old.model_state, x)
  y = predict(answers, old.classes)
  valid = jnp.full(y.shape, jnp.any(old.classes))
  return Drawn(x, y.astype(batch.y.dtype), valid)
