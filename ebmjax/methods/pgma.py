r"""Parameter generation and model adaptation: every row gets some weights of its own.

Hu et al. (2019). An autoencoder turns a row into a code z = f(x), near N(0, I), and
codes into rows, G(z). A generator T turns a code into the weights of the last
`num_generated_units` of the network's features h(x), so that

    E(x, y) = E_network(x, y) - sum_u h_u(x) T(f(x))_uy

No row is stored and no old label is needed. From the second task on, a step draws
`replay_batch` codes z ~ N(0, I) and decodes them as at the last boundary, into rows
x~ = G_old(z), whose outputs must stay as they were then. In this order, with n tasks in
all,

    f, G, `repeats` times:  a/20 |x - G(f(x))|^2 + mismatch of f(x) and N(0, I)
                + 0.01 (|f(x~) - z| + |G(z) - x~|) + |f(x~) - f_old(x~)|
    network, T:  L(x, y) + strength n (
                |h(x~) - h_old(x~)|^2 + |E(x~, .) - E_old(x~, .)|^2)

each a mean over its rows. a is 1/10 in the first task, which has only the terms without
x~, and n/2 from then on. E takes the code f_old(x~), E_old the z that the row was
decoded from. Gradients are clipped to a norm of 3.

Deviation: generated pixels are rounded to whole numbers of 255, as stored images are,
when the network sees them. The network is the configured one, without dropout: adapted
features keep shared weights beside the generated ones, and only the last hidden layer
is held to its old outputs. The codes are not fitted to N(0, I) before training.

State: the network's and T's parameters with their optimiser's state, the autoencoder in
the model state with an optimiser's of its own, a copy of all of them, and the classes
[C] that the copy had seen.
"""

from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from ebmjax import networks
from ebmjax.config.schema import Count, NonNegative, Rule
from ebmjax.methods import studies
from ebmjax.methods._gradient import (
  GradientState,
  Plugin,
  StepInputs,
  descend,
  gradient_learner,
)
from ebmjax.methods._rules import image_rules, plain_feature_rules
from ebmjax.methods.lwf import Teacher, untaught
from ebmjax.methods.spec import MethodSpec
from ebmjax.networks.adaptation import Adapted, WeightGenerator, as_network, as_rows
from ebmjax.networks.autoencoder import Autoencoder, make_autoencoder, mismatch
from ebmjax.types import Batch, Learner, Problem, PyTree, TaskView

Trained = tuple[PyTree, optax.OptState]  # the autoencoder's parameters

CLIP = 3.0
INPUT_NOISE = 0.01  # scale of the noise on the encoder's inputs in training


class Memory(NamedTuple):
  """What is kept between steps besides the network in training."""

  opt_state: optax.OptState  # the autoencoder's
  teacher: Teacher


class Replay(NamedTuple):
  """Generated rows, their codes, and the outputs for them at the last boundary."""

  z: Array  # [D, Z]
  rows: Array  # [D, P] in [0, 1]
  codes: Array  # [D, Z]: f_old of the rows
  x: Array  # [D, ...] as batches hold it
  features: Array  # [D, F]
  energies: Array  # [D, C]
  weight: Array  # []: 0 during the first task, then 1


def pgma(
  problem: Problem,
  *,
  strength: Annotated[
    NonNegative,
    "weight of the old outputs on generated images, times the number of tasks",
  ] = 1.0,
  repeats: Annotated[Count, "steps of the autoencoder per training step"] = 3,
  num_generated_units: Annotated[Count, "features whose weights are generated"] = 80,
  replay_batch: Annotated[Count, "generated images per step"] = 400,
  latent: Annotated[Count, "size of a generated image's code"] = 100,
  generator: Annotated[Literal["dense", "conv"], "layers of the autoencoder"] = "dense",
  generator_hidden: Annotated[Count, "units of the generators' layers"] = 400,
  generator_channels: Annotated[
    Count, "channels of the first convolution, with conv"
  ] = 64,
) -> Learner:
  """Builds the given network with weights that each image generates for itself."""
  classes = problem.network.num_classes
  sizes = {"hidden": generator_hidden, "channels": generator_channels, "latent": latent}
  autoencoder = make_autoencoder(generator, problem.row.shape, **sizes)
  weights = WeightGenerator(num_generated_units, classes, generator_hidden)
  adapted = Adapted(problem.network, autoencoder, weights)
  tx = optax.chain(optax.clip_by_global_norm(CLIP), problem.tx)
  rebuild = partial(autoencoder_loss, autoencoder, num_tasks=problem.num_tasks)
  whole = problem._replace(network=as_network(adapted, problem.row), tx=tx)
  loss = partial(_loss, adapted, strength * problem.num_tasks)
  solver = gradient_learner(whole, Plugin(loss=loss))

  def init(key: Array) -> GradientState:
    state = solver.init(key)
    teacher = untaught(classes, state.params, state.model_state)
    return state._replace(
      own=Memory(tx.init(state.model_state["autoencoder"]), teacher)
    )

  def step(
    state: GradientState, key: Array, batch: Batch
  ) -> tuple[GradientState, dict[str, Array]]:
    replay_key, autoencoder_key, solver_key = jax.random.split(key, 3)
    memory: Memory = state.own
    replay = generate_replay(
      adapted, memory.teacher, replay_key, replay_batch, problem.row
    )
    error = partial(rebuild, rows=as_rows(batch.x), replay=replay)
    trained = state.model_state["autoencoder"], memory.opt_state
    keys = jax.random.split(autoencoder_key, repeats)
    params, opt_state = _descend_once_a_key(tx, error, trained, keys)
    model_state = state.model_state | {"autoencoder": params}
    state, metrics = solver.step(
      state._replace(model_state=model_state, own=replay), solver_key, batch
    )
    return state._replace(own=Memory(opt_state, memory.teacher)), metrics

  def consolidate(state: GradientState, key: Array, view: TaskView) -> GradientState:
    del key
    teacher = Teacher(state.params, state.model_state, view.seen)
    return state._replace(own=state.own._replace(teacher=teacher))

  return Learner(init, step, consolidate, solver.energies)


