"""What a learner is shown by the runner, and how seeds and chunks are run."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ebmjax import metrics, streams
from ebmjax.config import default, with_settings
from ebmjax.runtime import evaluation, scan
from ebmjax.runtime.trainer import make_run_spec
from ebmjax.types import Learner
from tests.states import made, small

TRAIN_Y = np.tile(np.arange(10), 20)
TEST_Y = np.tile(np.arange(10), 3)


class Seen(NamedTuple):
  """The state of a learner that keeps its last batch and counts its steps."""

  batch: Any
  count: Any
  noise: Any


def spy(size: int, pixels: int, classes: int) -> Learner:
  """Returns a learner that learns nothing and remembers what it was shown."""

  def init(key):
    del key
    zeros = (
      jnp.zeros((size, pixels), jnp.uint8),
      jnp.zeros(size, jnp.int32),
      jnp.zeros(size, jnp.int32),
      jnp.zeros(classes, bool),
      jnp.zeros(classes, bool),
      jnp.int32(0),
    )
    return Seen(zeros, jnp.int32(0), jnp.float32(0))

  def step(state, key, batch):
    seen = Seen(tuple(batch), state.count + 1, state.noise + jax.random.uniform(key))
    return seen, {"loss": seen.noise}

  def energies(state, x):
    # The true class is written into the first pixel; 0 is best.
    del state
    return jnp.abs(x[:, :1].astype(jnp.float32) - jnp.arange(classes)[None, :])

  return Learner(init, step, lambda state, key, view: state, energies)


def parts(seeds=(0,), **changes):
  chosen = {"iterations": 6, "batch_size": 8, "tasks": 5} | changes
  settings = {f"stream.{name}": value for name, value in chosen.items()}
  spec = with_settings(default(), settings).stream
  stream = streams.stack(
    [streams.build(spec, TRAIN_Y, TEST_Y, seed=seed) for seed in seeds]
  )
  tables = scan.seed_tables(stream, list(seeds), test_multiple=4)
  rng = np.random.default_rng(0)
  x = rng.integers(0, 256, (len(TRAIN_Y), 28, 28), dtype=np.uint8)
  images = scan.Images(jnp.asarray(streams.shown_images(spec, x)), jnp.asarray(TRAIN_Y))
  return spec, stream, tables, images


def test_a_chunk_is_no_longer_than_the_stream():
  _, stream, *_ = parts()
  (chunk,) = scan.chunks(stream, 0, 30, 10**12)
  assert chunk.rows.shape == (1, 30, 8)
  assert chunk.active.all()


def last_batch(stop, scenario="class", setting="boundary_aware", **changes):
  """Returns the batch of the last of `stop` steps, and the stream."""
  _, stream, tables, images = parts(scenario=scenario, setting=setting, **changes)
  learner = spy(8, images.x.shape[1], tables.classes.shape[-1])
  view = scan.BatchView(setting == "boundary_free", scenario == "task")
  train = scan.make_train(learner, view)
  states = scan.make_init(learner)(tables.key)
  for chunk in scan.chunks(stream, 0, stop, 5):
    states, _ = train(states, tables, images, chunk)
  assert int(states.count[0]) == stop
  return [np.asarray(leaf[0]) for leaf in states.batch], stream, images


def test_boundary_aware_batch():
  (x, y, task, seen, negatives, step), stream, images = last_batch(9)
  rows = stream.rows[0, 8]
  np.testing.assert_array_equal(x, np.asarray(images.x)[rows])
  np.testing.assert_array_equal(y, TRAIN_Y[rows])
  np.testing.assert_array_equal(task, np.ones(8))
  np.testing.assert_array_equal(np.flatnonzero(seen), [0, 1, 2, 3])
  np.testing.assert_array_equal(np.flatnonzero(negatives), [2, 3])
  assert step == 8


def test_task_incremental_batch_shows_the_task_s_classes_alone():
  (_, _, _, seen, negatives, _), _, _ = last_batch(9, scenario="task")
  np.testing.assert_array_equal(np.flatnonzero(seen), [2, 3])
  np.testing.assert_array_equal(np.flatnonzero(negatives), [2, 3])


@pytest.mark.parametrize(("own_only", "seen"), [(False, [0, 1, 2, 3]), (True, [2, 3])])
def test_a_finished_task_shows_the_classes_of_its_batches(own_only, seen):
  _, _, tables, images = parts()
  learner = Learner(
    lambda key: jnp.zeros(10, bool),
    lambda state, key, batch: (state, {}),
    lambda state, key, view: view.seen,
    lambda state, x: jnp.zeros((len(x), 10)),
  )
  view = scan.BatchView(own_task_only=own_only)
  consolidate = scan.make_consolidate(learner, view)
  states = scan.make_init(learner)(tables.key)
  states = consolidate(states, tables, images, np.int32(1))
  np.testing.assert_array_equal(np.flatnonzero(states[0]), seen)


def test_domain_incremental_batch_shares_labels():
  (_, y, _, seen, _, _), _, _ = last_batch(9, scenario="domain")
  assert set(y.tolist()) == {0, 1}
  assert seen.tolist() == [True, True]


def test_boundary_free_batch_hides_the_task_and_mixes_permutations():
  changes = {"name": "permuted", "tasks": 2, "epochs_per_task": 2}
  _, stream, _, _ = parts(setting="boundary_free", **changes)
  mixed = np.flatnonzero(stream.tasks[0].min(1) != stream.tasks[0].max(1))[0]
  (x, y, task, seen, negatives, _), stream, images = last_batch(
    int(mixed) + 1, setting="boundary_free", **changes
  )
  rows, tasks = stream.rows[0, mixed], stream.tasks[0, mixed]
  order = stream.permutation[0][tasks]
  expected = np.take_along_axis(np.asarray(images.x)[rows], order, axis=1)
  np.testing.assert_array_equal(x, expected)
  np.testing.assert_array_equal(y, TRAIN_Y[rows] + 10 * tasks)
  assert (task == -1).all()
  assert seen.all()
  np.testing.assert_array_equal(np.flatnonzero(negatives), np.unique(y))


@pytest.mark.parametrize("driver", ["map", "vmap"])
@pytest.mark.parametrize("size", [1, 4, 30, 100])
def test_chunks_and_drivers_do_not_change_the_keys(driver, size):
  """The same random numbers reach every (seed, step), and padding does nothing."""
  _, stream, tables, images = parts(seeds=(0, 5))
  learner = spy(8, 784, 10)
  train: Any = scan.make_train(learner, scan.BatchView(), scan.Compiler(driver))
  states = scan.make_init(learner, scan.Compiler(driver))(tables.key)
  losses = []
  for chunk in scan.chunks(stream, 0, 30, size):
    states, metrics = train(states, tables, images, chunk)
    losses.append(np.asarray(metrics["loss"])[:, chunk.active])
  assert train._cache_size() == 1  # one shape, compiled once
  total = np.concatenate(losses, axis=1)
  assert total.shape == (2, 30)
  drawn = np.diff(total, axis=1)
  assert len(np.unique(drawn.round(5))) == drawn.size
  steps = jax.vmap(
    lambda s: jax.random.fold_in(jax.random.fold_in(tables.key[1], 1), s)
  )
  expected = np.cumsum(jax.vmap(jax.random.uniform)(steps(jnp.arange(30))))
  np.testing.assert_allclose(total[1], expected, rtol=1e-5)


def test_driver_follows_the_backend_unless_named():
  assert scan.choose_driver("auto", "cpu") == "map"
  assert scan.choose_driver("auto", "gpu") == "vmap"
  assert scan.choose_driver("vmap", "cpu") == "vmap"


def test_states_own_their_buffers():
  """An init that returns one array twice must survive donation."""

  def init(key):
    twice = jax.random.normal(key, (3,))
    return (twice, twice)

  states = scan.make_init(spy(1, 1, 1)._replace(init=init))(
    jnp.stack([jax.random.key(0)])
  )
  donated = jax.jit(lambda s: jax.tree.map(jnp.negative, s), donate_argnums=0)
  one, two = donated(states)
  np.testing.assert_array_equal(one, two)


def test_evaluation_counts_what_a_table_says():
  """Tasks 0 and 1 are told right, and every 4 of task 2 looks like a 1."""
  _, _, tables, _ = parts()
  pixels = np.zeros((len(TEST_Y), 784), np.uint8)
  pixels[:, 0] = np.where(TEST_Y == 4, 1, TEST_Y)  # every 4 looks like a 1
  images = scan.Images(jnp.asarray(pixels), jnp.asarray(TEST_Y))
  learner = spy(8, 784, 10)
  states = scan.make_init(learner)(tables.key)
  evaluate = evaluation.make_evaluate(learner, 4)
  candidates = jnp.arange(10) < 6
  counts = {
    task: evaluate(states, tables, images, jnp.int32(task), candidates)
    for task in range(4)
  }
  found = evaluation.collect(counts, 5, scored={0, 1, 2})
  np.testing.assert_allclose(found.accuracy[0, :3], [1, 1, 0.5])
  assert np.isnan(found.accuracy[0, 3:]).all()
  # Within its own task a 4 that looks like a 1 is nearer to 4 than to 5: right.
  np.testing.assert_allclose(found.masked_accuracy[0, :4], [1, 1, 1, 1])
  assert np.isnan(found.masked_accuracy[0, 4])
  confusion = np.diag([3, 3, 3, 3, 0, 3, 0, 0, 0, 0])
  confusion[4, 1] = 3
  np.testing.assert_array_equal(found.confusion[0], confusion)
  np.testing.assert_allclose(found.energies[0, 0], np.arange(10) / 9, rtol=1e-6)
  np.testing.assert_allclose(found.energies[0, 6], 0)


@pytest.mark.parametrize(("variant", "kept"), [("sbc", True), ("slda", False)])
def test_states_that_need_no_preparation_are_evaluated_in_place(variant, kept):
  """Not from a copy, which would take as much memory as all states."""
  spec = make_run_spec(small(f"configs/splitmnist.py:{variant}"), made("mnist"), "map")
  states = scan.make_init(spec.learner)(spec.tables.key)
  ready = evaluation.make_prepare(spec.learner)(states)
  assert (ready is states) is kept


def test_unseen_classes_are_ranked_behind_those_seen():
  """By lowest and free energies of the candidates, as NumPy finds them."""
  _, _, tables, _ = parts(seeds=(0, 1))
  rng = np.random.default_rng(1)
  weights = rng.normal(size=(2, 784, 10)).astype(np.float32)
  pixels = rng.integers(0, 3, (len(TEST_Y), 784), dtype=np.uint8)
  images = scan.Images(jnp.asarray(pixels), jnp.asarray(TEST_Y))
  learner = spy(8, 784, 10)._replace(
    energies=lambda w, x: x.astype(jnp.float32) @ w / 10
  )
  evaluate = evaluation.make_evaluate(learner, 4)
  counts = {
    task: evaluate(weights, tables, images, jnp.int32(task), jnp.arange(10) < 4)
    for task in range(5)
  }
  found = evaluation.collect(counts, 5, scored={0, 1}, outside={2, 3, 4})
  energies = (np.einsum("np,rpc->rnc", pixels, weights) / 10)[:, :, :4].astype(float)
  seen = TEST_Y < 4
  for run, e in enumerate(energies):
    free = -np.log(np.exp(-e).sum(axis=1))
    for name, ranks in (("lowest", e.min(axis=1)), ("free", free)):
      pair = ranks[seen], ranks[~seen]
      wanted = metrics.auroc(*pair), metrics.fpr95(*pair)
      told = [getattr(found, f"{kind}_{name}")[run] for kind in ("auroc", "fpr95")]
      np.testing.assert_allclose(told, wanted, atol=1e-6)
    sure, hit = np.exp(free - e.min(axis=1)), e.argmin(axis=1) == TEST_Y
    gap = metrics.calibration_error(sure[seen], hit[seen])
    np.testing.assert_allclose(found.calibration_error[run], gap, atol=1e-5)
  alone = evaluation.collect(counts, 5, scored={0, 1})
  assert np.isnan(alone.auroc_free).all() and np.isfinite(alone.calibration_error).all()
  untrained = evaluation.collect(counts, 5, scored=())
  assert np.isnan(untrained.calibration_error).all()


def test_each_image_keeps_its_digits_at_large_energies():
  energies = 1e7 + jnp.array([[3.0, 1.0, 2.0, -50.0]])
  candidates = jnp.array([True, True, True, False])
  found = evaluation.each_image(energies, jnp.array([1]), candidates)
  assert found["lowest"] == 1e7 + 1 and found["hit"]
  wanted = np.log(1 + np.exp(-1.0) + np.exp(-2.0))
  np.testing.assert_allclose(found["excess"], [wanted], rtol=1e-6)


def test_unit_range_survives_equal_energies():
  np.testing.assert_array_equal(evaluation.unit_range(jnp.full((2, 3), 5.0)), 0)
