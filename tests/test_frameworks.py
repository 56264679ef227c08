"""Networks of other libraries; docs/howto/losses.md has their training steps."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import ebmjax
from ebmjax import methods, networks, objectives
from ebmjax.errors import ConfigError
from ebmjax.networks import Inputs
from ebmjax.report import plots
from ebmjax.testing import check_network
from ebmjax.testing.methods import check_resumes_from_a_checkpoint, make_trial
from ebmjax.types import Problem, make_batch
from tests.helpers import SPLIT, make_config, write_idx
from tests.outside import equinox_network, jax_network, nnx_network

CLASSES, SIZE = 3, 5
NNX = "tests.outside.nnx_network:SPEC"
X = jnp.asarray(np.random.default_rng(0).normal(size=(12, SIZE)), jnp.float32)
Y = X[:, :CLASSES].argmax(axis=1)


def test_functions_under_a_method_in_a_loop_of_one_s_own():
  """The parameters of a plain energy, held by SI; all that is needed in ten lines."""

  def energies(params, x, labels):
    return -jnp.take_along_axis(x @ params, labels, axis=1)

  network = networks.from_functions(
    lambda key: jax.random.normal(key, (SIZE, CLASSES)), energies, CLASSES
  )
  objective = objectives.make("contrastive", "one_of_batch")
  row = jax.ShapeDtypeStruct((SIZE,), jnp.float32)
  learner = methods.make("si", Problem(network, objective, optax.adam(0.3), row, 2))
  state, step = jax.jit(learner.init)(jax.random.key(0)), jax.jit(learner.step)
  batch = make_batch(X, Y, num_classes=CLASSES)
  found = []
  for number in range(40):
    numbered = batch._replace(step=jnp.int32(number))
    state, metrics = step(state, jax.random.key(number), numbered)
    found.append(metrics["loss"])
  assert found[-1] < found[0] / 2
  np.testing.assert_allclose(learner.energies(state, X), -X @ state.params, rtol=1e-5)


def test_the_network_of_nnx_passes_the_battery():
  check_network(nnx_network.SPEC)


def test_the_network_of_haiku_passes_the_battery():
  pytest.importorskip("haiku", reason="the extra `test` brings dm-haiku")
  check_network(networks.find("tests.outside.haiku_network:SPEC"))


def test_the_network_of_equinox_has_the_right_shapes_and_grows():
  spec = equinox_network.SPEC
  trained, fresh = (
    spec.make(Inputs((SIZE,), classes), units=4).init(jax.random.key(classes))
    for classes in (3, 4)
  )
  grown, _ = networks.grow(trained, fresh)
  np.testing.assert_array_equal(grown.vectors[:3], trained[0].vectors)
  name = "tests.outside.equinox_network:SPEC"
  network = networks.make(name, input_shape=(SIZE,), num_classes=4, units=4)
  found = jax.eval_shape(network.energies, grown, {}, X, jnp.arange(4))
  assert found[0].shape == (len(X), 4)
  with pytest.raises(ConfigError, match="this network has no features"):
    network.features(grown, {}, X)


def test_state_of_nnx_moves_in_training_alone_and_dropout_is_drawn_anew():
  network = nnx_network.SPEC.make(Inputs((SIZE,), CLASSES), rank=8, drop=0.5)
  params, state = jax.jit(network.init)(jax.random.key(0))
  labels = jnp.arange(CLASSES)
  run = jax.jit(network.energies, static_argnames="train")
  first, moved = run(params, state, X, labels, train=True)
  again, _ = run(params, moved, X, labels, train=True)
  assert not np.allclose(first, again)
  assert not np.allclose(moved["norm"]["mean"], state["norm"]["mean"])
  one, kept = run(params, state, X, labels)
  np.testing.assert_array_equal(one, run(params, state, X, labels)[0])
  jax.tree.map(np.testing.assert_array_equal, kept, state)


def test_a_checkpoint_holds_running_statistics_and_random_streams():
  check_resumes_from_a_checkpoint(make_trial(methods.find("finetune"), NNX))


def test_a_run_with_a_network_of_nnx_becomes_a_model(tmp_path: Path, monkeypatch):
  monkeypatch.setattr(plots, "draw", lambda history, scalars: {})
  data_dir = write_idx(tmp_path / "data")
  changes = {"network.name": NNX, "network.rank": 8}
  config = ebmjax.config.with_settings(make_config(f"{SPLIT}:smoke", data_dir), changes)
  results = ebmjax.run(config, tmp_path / "run")
  assert results["config"]["network"] == {"name": NNX, "rank": 8, "drop": 0.1}
  model = ebmjax.load(tmp_path / "run")
  assert model.features(np.zeros((2, 28, 28), np.uint8)).shape == (2, 8)


def test_a_network_of_functions_learns_classes_as_they_come():
  """Room for a ninth class: the network is built again, and takes over what it knew."""
  rng = np.random.default_rng(0)
  model = ebmjax.EnergyClassifier(
    "finetune",
    "tests.outside.jax_network:SPEC",
    settings={"network.units": 16, "optimiser.learning_rate": 0.03},
    batch_size=16,
  )
  assert jax_network.SPEC.keys["units"].default == 64
  for classes in (range(8), (8, 9)):
    y = rng.permutation(np.repeat(classes, 32))
    x = rng.normal(size=(len(y), 12)) + 4 * np.eye(12)[y]
    model.partial_fit(x, y)
  assert model.classes_.tolist() == [*range(10)]
  found = model.energies(x)[:, 8:]  # of classes that never met the others
  assert np.mean(np.argmin(found, axis=1) == y - 8) > 0.9
