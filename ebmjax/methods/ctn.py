r"""Contextual transformation networks: every task transforms the features its own way.

Pham et al. (2021). The network has a base that all tasks share and a context of each
task (`networks.context`), and either learns from images of its own, kept in two
memories (`_memories`). A step stores its batch, and then takes, `repeats` times,
`inner_steps` steps of the base on

    L = CE(batch) + CE(old) + strength / O * KL(targets || softmax(outputs(old) / T))

where `old` are rows of the episodic memories of earlier tasks, each in the context of
its own task, and the targets, over the O labels of that task, are the network's outputs
for them when the task ended; and one step of the context on

    CE(all of the semantic memory, the current task's too) / repeats

along the gradient clipped to [-1, 1]. Cross-entropies are over the O labels of a row's
own task: the method is made for streams that reveal the task at test time, too
(`config.stream.scenario=task`). Deviation: with `class` all contexts compete by their
energies, which no part of the training makes comparable; the authors do not do this.

The authors use gradient descent without momentum (`config.optimiser.name=sgd`), for the
base with the optimiser's rate and for the context with `context_rate`, on ten rows at a
time, each image once. Deviation: the batch's loss is recomputed at each step, where
their code reuses the graph of the first.

State: the base's optimiser, and the memories.
"""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from ebmjax import networks
from ebmjax.config.schema import Count, NonNegative, Positive, Rate, Rule, Traced
from ebmjax.methods import studies
from ebmjax.methods._gradient import GradientState, all_energies, descend
from ebmjax.methods._memories import (
  Rows,
  draw,
  empty_memory,
  end_task,
  semantic_rows,
  store,
)
from ebmjax.methods.spec import MethodSpec
from ebmjax.types import Batch, Learner, Network, Problem, PyTree, TaskView

Trained = tuple[PyTree, PyTree, optax.OptState]  # base, context, state of the base's
Loss = Callable[..., Array]


def ctn(
  problem: Problem,
  *,
  strength: Annotated[
    NonNegative, Traced(), "weight of the distillation on stored rows"
  ] = 1.0,
  temperature: Annotated[Positive, Traced(), "temperature of the stored outputs"] = 2.0,
  budget: Annotated[Count, "total number of stored images"] = 1000,
  repeats: Annotated[Count, "updates per batch"] = 3,
  inner_steps: Annotated[
    Count, "steps of the base network per step of the context"
  ] = 2,
  context_rate: Annotated[Rate, Traced(), "learning rate of the context"] = 0.1,
) -> Learner:
  """Builds the two-level descent; the problem's objective is not used."""
  network, outputs = problem.network, _outputs(problem.network)

  def init(key: Array) -> GradientState:
    params, model_state = network.init(key)
    memory = empty_memory(problem, budget)
    opt_state = problem.tx.init(_parts(params)[0])
    return GradientState(params, model_state, opt_state, memory)

  def step(
    state: GradientState, key: Array, batch: Batch
  ) -> tuple[GradientState, dict[str, Array]]:
    memory, new = store(state.own, batch)
    task, fixed = batch.task[0], state.model_state
    semantic = semantic_rows(memory, task)

    def base_loss(base: PyTree, context: PyTree, key: Array) -> Array:
      old, targets = draw(key, memory, task)
      logits = [outputs(base | context, fixed, rows.x, rows.y) for rows in (new, old)]
      learned = cross_entropy(logits[0], new) + cross_entropy(logits[1], old)
      kept = distillation(logits[1], targets, temperature)
      return learned + strength * jnp.sum(old.weight * kept)

    def context_loss(context: PyTree, base: PyTree) -> Array:
      logits = outputs(base | context, fixed, semantic.x, semantic.y)
      return cross_entropy(logits, semantic)

    start = (*_parts(state.params), state.opt_state)
    keys = jax.random.split(key, (repeats, inner_steps))
    (base, context, opt_state), loss = _descend_in_turn(
      start, keys, problem.tx, context_rate, base_loss, context_loss
    )
    return GradientState(base | context, fixed, opt_state, memory), {"loss": loss}

  def consolidate(state: GradientState, key: Array, view: TaskView) -> GradientState:
    del key
    memory, task = state.own, view.task
    rows = (memory.episodic_x[task], memory.episodic_y[task])
    logits = outputs(state.params, state.model_state, *rows) / temperature
    return state._replace(own=end_task(memory, task, jax.nn.softmax(logits)))

  def energies(state: GradientState, x: Array) -> Array:
    return all_energies(network, state.params, state.model_state, x)

  return Learner(init, step, consolidate, energies)


