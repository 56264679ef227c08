"""CTN: what is stored where, and the two levels of a step, written out."""

from functools import cache
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ebmjax import networks, objectives
from ebmjax.methods._memories import Memory, draw, store
from ebmjax.methods.ctn import ctn
from ebmjax.types import Problem
from tests.two_tasks import CLASSES, PIXELS, SIZE, after_first_task, batch_of, end_of

RATE, HIDDEN, OUTPUTS = 0.01, 5, 2
BUDGET = 26  # of two tasks: 3 semantic and 10 episodic rows each


STRENGTH, TEMPERATURE, REPEATS, INNER_STEPS, CONTEXT_RATE = 7.0, 1.5, 2, 2, 0.3
SETTINGS: dict[str, Any] = {
  "strength": STRENGTH,
  "temperature": TEMPERATURE,
  "repeats": REPEATS,
  "inner_steps": INNER_STEPS,
  "context_rate": CONTEXT_RATE,
}


@cache  # the same functions again: nothing is compiled twice
def make(budget: int = BUDGET) -> tuple[Any, Problem]:
  network = networks.make(
    "context_mlp",
    input_shape=(PIXELS,),
    num_classes=CLASSES,
    num_tasks=2,
    hidden=HIDDEN,
    context=3,
  )
  row = jax.ShapeDtypeStruct((PIXELS,), jnp.uint8)
  objective = objectives.make("ce", "all_seen")
  problem = Problem(network, objective, optax.sgd(RATE), row, 2)
  return ctn(problem, budget=budget, **SETTINGS), problem


def outputs(params: Any, x: Any, y: Any) -> Any:
  """Returns [N, 2]: the network in the contexts of the rows' tasks, written out."""
  context, h = params["context"], jnp.asarray(x, jnp.float32) / 255
  for layer in range(2):
    dense, film = params[f"layers_{layer}"], context[f"films_{layer}"]
    a = h @ dense["kernel"] + dense["bias"][None]
    made = context["embedding"] @ film["kernel"] + film["bias"][None]
    scale, shift = (
      half / jnp.sqrt(jnp.sum(half**2, axis=1))[:, None]
      for half in (made[:, :HIDDEN], made[:, HIDDEN:])
    )
    task = y // OUTPUTS
    h = jnp.maximum(a, 0) + jnp.maximum(scale[task] * a + shift[task], 0)
  return h @ params["head"]["kernel"] + params["head"]["bias"][None]


def mean_cross_entropy(params: Any, x: Any, y: Any) -> Any:
  logs = jax.nn.log_softmax(outputs(params, x, y))
  return -jnp.mean(logs[jnp.arange(len(y)), y % OUTPUTS])


def test_a_label_s_energy_is_its_output_in_its_task_s_context():
  learner, problem = make()
  state = jax.jit(learner.init)(jax.random.key(0))
  x = batch_of(0).x
  energies = learner.energies(state, x)
  for label in range(CLASSES):
    y = jnp.full(SIZE, label)
    said = outputs(state.params, x, y)
    np.testing.assert_allclose(energies[:, label], -said[:, label % 2], rtol=1e-4)
    assert problem.network.task_energies is not None
    own = problem.network.task_energies(state.params, state.model_state, x, y)
    np.testing.assert_allclose(own, -said, rtol=1e-4, atol=1e-6)
  assert not np.allclose(energies[:, 0], energies[:, 2])  # the contexts differ


def written_out(state: Any, memory: Memory, new: Any) -> Any:
  """Returns the parameters after a step on task 1, by loops and plain gradients.

  And the largest gradient of the context that was met.
  """
  old_x, old_y, targets = memory.episodic_x[0], memory.episodic_y[0], memory.targets[0]
  semantic_x = memory.semantic_x.reshape(-1, PIXELS)
  semantic_y = memory.semantic_y.reshape(-1)

  def base_loss(base: Any, context: Any) -> Any:
    params = base | {"context": context}
    soft = jax.nn.softmax(outputs(params, old_x, old_y) / TEMPERATURE)
    kept = jnp.mean(targets * (jnp.log(targets) - jnp.log(soft)))
    learned = mean_cross_entropy(params, new.x, new.y)
    replayed = mean_cross_entropy(params, old_x, old_y)
    return learned + replayed + STRENGTH * kept

  def context_loss(context: Any, base: Any) -> Any:
    return mean_cross_entropy(base | {"context": context}, semantic_x, semantic_y)

  of_base, of_context = jax.jit(jax.grad(base_loss)), jax.jit(jax.grad(context_loss))
  base, largest = dict(state.params), 0.0
  context = base.pop("context")
  for _ in range(REPEATS):
    for _ in range(INNER_STEPS):
      gradient = of_base(base, context)
      base = jax.tree.map(lambda p, g: p - RATE * g, base, gradient)
    gradient = of_context(context, base)
    gradient = jax.tree.map(lambda g: g / REPEATS, gradient)
    largest = max(
      largest, *(float(jnp.abs(g).max()) for g in jax.tree.leaves(gradient))
    )
    context = jax.tree.map(
      lambda p, g: p - CONTEXT_RATE * jnp.clip(g, -1, 1), context, gradient
    )
  return base | {"context": context}, largest