def _loss(
  adapted: Adapted, strength: float, replay: Replay, params: PyTree, step: StepInputs
) -> tuple[Array, PyTree]:
  """Returns the task's loss plus the change of the outputs for replayed rows."""
  losses, moved = step.row_losses(params)
  model_state = step.model_state
  features = adapted.features(params, model_state, replay.x)
  energies = adapted.all_energies(params, model_state, replay.x, replay.codes)
  changes = jnp.sum((features - replay.features) ** 2, axis=1)
  changes += jnp.sum((energies - replay.energies) ** 2, axis=1)
  return jnp.mean(losses) + strength * replay.weight * jnp.mean(changes), moved


def generate_replay(
  adapted: Adapted, teacher: Teacher, key: Array, number: int, row: jax.ShapeDtypeStruct
) -> Replay:
  """Returns `number` rows generated by the copied autoencoder."""
  z = jax.random.normal(key, (number, adapted.autoencoder.latent))
  rows: Any = adapted.autoencoder.apply(
    teacher.model_state["autoencoder"], z, method="decode"
  )
  x = jnp.round(255 * rows).reshape(number, *row.shape).astype(row.dtype)
  return Replay(
    z=z,
    rows=rows,
    codes=adapted.encode(teacher.model_state, rows),
    x=x,
    features=adapted.features(teacher.params, teacher.model_state, x),
    energies=adapted.all_energies(teacher.params, teacher.model_state, x, z),
    weight=jnp.any(teacher.classes).astype(jnp.float32),
  )


def autoencoder_loss(
  autoencoder: Autoencoder,
  params: PyTree,
  key: Array,
  *,
  rows: Array,
  replay: Replay,
  num_tasks: int,
) -> Array:
  """Returns [], from rows [B, P] and from replay, which counts from the second task."""
  noise_key, draw_key, replay_key = jax.random.split(key, 3)

  def encode(key: Array, x: Array) -> Array:
    noise = INPUT_NOISE * jax.random.truncated_normal(key, -2, 2, x.shape)
    found: Any = autoencoder.apply(params, x + noise, method="encode")
    return found

  def decode(z: Array) -> Array:
    found: Any = autoencoder.apply(params, z, method="decode")
    return found

  codes = encode(noise_key, rows)
  error = jnp.mean(jnp.sum((rows - decode(codes)) ** 2, axis=1)) / 20
  fit = mismatch(codes, jax.random.normal(draw_key, codes.shape))
  encoded = encode(replay_key, replay.rows)
  returned = _mean_length(encoded - replay.z)
  returned += _mean_length(decode(replay.z) - replay.rows)
  kept = _mean_length(encoded - replay.codes)
  share = jnp.where(replay.weight > 0, num_tasks / 2, 0.1)
  return share * error + fit + replay.weight * (0.01 * returned + kept)


def _mean_length(rows: Array) -> Array:
  """Returns the mean length of rows [N, Z]; its gradient is 0 for a row of zeros."""
  return jnp.mean(optax.safe_norm(rows, 0.0, axis=1))


def _descend_once_a_key(
  tx: optax.GradientTransformation, loss: Any, start: Trained, keys: Array
) -> Trained:
  """Takes a step on loss(params, key) with each of the keys."""

  def one(trained: Trained, key: Array) -> tuple[Trained, None]:
    _, _, params, opt_state = descend(tx, partial(loss, key=key), *trained)
    return (params, opt_state), None

  return lax.scan(one, start, keys)[0]


def _constraints(config: Any) -> list[Rule]:
  units = config.method.num_generated_units
  features = networks.find(config.network.name).num_features(config.network)
  return [
    *image_rules(config),
    *plain_feature_rules(config),
    (
      features is not None and units > features,
      f"config.method.num_generated_units={units} is more than the {features} features "
      f"of the network; give {features} or less.",
    ),
    (
      config.stream.batch_size < 2,
      "config.method.name='pgma' compares the codes of a batch with each other; set "
      "config.stream.batch_size to 2 or more.",
    ),
  ]


_MNIST: dict[str, Any] = {
  "generator_hidden": 1000,
  "latent": 32,
  "repeats": 2,
  "strength": 0.01,
}

PGMA = MethodSpec(
  pgma,
  title="PGMA",
  boundaries=True,
  all_outputs=True,
  constraints=_constraints,
  published={
    "splitmnist": studies.HU_2019.setting("splitmnist", **_MNIST),
    "permmnist": studies.NOT_PUBLISHED.setting(**_MNIST),
    # Its authors published settings for MNIST alone: theirs, with longer codes.
    "cifar10": studies.NOT_PUBLISHED.setting(
      **_MNIST | {"generator": "conv", "latent": 64}
    ),
  },
  small={
    "generator_hidden": 32,
    "generator_channels": 4,
    "replay_batch": 16,
    "num_generated_units": 8,
  },
  exempt=dict.fromkeys(
    ("one_class_keeps_energies", "one_class_keeps_state"),
    "the autoencoder learns it, and energies depend on its codes",
  ),
  cost=220.0,
)
