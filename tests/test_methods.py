"""One battery for every method: a new one is tested by being in the table."""

import functools
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ebmjax import methods, networks, objectives
from ebmjax.config import default
from ebmjax.methods import METHODS
from ebmjax.runtime.checkpoints import Checkpoints
from ebmjax.traits import TRAITS
from ebmjax.types import Batch, Learner, Problem, TaskView

pytestmark = pytest.mark.usefixtures("quick_compilation")

PIXELS, CLASSES, SIZE = 12, 4, 16
# iCaRL and CTN serve classifiers alone; the others take long to compile and are tested
# on the energy network by whole runs (test_experiment_methods.py).
ON_THE_CLASSIFIER = ("icarl", "gss_greedy", "ctn", "dgr", "bir", "pgma")
# (method, network, objective, negatives): each method on each network it serves.
CASES = [("finetune", "ebm", "joint_pairs", "repaired")]
CASES += [("finetune", "ebm", "likelihood", "all_of_batch")]
CASES += [("finetune", "sbc", "contrastive", "one_of_batch")]
CASES += [
  (method, network, objective, negatives)
  for method in METHODS
  for network, objective, negatives in (
    ("ebm", "contrastive", "one_of_task"),
    ("sbc", "ce", "all_seen"),
  )
  if network == "sbc" or method not in ON_THE_CLASSIFIER
]
_SGD = optax.sgd(0.01)  # one for all: another would be compiled again
_ADAM = optax.adam(3e-3)
battery = pytest.mark.parametrize("case", CASES, ids="-".join)


@functools.cache  # the same functions again: nothing is compiled twice
def make(case: tuple[str, str, str, str], tx: Any = None, **changes: Any) -> Learner:
  method, name, objective, negatives = case
  config = default()
  config.network.update({"name": name, "hidden": 24})
  config.network.context = 3 if method == "ctn" else 0
  network = networks.make(
    config.network, input_shape=(PIXELS,), num_classes=CLASSES, num_tasks=2
  )
  tx = tx or _ADAM
  config.method.update({"name": method, "budget": 12, "std_init": 0.05})
  config.method.update({"generator_hidden": 8, "latent": 3})
  config.method.update({"adapted": 5, "dreams": 6, **changes})
  row = jax.ShapeDtypeStruct((PIXELS,), jnp.uint8)
  problem = Problem(network, objectives.make(objective, negatives), tx, row, 2)
  return METHODS[method](problem, config.method)


def batch_at(step: int, labels: tuple[int, ...] = (0, 1)) -> Batch:
  """Returns a batch of two separable classes, a function of the step alone."""
  rng = np.random.default_rng(step)
  y = rng.choice(labels, SIZE)
  x = rng.integers(0, 90, (SIZE, PIXELS))
  x[np.arange(SIZE), y] = 255
  mask = jnp.arange(CLASSES) < 2
  return Batch(
    x=jnp.asarray(x, jnp.uint8),
    y=jnp.asarray(y, jnp.int32),
    task=jnp.zeros(SIZE, jnp.int32),
    seen=mask,
    negatives=mask,
    step=jnp.int32(step),
  )


def view_of(task: int) -> TaskView:
  """Returns a finished task of 40 images, two of its rows padding."""
  rng = np.random.default_rng(100 + task)
  y = rng.choice((2 * task, 2 * task + 1), 40)
  x = rng.integers(0, 90, (40, PIXELS))
  x[np.arange(40), y] = 255
  return TaskView(
    x=jnp.asarray(x, jnp.uint8),
    y=jnp.asarray(y, jnp.int32),
    permutation=jnp.zeros(0, jnp.int32),
    rows=jnp.where(jnp.arange(40) < 38, jnp.arange(40), 0),
    valid=jnp.arange(40) < 38,
    task=jnp.int32(task),
    seen=jnp.arange(CLASSES) < 2 * task + 2,
  )


def train(learner: Learner, state: Any, steps: int, compiled: bool = True) -> Any:
  step = jax.jit(learner.step) if compiled else learner.step
  for i in range(steps):
    state, metrics = step(state, jax.random.key(i), batch_at(i))
    assert np.isfinite(metrics["loss"])
  return state