def _descend_in_turn(
  start: Trained,
  keys: Array,
  base_tx: optax.GradientTransformation,
  context_rate: float,
  base_loss: Loss,
  context_loss: Loss,
) -> tuple[Trained, Array]:
  """Trains base and context in turn; also returns the first loss of the base.

  For each row of `keys`, the base takes a step on base_loss(base, context, key) with
  each key, then the context one on context_loss(context, base).
  """
  # Each of the repeats is a part of one step of the context.
  context_tx = optax.chain(
    optax.scale(1 / keys.shape[0]), optax.clip(1.0), optax.sgd(context_rate)
  )

  def of_base(trained: Trained, key: Array) -> tuple[Trained, Array]:
    base, context, opt_state = trained
    loss = partial(base_loss, context=context, key=key)
    value, _, base, opt_state = descend(base_tx, loss, base, opt_state)
    return (base, context, opt_state), value

  def of_both(trained: Trained, keys: Array) -> tuple[Trained, Array]:
    (base, context, opt_state), values = lax.scan(of_base, trained, keys)
    loss = partial(context_loss, base=base)
    _, _, context, _ = descend(context_tx, loss, context, context_tx.init(context))
    return (base, context, opt_state), values

  end, values = lax.scan(of_both, start, keys)
  return end, values[0, 0]


def cross_entropy(outputs: Array, rows: Rows) -> Array:
  """Returns the mean over the rows that count; outputs [N, O] of their own tasks."""
  # Labels are numbered in the order of tasks, as many in each.
  place = rows.y % outputs.shape[1]
  losses = optax.softmax_cross_entropy_with_integer_labels(outputs, place)
  return jnp.sum(rows.weight * losses)


def distillation(outputs: Array, targets: Array, temperature: float) -> Array:
  """Returns KL(targets || softened outputs) / O of rows [N]; both [N, O]."""
  softened = jax.nn.log_softmax(outputs / temperature)
  return optax.kl_divergence(softened, targets) / targets.shape[1]


def _outputs(network: Network) -> Callable[[PyTree, PyTree, Array, Array], Array]:
  """Returns the function of x [N, ...] and y [N] to [N, O], in the rows' contexts."""
  task_energies = network.task_energies
  if task_energies is None:
    raise ValueError("ctn needs a network with contexts, such as context_mlp")

  def outputs(params: PyTree, model_state: PyTree, x: Array, y: Array) -> Array:
    return -task_energies(params, model_state, x, y)

  return outputs


def _parts(params: PyTree) -> tuple[PyTree, PyTree]:
  """Returns the base's and the context's parameters."""
  context = {"context": params["context"]}
  return {name: params[name] for name in params if name not in context}, context


def _constraints(config: Any) -> list[Rule]:
  budget, tasks = config.method.budget, config.stream.tasks
  return [
    (
      not networks.find(config.network.name).contexts,
      "config.method.name='ctn' needs a network with contexts of tasks, not "
      f"config.network.name={config.network.name!r}; use 'context_mlp'.",
    ),
    (
      config.stream.batch_size < 2,
      "config.method.name='ctn' parts each batch in two; set config.stream.batch_size "
      "to 2 or more.",
    ),
    (
      budget < 2 * tasks,
      f"config.method.budget={budget} is less than two images for each of {tasks} "
      f"tasks; give {2 * tasks} or more.",
    ),
  ]


_PUBLISHED: dict[str, Any] = {"strength": 100.0, "temperature": 5.0, "repeats": 2}

CTN = MethodSpec(
  ctn,
  title="CTN",
  boundaries=True,
  own_objective=True,
  network="context_mlp",
  constraints=_constraints,
  published={
    "splitmnist": studies.PHAM_2021.setting(budget=250, **_PUBLISHED),
    "permmnist": studies.PHAM_2021.setting("permmnist", budget=500, **_PUBLISHED),
  },
  exempt=dict.fromkeys(
    ("one_class_keeps_energies", "one_class_keeps_state"),
    "all labels of a row's task are against each other, seen or not",
  ),
  cost=3.0,
)
