r"""Brain-inspired replay: the network itself generates old rows, through feedback.

Van de Ven et al. (2020). The network is also the encoder of a generator: its features
lead to a code z, and a decoder leads back to the input (`networks.feedback`). Features
are the last hidden layer, or of an energy network the layer before the first gate. Each
class has a mode of codes of its own, and switches off a share `gate_off` of the
decoder's units. From the second task on, a step generates as many rows as its batch
has,

    c ~ uniform over the old classes,  z ~ N(mode of c),  x~ = decoder_old(z, c)

and asks the old network for soft labels, w = softmax(-E_old(x~, .) / T) over the old
classes. At task t, with one-hot w for the rows of the batch,

    L = 1/t [ L_task + R + D ](x) + (1 - 1/t) [ KD + R + D ](x~)
    R = cross-entropy of the pixels, a mean over them
    D = ( log q(z | x) - log sum_c w_c N(z; mode of c) ) / pixels

each a mean over its rows; KD is LwF's distillation. Where inputs are features of a
frozen trunk, features are generated (internal replay): R is then half the mean squared
error, and D is divided by the 3072 pixels of the images behind them. At a boundary all
parameters are copied. During the first task nothing is generated.

Deviation: generated pixels are rounded to whole numbers of 255, as stored images are.

State: the network's and the feedback's parameters under one optimiser, a copy of all of
them, and the classes [C] that the copy had seen.
"""

import math
from functools import partial
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from ebmjax import networks
from ebmjax.config.schema import Count, Positive, Rule, Share, Traced
from ebmjax.methods import studies
from ebmjax.methods._gradient import (
  Plugin,
  StepInputs,
  all_energies,
  gradient_learner,
)
from ebmjax.methods._replay import row_weights
from ebmjax.methods._rules import plain_feature_rules
from ebmjax.methods.lwf import Teacher, copy_network, distil, untaught
from ebmjax.methods.spec import MethodSpec
from ebmjax.networks.feedback import Feedback, divergences
from ebmjax.prediction import among
from ebmjax.types import Batch, Learner, Network, Problem, PyTree

PIXELS_BEHIND_FEATURES = 3072  # of a CIFAR image
# fold_in tags of a step's keys; 3 is the tracking's
_REPLAY_TAG, _NOISE_TAG = 2, 4
_FEEDBACK_TAG = 2  # fold_in tag of the feedback's init key


class Replay(NamedTuple):
  """Generated rows, and the teacher's outputs for them."""

  x: Array  # [B, ...] as batches hold it
  energies: Array  # [B, C], the old network's
  labels: Array  # [B, C], soft


def bir(
  problem: Problem,
  *,
  temperature: Annotated[
    Positive, Traced(), "temperature of the old network's outputs"
  ] = 2.0,
  generator_hidden: Annotated[Count, "units of the generator's layers"] = 400,
  latent: Annotated[Count, "size of a generated image's code"] = 100,
  gate_off: Annotated[
    Share, "share of the generator's units that a class switches off"
  ] = 0.8,
) -> Learner:
  """Returns brain-inspired replay of rows of pixels or of a frozen trunk's features."""
  network = problem.network
  feedback = _feedback(problem, generator_hidden, latent, gate_off)
  whole = with_feedback(network, feedback, problem.row)
  columns = jnp.arange(network.num_classes)

  def loss(teacher: Teacher, params: PyTree, step: StepInputs) -> tuple[Array, PyTree]:
    batch, tags = step.batch, (_REPLAY_TAG, _NOISE_TAG)
    replay_key, noise_key = (jax.random.fold_in(step.key, tag) for tag in tags)
    replay = generate_replay(whole, feedback, teacher, replay_key, batch, temperature)
    predicted, model_state = step.row_losses(params)
    energies, model_state = whole.energies(
      params, model_state, replay.x, columns, train=True
    )
    distilled = distil(
      energies, replay.energies, teacher.classes, batch.seen, temperature
    )
    x = jnp.concatenate([batch.x, replay.x])
    certain = jax.nn.one_hot(batch.y, network.num_classes)
    labels = jnp.concatenate([certain, replay.labels])
    generated = generator_losses(
      whole, feedback, params, model_state, noise_key, x, labels
    )
    valid = jnp.full(batch.y.shape, jnp.any(teacher.classes))
    weights = row_weights("by_task", valid, batch.task[0] + 1)
    losses = jnp.concatenate([predicted, distilled]) + generated
    return jnp.sum(jnp.where(weights > 0, weights * losses, 0)), model_state

  init = partial(untaught, network.num_classes)
  plugin = Plugin(init, loss, consolidate=copy_network)
  return gradient_learner(problem._replace(network=whole), plugin)


def _feedback(problem: Problem, hidden: int, latent: int, gate_off: float) -> Feedback:
  return Feedback(
    math.prod(problem.row.shape),
    hidden,
    latent,
    problem.network.num_classes,
    gate_off,
  )