def reuses_a_key(function: Any, *given: Any) -> bool:
  """JAX looks for it while it traces; nothing needs to be compiled."""
  with jax.debug_key_reuse(True):
    try:
      jax.jit(function).trace(*given)
    except jax.errors.KeyReuseError:
      return True
  return False


@pytest.mark.parametrize("method", METHODS)
def test_methods_that_consolidate_are_known_to(method):
  """By the table that refuses them where no boundary would ever be told."""
  case = next(case for case in CASES if case[0] == method and case[1] == "sbc")
  assert make(case).consolidates == TRAITS[method].boundaries


def test_every_method_has_its_traits():
  assert list(TRAITS) == list(METHODS)


def test_a_learner_of_four_functions_is_told_of_boundaries():
  """`consolidates` is for those that have nothing to do there."""
  learner = make(("ewc", "sbc", "ce", "all_seen"))
  assert Learner(*learner[:4]).consolidates


def test_a_method_can_be_made_without_a_configuration():
  config, network = default(), ("sbc", 24)
  config.network.update(dict(zip(("name", "hidden"), network, strict=True)))
  made = networks.make(config.network, input_shape=(PIXELS,), num_classes=CLASSES)
  row = jax.ShapeDtypeStruct((PIXELS,), jnp.uint8)
  problem = Problem(made, objectives.make("ce", "all_seen"), _SGD, row, 2)
  learner = methods.make("ewc", problem, strength=3)
  state = jax.jit(learner.init)(jax.random.key(0))
  train(learner, state, 1)
  with pytest.raises((AttributeError, KeyError), match="strenght"):
    methods.make("ewc", problem, strenght=3)


@battery
def test_compiled_equals_eager(case):
  learner = make(case, _SGD)
  state = jax.jit(learner.init)(jax.random.key(0))
  one, two = (train(learner, state, 1, compiled) for compiled in (True, False))
  chex.assert_trees_all_close(one, two, rtol=1e-5, atol=1e-6)


@battery
def test_seeds_side_by_side_equal_seeds_in_turn(case):
  learner = make(case, _SGD)
  keys = jax.random.split(jax.random.key(0), 3)
  second = jnp.ones(SIZE, jnp.int32)  # the number of the task: the old has its weight
  later = batch_at(1)._replace(task=second, seen=jnp.ones(CLASSES, bool))
  batches, view = [batch_at(0), later], view_of(0)

  def run(key):
    """A step, the end of the task, and a step with what it left behind."""
    state, _ = learner.step(learner.init(key), key, batches[0])
    state = learner.consolidate(state, jax.random.fold_in(key, 1), view)
    return learner.step(state, jax.random.fold_in(key, 2), batches[1])

  both, one = jax.jit(jax.vmap(run))(keys), jax.jit(run)
  for i, key in enumerate(keys):
    alone = one(key)
    mine = jax.tree.map(lambda leaf, i=i: leaf[i], both)
    chex.assert_trees_all_close(mine, alone, rtol=1e-5, atol=1e-6)


@battery
def test_a_step_keeps_structure_shape_and_type(case):
  learner = make(case)
  state = jax.eval_shape(learner.init, jax.random.key(0))
  after, metrics = jax.eval_shape(learner.step, state, jax.random.key(0), batch_at(0))
  chex.assert_trees_all_equal_structs(state, after)
  chex.assert_trees_all_equal_shapes_and_dtypes(state, after)
  assert metrics["loss"].shape == ()


@battery
def test_consolidating_keeps_structure_shape_and_type(case):
  learner = make(case)
  state = jax.eval_shape(learner.init, jax.random.key(0))
  after = jax.eval_shape(learner.consolidate, state, jax.random.key(0), view_of(0))
  chex.assert_trees_all_equal_structs(state, after)
  chex.assert_trees_all_equal_shapes_and_dtypes(state, after)


@battery
def test_it_goes_on_after_a_boundary(case):
  """Two boundaries, steps between, all finite."""
  learner = make(case, _SGD)
  state = train(learner, jax.jit(learner.init)(jax.random.key(0)), 3)
  for task in (0, 1):
    key = jax.random.key(50 + task)
    state = jax.jit(learner.consolidate)(state, key, view_of(task))
    batch = batch_at(task)._replace(
      task=jnp.full(SIZE, task + 1, jnp.int32), seen=jnp.ones(CLASSES, bool)
    )
    state, metrics = jax.jit(learner.step)(state, key, batch)
    assert np.isfinite(metrics["loss"])
  chex.assert_tree_all_finite(state)


