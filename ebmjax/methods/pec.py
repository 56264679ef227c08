r"""Prediction error-based classification: a student of a random teacher for each class.

Zajac, Tuytelaars and van de Ven (2024):

    E(x, y) = mean over outputs of (g_y(x) - h(x))^2

h is a frozen random network, the teacher; g_y, the student of class y, is trained to
predict h on the rows of y alone, and predicts it less well on other rows. Labels do not
compete in training, so neither negatives nor the problem's objective are used. Both
have one hidden layer of GELUs, over the features of the problem's network, by default
the raw inputs.

State: the students [C, ...], two moments of each, counts [C], and the teacher.
"""

import itertools
from typing import Annotated

import jax
import jax.numpy as jnp
from jax import Array

from ebmjax.config.schema import Count
from ebmjax.methods._per_class import (
  ClassModels,
  DecaySteps,
  LearningRate,
  per_class_learner,
)
from ebmjax.methods._rules import EACH_CLASS_ALONE
from ebmjax.methods.spec import MethodSpec, setting
from ebmjax.networks.initialisers import bias, kernel
from ebmjax.types import Learner, Problem, PyTree


def pec(
  problem: Problem,
  *,
  student: Annotated[Count, "hidden units of each class's student"] = 64,
  teacher: Annotated[Count, "hidden units of the teacher"] = 400,
  outputs: Annotated[Count, "outputs of the teacher that the students predict"] = 128,
  learning_rate: LearningRate = 1e-3,
  decay_steps: DecaySteps = 0,
) -> Learner:
  """Builds prediction error-based classification."""

  def losses(
    params: PyTree,
    statistics: PyTree,
    goal: Array,
    phi: Array,
    key: Array,
    is_own: Array,
  ) -> tuple[Array, PyTree]:
    del key, is_own
    return jnp.mean(jnp.square(_apply(params, phi) - goal), axis=1), statistics

  def energies(
    stacked: PyTree, statistics: PyTree, shared: PyTree, counts: Array, phi: Array
  ) -> Array:
    del statistics, counts
    goal = _apply(shared, phi)
    found = jax.vmap(_apply, in_axes=(0, None), out_axes=1)(stacked, phi)
    return jnp.mean(jnp.square(found - goal[:, None, :]), axis=2)

  models = ClassModels(
    init=lambda key, width: (_init(key, width, student, outputs), {}),
    losses=losses,
    energies=energies,
    init_shared=lambda key, width: _init(key, width, teacher, outputs),
    targets=_apply,
  )
  return per_class_learner(problem, models, learning_rate, decay_steps)


def _init(key: Array, *sizes: int) -> list[dict[str, Array]]:
  """Returns dense layers from each size to the next."""
  layers = []
  for i, (size, outputs) in enumerate(itertools.pairwise(sizes)):
    keys = jax.random.split(jax.random.fold_in(key, i))
    w = kernel("pytorch")(keys[0], (size, outputs))
    layers.append({"kernel": w, "bias": bias("pytorch", size)(keys[1], (outputs,))})
  return layers


def _apply(layers: list[dict[str, Array]], x: Array) -> Array:
  """Returns [B, outputs] of x [B, F]: a hidden layer of GELUs and a linear one."""
  first, last = layers
  h = jax.nn.gelu(x @ first["kernel"] + first["bias"][None, :])
  return h @ last["kernel"] + last["bias"][None, :]


_SOURCE = "Zajac et al. (2024); widths and steps not published for these benchmarks"

PEC = MethodSpec(
  pec,
  title="PEC",
  published={
    "splitmnist": setting(_SOURCE, decay_steps=2000),
    "permmnist": setting(_SOURCE, decay_steps=2000),
    "cifar10": setting(_SOURCE, {"data.augment": "none"}, decay_steps=2000),
    "cifar100": setting(_SOURCE, decay_steps=5000),
  },
  small={"student": 8, "teacher": 16, "outputs": 8},
  **EACH_CLASS_ALONE,
)