def with_feedback(
  network: Network, feedback: Feedback, row: jax.ShapeDtypeStruct
) -> Network:
  """Returns the network with the feedback's variables beside its own."""

  def init(key: Array) -> tuple[PyTree, PyTree]:
    feedback_key = jax.random.fold_in(key, _FEEDBACK_TAG)
    # The unmodified key: `pytorch_seed` looks weights up by it.
    params, model_state = network.init(key)
    x = jnp.zeros((1, *row.shape), row.dtype)
    features = network.features(params, model_state, x)
    labels = jnp.zeros((1, network.num_classes))
    noise = jnp.zeros((1, feedback.latent))
    variables = feedback.init(feedback_key, features, labels, noise)
    return (
      {"network": params, "feedback": variables["params"]},
      {"network": model_state, "fixed": variables["fixed"]},
    )

  def energies(
    params: PyTree, model_state: PyTree, x: Array, labels: Array, train: bool = False
  ) -> tuple[Array, PyTree]:
    found, own = network.energies(
      params["network"], model_state["network"], x, labels, train=train
    )
    return found, model_state | {"network": own}

  def features(params: PyTree, model_state: PyTree, x: Array) -> Array:
    return network.features(params["network"], model_state["network"], x)

  return Network(init, energies, features, network.num_classes)


def generate_replay(
  whole: Network,
  feedback: Feedback,
  teacher: Teacher,
  key: Array,
  batch: Batch,
  temperature: float,
) -> Replay:
  """Generates as many rows as the batch has; of all classes while no one is old."""
  class_key, noise_key = jax.random.split(key)
  known = teacher.classes | ~jnp.any(teacher.classes)
  size = batch.y.shape[0]
  chances = jnp.where(known, 0.0, -jnp.inf)
  classes = jax.random.categorical(class_key, chances, shape=(size,))
  noise = jax.random.normal(noise_key, (size, feedback.latent))
  rows: Any = feedback.apply(
    _variables(teacher.params, teacher.model_state), classes, noise, method="generate"
  )
  if batch.x.dtype == jnp.uint8:
    rows = jnp.round(255 * jax.nn.sigmoid(rows))
  x = rows.reshape(batch.x.shape).astype(batch.x.dtype)
  energies = all_energies(whole, teacher.params, teacher.model_state, x)
  scores = among(-energies / temperature, known[None, :])
  return Replay(x, energies, jax.nn.softmax(scores))


def generator_losses(
  whole: Network,
  feedback: Feedback,
  params: PyTree,
  model_state: PyTree,
  key: Array,
  x: Array,
  labels: Array,
) -> Array:
  """Returns R + D [N] of rows x [N, ...] with label weights [N, C]."""
  noise = jax.random.normal(key, (x.shape[0], feedback.latent))
  features = whole.features(params, model_state, x)
  rebuilt: Any = feedback.apply(
    _variables(params, model_state), features, labels, noise
  )
  rows = x.reshape(x.shape[0], -1)
  if x.dtype == jnp.uint8:
    pixels = rows.astype(jnp.float32) / 255
    error = optax.sigmoid_binary_cross_entropy(rebuilt.output, pixels)
    number = rows.shape[1]
  else:
    error, number = (rebuilt.output - rows) ** 2 / 2, PIXELS_BEHIND_FEATURES
  return jnp.mean(error, axis=1) + divergences(rebuilt, labels) / number


def _variables(params: PyTree, model_state: PyTree) -> dict[str, PyTree]:
  return {"params": params["feedback"], "fixed": model_state["fixed"]}


def _constraints(config: Any) -> list[Rule]:
  network = networks.find(config.network.name)
  rows = network.takes_rows or network.cached_trunk(config.network) is not None
  return [
    (
      not rows,
      "config.method.name='bir' generates rows of grey pixels or the features of a "
      f"frozen trunk, not the inputs of config.network.name={config.network.name!r}; "
      "over a frozen trunk set config.network.backbone_mode='fixed_statistics'.",
    ),
    *plain_feature_rules(config),
  ]


BIR = MethodSpec(
  bir,
  title="BI-R",
  boundaries=True,
  mixes_tasks=True,
  constraints=_constraints,
  published={
    "splitmnist": studies.TYPES_2022.setting(
      "splitmnist", generator_hidden=400, gate_off=0.1
    ),
    # For a hundred permutations.
    "permmnist": studies.REPLAY_2020.setting(generator_hidden=1000, gate_off=0.8),
    "cifar100": studies.REPLAY_2020.setting(
      "cifar100", generator_hidden=2000, gate_off=0.7
    ),
  },
  small={"generator_hidden": 32},
  exempt=dict.fromkeys(
    ("one_class_keeps_energies", "one_class_keeps_state"),
    "the network also learns to reconstruct its inputs",
  ),
  cost=7.6,
)
