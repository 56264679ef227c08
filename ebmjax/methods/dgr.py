r"""Deep generative replay: a generator beside the classifier replays old images.

Shin et al. (2017), in the form of van de Ven and Tolias (2019). The generator is a
variational autoencoder. From the second task on, a step generates as many images as
its batch has, x~ = decoder_old(z) with z ~ N(0, I), and asks the old network for their
labels, y~ = argmin of E_old(x~, y) over the classes it had seen. Then, at task t,

    L = 1/t L(x, y) + (1 - 1/t) L(x~, y~)        of the network,
    V = 1/t ELBO(x) + (1 - 1/t) ELBO(x~)         of the generator,

each a mean over its rows, and each with an optimiser of its own. Grey images are rows
of pixels from dense layers; colour images come from convolutions, which start as the
network's trunk if that has the same shapes (CIFAR-100's). The objective is the
configured one, so that energy networks can be trained in this way, too: negatives from
the task are drawn from all classes seen so far, negatives from the batch from the
labels of both halves. At a boundary network and generator are copied. The first task is
plain training.

Deviation: generated pixels are rounded to whole numbers of 255, as stored images are.
The generator's colours are centred at 1/2 and scaled by 1/4 in every channel.

State: the network's with its optimiser's, the generator's with its own, a copy of both
networks, and the classes [C] that the copy had seen.
"""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from ebmjax.config.schema import Count
from ebmjax.methods import studies
from ebmjax.methods._gradient import GradientState, all_energies, descend
from ebmjax.methods._replay import joint, row_weights, weighted_learner
from ebmjax.methods._rules import image_rules
from ebmjax.methods.buffers import Drawn
from ebmjax.methods.spec import MethodSpec, setting
from ebmjax.networks.generators import Generator, make_generator
from ebmjax.prediction import predict
from ebmjax.types import Batch, Learner, Network, Problem, PyTree, TaskView

_GENERATOR_TAG = 2  # fold_in tag of the generator's init key


class GenerativeTeacher(NamedTuple):
  """A network and a generator as they were at the last boundary."""

  params: PyTree
  model_state: PyTree
  generator: PyTree  # its variables
  classes: Array  # [C] bool, seen until then; none during the first task


class GenerativeState(NamedTuple):
  """The network in training, the generator in training, and both as they were."""

  solver: GradientState
  generator: PyTree  # its variables
  generator_opt_state: optax.OptState
  teacher: GenerativeTeacher


def dgr(
  problem: Problem,
  *,
  generator_hidden: Annotated[Count, "units of the generator's layers"] = 400,
  latent: Annotated[Count, "size of a generated image's code"] = 100,
) -> Learner:
  """Returns deep generative replay of images."""
  network, tx = problem.network, problem.tx
  solver = weighted_learner(problem)
  generator = make_generator(problem.row, generator_hidden, latent)

  def init(key: Array) -> GenerativeState:
    generator_key = jax.random.fold_in(key, _GENERATOR_TAG)
    # The unmodified key: `pytorch_seed` looks weights up by it.
    first = solver.init(key)
    variables = _from_trunk(generator.init(generator_key), first)
    nothing = jnp.zeros(network.num_classes, bool)
    teacher = GenerativeTeacher(first.params, first.model_state, variables, nothing)
    return GenerativeState(first, variables, tx.init(variables["params"]), teacher)

  def train_generator(
    state: GenerativeState, key: Array, rows: Batch, weights: Array
  ) -> tuple[PyTree, optax.OptState]:
    noise = jax.random.normal(key, (rows.y.shape[0], latent))
    variables = state.generator

    def loss(params: PyTree) -> tuple[Array, PyTree]:
      losses, moved = generator.losses(variables | {"params": params}, rows.x, noise)
      return jnp.sum(weights * losses), moved

    (_, moved), _, params, opt_state = descend(
      tx, loss, variables["params"], state.generator_opt_state, has_aux=True
    )
    return moved | {"params": params}, opt_state

  def step(
    state: GenerativeState, key: Array, batch: Batch
  ) -> tuple[GenerativeState, dict[str, Array]]:
    replay_key, solver_key, generator_key = jax.random.split(key, 3)
    drawn = generate_replay(generator, network, state.teacher, replay_key, batch)
    rows = joint(batch, drawn)
    weights = row_weights("by_task", drawn.valid, batch.task[0] + 1)
    new, metrics = solver.step(state.solver._replace(own=weights), solver_key, rows)
    trained = train_generator(state, generator_key, rows, weights)
    return GenerativeState(new._replace(own=()), *trained, state.teacher), metrics

  def consolidate(
    state: GenerativeState, key: Array, view: TaskView
  ) -> GenerativeState:
    del key
    params, model_state = state.solver.params, state.solver.model_state
    teacher = GenerativeTeacher(params, model_state, state.generator, view.seen)
    return state._replace(teacher=teacher)

  def energies(state: GenerativeState, x: Array) -> Array:
    return solver.energies(state.solver, x)

  return Learner(init, step, consolidate, energies)


def _from_trunk(variables: PyTree, first: GradientState) -> PyTree:
  """Returns a generator's variables, with the network's trunk if it has the same."""
  own, trunk = (p.get("trunk") for p in (variables["params"], first.params))
  if own is None or _shapes(own) != _shapes(trunk):
    return variables
  trained = variables["params"] | {"trunk": trunk}
  moved = variables["batch_stats"] | {"trunk": first.model_state["batch_stats"]}
  return {"params": trained, "batch_stats": moved}


def _shapes(tree: PyTree) -> PyTree:
  return jax.tree.map(jnp.shape, tree)


def generate_replay(
  generator: Generator,
  network: Network,
  teacher: GenerativeTeacher,
  key: Array,
  batch: Batch,
) -> Drawn:
  """Generates as many rows as the batch has, labelled by the old network.

  None of them is valid while there is no old network.
  """
  z = jax.random.normal(key, (batch.y.shape[0], generator.latent))
  x = generator.decode(teacher.generator, z)
  answers = all_energies(network, teacher.params, teacher.model_state, x)
  y = predict(answers, teacher.classes)
  valid = jnp.full(y.shape, jnp.any(teacher.classes))
  return Drawn(x, y.astype(batch.y.dtype), valid)


_STUDY = studies.SCENARIOS_2019._replace(
  source=f"{studies.SCENARIOS_2019.source} and later studies"
)
# The generator makes images, so the trunk that sees them is trained.
_TRAINED_TRUNK = {
  **studies.REPLAY_2020.protocols["cifar100"],
  "network.backbone_mode": "finetune",
}

DGR = MethodSpec(
  dgr,
  title="DGR",
  boundaries=True,
  mixes_tasks=True,
  joins_batch=True,
  constraints=image_rules,
  published={
    "splitmnist": _STUDY.setting("splitmnist", generator_hidden=400),
    "permmnist": _STUDY.setting("permmnist", generator_hidden=1000),
    "cifar10": studies.NOT_PUBLISHED.setting(generator_hidden=2000),
    "cifar100": setting(
      studies.REPLAY_2020.source, _TRAINED_TRUNK, generator_hidden=2000
    ),
  },
  small={"generator_hidden": 32},
  exempt={"one_class_keeps_state": "the generator learns it"},
  cost=7.6,
)
