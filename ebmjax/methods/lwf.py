r"""Learning without forgetting: the old network's answers on new data are kept.

Li and Hoiem (2016), in the form of van de Ven and Tolias (2019), at task t:

    L = 1/t L_task + (1 - 1/t) KD
    KD = -T^2 mean_b sum_c q_{b,c} log p_{b,c}
    q = softmax(-E_old / T) over the classes seen when the old network was copied
    p = softmax(-E / T)     over the classes seen now

q is 0 for the classes that came later while p normalises over them too: the new classes
are pushed down on the new data. Normalised over the old classes alone, it would be
another method. The old network sees the current batch, in test mode. `distillation` =
mean divides KD by the number of classes seen now, as the code behind the published
MNIST figures did.

The first task is plain training. Without boundaries the network is copied every
`consolidate_every` steps; as soon as there is a copy, both weights are 1/2.

State: the optimiser's, and the old network (parameters, other variables) and its
classes [C].
"""

from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from ebmjax.config.schema import Positive, Rule, Traced
from ebmjax.methods import studies
from ebmjax.methods._gradient import (
  Boundary,
  Plugin,
  StepInputs,
  StepRecord,
  all_energies,
  gradient_learner,
  is_due,
)
from ebmjax.methods.spec import ConsolidateEvery, MethodSpec
from ebmjax.prediction import among
from ebmjax.types import Learner, Problem, PyTree


class Teacher(NamedTuple):
  """A copy of the network from an earlier time, whose outputs are distilled."""

  params: PyTree
  model_state: PyTree
  classes: Array  # [C] bool, seen when it was copied; none before the first copy


def lwf(
  problem: Problem,
  *,
  consolidate_every: ConsolidateEvery = 0,
  temperature: Annotated[
    Positive, Traced(), "temperature of the old network's outputs"
  ] = 2.0,
  distillation: Annotated[
    Literal["sum", "mean"], "reduction of the distillation loss over classes"
  ] = "sum",
) -> Learner:
  """Returns LwF, at boundaries or every `consolidate_every` steps."""
  network, every = problem.network, consolidate_every

  def loss(teacher: Teacher, params: PyTree, step: StepInputs) -> tuple[Array, PyTree]:
    batch, old = step.batch, teacher.classes
    columns = jnp.arange(network.num_classes)
    # One pass over all labels serves both terms.
    energies, model_state = network.energies(
      params, step.model_state, batch.x, columns, train=True
    )

    def candidates(labels: Array) -> tuple[Array, PyTree]:
      return jnp.take_along_axis(energies, labels, axis=1), model_state

    losses, model_state = problem.objective(candidates, step.key, batch)
    answers = all_energies(network, teacher.params, teacher.model_state, batch.x)
    # Without boundaries, a class of the old network may no longer count as seen.
    seen = batch.seen | old
    distilled = distil(energies, answers, old, seen, temperature)
    share = 1 / jnp.sum(seen) if distillation == "mean" else 1.0
    kept = share * jnp.mean(distilled)
    task_weight = 0.5 if every else 1 / jnp.maximum(batch.task[0] + 1, 1)
    weight = jnp.where(jnp.any(old), task_weight, 1.0)
    return weight * jnp.mean(losses) + (1 - weight) * kept, model_state

  def track(teacher: Teacher, record: StepRecord) -> Teacher:
    batch = record.batch
    new = Teacher(record.after, record.model_state, teacher.classes | batch.seen)
    return lax.cond(is_due(batch.step, every), lambda: new, lambda: teacher)

  init = partial(untaught, network.num_classes)
  if every:
    return gradient_learner(problem, Plugin(init, loss, track))
  return gradient_learner(problem, Plugin(init, loss, consolidate=copy_network))


def untaught(num_classes: int, params: PyTree, model_state: PyTree) -> Teacher:
  """Returns the teacher of the first task, which knows no class."""
  return Teacher(params, model_state, jnp.zeros(num_classes, bool))


def copy_network(teacher: Teacher, boundary: Boundary) -> Teacher:
  """Returns a copy of the network as it is when a task ends."""
  del teacher
  return Teacher(boundary.params, boundary.model_state, boundary.view.seen)


def distil(
  energies: Array, old_energies: Array, old: Array, seen: Array, temperature: float
) -> Array:
  """Returns losses [B]: T^2 times the cross-entropy of p under the old network's q.

  From energies [B, C] of both networks; q lives on the classes `old` [C] bool, p on
  `seen` [C] bool, and a class of neither has no gradient.
  """
  q = jax.nn.softmax(among(-old_energies / temperature, old[None, :]))
  log_p = jax.nn.log_softmax(among(-energies / temperature, seen[None, :]))
  terms = jnp.where(old[None, :], q * log_p, 0.0)
  return -(temperature**2) * jnp.sum(terms, axis=1)


def _constraints(config: Any) -> list[Rule]:
  return [
    (
      config.stream.scenario == "task",
      "config.method.name='lwf' distils all old classes together, and "
      "config.stream.scenario='task' sets only a task's own against each other; use "
      "'class' or 'domain'.",
    )
  ]


LWF = MethodSpec(
  lwf,
  title="LwF",
  boundaries=True,
  constraints=_constraints,
  published={
    "boundary_free": studies.TYPES_2022.setting(consolidate_every=100),
    # The published figures are from before that code summed over classes.
    "splitmnist": studies.SCENARIOS_2019.setting("splitmnist", distillation="mean"),
    "permmnist": studies.SCENARIOS_2019.setting("permmnist", distillation="mean"),
    "cifar100": studies.REPLAY_2020.setting("cifar100"),
  },
  cost=1.34,
)