def test_a_step_is_two_levels_of_descent():
  """With two tasks all ten old rows are drawn, in whatever order."""
  learner, _ = make()
  state = after_first_task(learner)
  state, _ = jax.jit(learner.step)(state, jax.random.key(3), batch_of(1))
  # Steep enough for the context's gradient to be clipped.
  head = jax.tree.map(lambda leaf: 30 * leaf, state.params["head"])
  state = state._replace(params=state.params | {"head": head})
  batch = batch_of(1)._replace(x=batch_of(1).x[::-1], y=batch_of(1).y[::-1])
  memory, new = store(state.own, batch)
  expected, largest = written_out(state, memory, new)
  after, _ = jax.jit(learner.step)(state, jax.random.key(4), batch)
  assert largest > 1
  chex.assert_trees_all_close(after.params, expected, rtol=1e-4, atol=1e-5)
  chex.assert_trees_all_equal(after.own, memory)


def test_contexts_of_tasks_to_come_stay_as_they_are():
  learner, _ = make()
  state = jax.jit(learner.init)(jax.random.key(0))
  after, _ = jax.jit(learner.step)(state, jax.random.key(1), batch_of(0))
  before, now = (s.params["context"]["embedding"] for s in (state, after))
  np.testing.assert_array_equal(before[1], now[1])
  assert (before[0] != now[0]).all()


def test_what_is_stored_of_a_task():
  """The rules of the memories, played row by row on numbered rows."""
  learner, _ = make()
  memory = jax.jit(learner.init)(jax.random.key(0)).own
  semantic, episodic, place, late = [0] * 3, [0] * 10, 0, 0
  for number in range(9):
    rows = [10 * number + i + 1 for i in range(SIZE)]
    x = jnp.tile(jnp.array(rows, jnp.uint8)[:, None], (1, PIXELS))
    memory, new = jax.jit(store)(memory, batch_of(1)._replace(x=x))
    trained = rows[1:] + ([late] if number else [])
    if number == 0:
      semantic, episodic = [rows[0]] * 3, [rows[1]] * 10
    semantic[number % 3] = late = rows[0]
    for row in trained:
      if place < 10:
        episodic[place] = row
      place += 1
    place = 0 if place >= 10 else place
    assert new.x[:, 0][new.weight > 0].tolist() == trained
    np.testing.assert_allclose(new.weight.sum(), 1, rtol=1e-6)
    assert memory.semantic_x[1, :, 0].tolist() == semantic
    assert memory.episodic_x[1, :, 0].tolist() == episodic
  assert not memory.semantic_x[0].any() and not memory.episodic_x[0].any()


def test_the_end_of_a_task_keeps_what_is_said_of_its_rows():
  learner, _ = make()
  state = after_first_task(learner)
  memory = state.own
  said = outputs(state.params, memory.episodic_x[0], memory.episodic_y[0])
  soft = jax.nn.softmax(said / TEMPERATURE)
  np.testing.assert_allclose(memory.targets[0], soft, rtol=1e-4)
  assert not memory.targets[1].any()
  assert (int(memory.batches), int(memory.place)) == (0, 0)


def test_only_rows_of_earlier_tasks_are_drawn():
  learner, _ = make()
  memory = jax.jit(learner.init)(jax.random.key(0)).own
  numbers = jnp.arange(20, dtype=jnp.int32).reshape(2, 10)
  memory = memory._replace(episodic_y=numbers)
  for task, expected in ((0, set()), (1, set(range(10)))):
    rows, _ = jax.jit(draw)(jax.random.key(5), memory, jnp.int32(task))
    assert set(rows.y[rows.weight > 0].tolist()) == expected
  both, _ = jax.jit(draw)(jax.random.key(5), memory, jnp.int32(2))
  drawn = both.y.tolist()
  assert len(set(drawn)) == 10 and min(drawn) < 10 <= max(drawn)


def test_no_more_rows_are_drawn_than_the_authors_draw():
  learner, _ = make(budget=200)  # 80 episodic rows a task
  memory = jax.eval_shape(learner.init, jax.random.key(0)).own
  assert memory.episodic_y.shape == (2, 80)
  rows, _ = jax.eval_shape(draw, jax.random.key(5), memory, jnp.int32(1))
  assert rows.y.shape == (64,)


def test_a_network_without_contexts_is_refused():
  _, problem = make()
  plain = problem._replace(network=problem.network._replace(task_energies=None))
  with pytest.raises(ValueError, match="needs a network with contexts"):
    ctn(plain)


def test_a_short_task_ends_all_the_same():
  """A task of one batch: its memories are copies, and all of it stays finite."""
  learner, _ = make()
  state = after_first_task(learner)
  state, metrics = jax.jit(learner.step)(state, jax.random.key(3), batch_of(1))
  state = learner.consolidate(state, jax.random.key(4), end_of(1))
  assert np.isfinite(metrics["loss"])
  chex.assert_tree_all_finite((state.params, state.own.targets))