@battery
def test_it_learns_two_classes_by_one_program(case):
  learner = make(case)
  state = train(learner, jax.jit(learner.init)(jax.random.key(0)), 1)
  step: Any = jax.jit(learner.step)
  programs = step._cache_size()
  state = train(learner, state, 150)
  assert step._cache_size() == programs
  batch = batch_at(999)
  energies = learner.energies(state, batch.x)
  assert energies.shape == (SIZE, CLASSES)
  assert (jnp.argmin(energies[:, :2], axis=1) == batch.y).mean() > 0.9


@battery
def test_a_batch_of_one_class_changes_nothing_but_moments(case):
  """No negative, no gradient: plain SGD must leave every parameter as it is."""
  if case[0] == "icarl":
    pytest.skip("a sigmoid's cross-entropy has a gradient for a single class, too")
  if case[0] == "ctn":
    pytest.skip("all labels of a row's task are against each other, seen or not")
  if case[0] == "bir":
    pytest.skip("the network also learns to lead back to its inputs")
  learner = make(case, _SGD)
  batch = batch_at(0, labels=(1,))
  if case[3] in ("one_of_task", "all_seen"):
    only = jnp.arange(CLASSES) == 1
    batch = batch._replace(seen=only, negatives=only)
  state = jax.jit(learner.init)(jax.random.key(0))
  after, metrics = jax.jit(learner.step)(state, jax.random.key(1), batch)
  assert metrics["loss"] == 0
  if case[0] in ("gss_greedy", "pgma"):  # it may be stored, an autoencoder learns it
    state, after = state.params, after.params
  if case[0] == "dgr":  # the generator learns it
    state, after = state.solver, after.solver
  chex.assert_trees_all_equal(state, after)


@battery
def test_save_load_step_equals_step(case, tmp_path):
  learner = make(case)
  state = jax.jit(learner.init)(jax.random.key(0))
  state = train(learner, state, 2)
  with Checkpoints(tmp_path, keep=1) as keeper:
    keeper.save(2, state)
    restored = keeper.restore(state)
  assert restored is not None and restored[0] == 2
  straight, _ = jax.jit(learner.step)(state, jax.random.key(9), batch_at(9))
  resumed, _ = jax.jit(learner.step)(restored[1], jax.random.key(9), batch_at(9))
  chex.assert_trees_all_equal(straight, resumed)


@battery
def test_no_key_is_used_twice(case):
  learner, key = make(case), jax.random.key(0)
  state = jax.eval_shape(learner.init, key)
  assert not reuses_a_key(learner.init, key)
  assert not reuses_a_key(learner.step, state, key, batch_at(0))
  assert not reuses_a_key(learner.consolidate, state, key, view_of(0))


def test_a_key_that_is_used_twice_is_found_even_in_what_was_traced_before():
  def twice(key):
    return jax.random.normal(key) + jax.random.uniform(key)

  jax.jit(twice).trace(jax.random.key(0))
  assert reuses_a_key(twice, jax.random.key(0))


def test_contrastive_learning_leaves_absent_classes_embeddings_alone():
  """Old classes are not suppressed: only the two labels' rows get a gradient."""
  learner = make(("finetune", "ebm", "contrastive", "one_of_batch"), _SGD)
  state = learner.init(jax.random.key(0))
  after = train(learner, state, 5)
  before, now = (
    np.asarray(s.params["label_gate"]["embedding"]) for s in (state, after)
  )
  np.testing.assert_array_equal(before[2:], now[2:])
  assert (before[:2] != now[:2]).any(axis=1).all()


def test_cross_entropy_pushes_seen_classes_down():
  """The mechanism of forgetting: a seen class absent from the batch loses its bias."""
  learner = make(("finetune", "sbc", "ce", "all_seen"), _SGD)
  state = learner.init(jax.random.key(0))
  batch = batch_at(0)._replace(seen=jnp.arange(CLASSES) < 3)
  after, _ = learner.step(state, jax.random.key(0), batch)
  change = np.asarray(after.params["head"]["bias"] - state.params["head"]["bias"])
  assert change[2] < 0
  assert change[3] == 0  # never seen: untouched
