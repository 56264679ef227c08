"""The CIFAR experiments, made small, from images to results."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ebmjax import experiment
from ebmjax.config import flat_keys, loading, with_settings
from ebmjax.config.validation import resolve
from ebmjax.errors import ConfigError
from ebmjax.models import loading as loading_models
from ebmjax.networks.cifar100 import NormTrunk, load_trunk, trunk_file
from ebmjax.runtime.trainer import make_learner, make_problem
from ebmjax.tools import export
from ebmjax.types import TaskView
from tests.helpers import ROOT, assert_same_bits, make_config, read_results
from tests.made_data import trunk_features

CIFAR10 = str(ROOT / "configs" / "cifar10.py")
CIFAR100 = str(ROOT / "configs" / "cifar100.py")
PRETRAIN = str(ROOT / "configs" / "pretrain_cifar10.py")
TINY = {"stream__iterations": 4, "stream__batch_size": 8, "eval__batch_size": 20}


pytestmark = pytest.mark.usefixtures("no_plots")


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
  """Returns a folder with small sets of both names, and a trunk's weights."""
  folder = tmp_path_factory.mktemp("cifar")
  rng = np.random.default_rng(0)
  for name, classes in (("cifar10", 10), ("cifar100", 100)):
    arrays: dict[str, Any] = {}
    for part, count in (("train", 4 * classes), ("test", classes)):
      arrays[f"x_{part}"] = rng.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)
      arrays[f"y_{part}"] = np.arange(count) % classes
    np.savez(folder / f"{name}.npz", **arrays)
  trunk = jax.jit(NormTrunk().init)(jax.random.key(0), jnp.zeros((1, 32, 32, 3)))
  (folder / "trunk.npz").write_bytes(trunk_file(trunk))
  return folder


@pytest.mark.parametrize("variant", ["smoke", "sbc,smoke"])
def test_cifar10(variant, data_dir, tmp_path):
  experiment.run(make_config(f"{CIFAR10}:{variant}", data_dir, **TINY), tmp_path)
  results = read_results(tmp_path)
  assert results["average_accuracy"]["n"] == 1
  assert np.array(results["accuracy_matrix"]).shape == (1, 2, 2)
  assert results["config"]["data"]["augment"] == "crop_and_flip"


@pytest.mark.parametrize(
  "variant", ["smoke", "fixed,all_seen,smoke", "fixed,all_of_batch,smoke"]
)
def test_cifar100(variant, data_dir, tmp_path):
  config = make_config(
    f"{CIFAR100}:{variant}",
    data_dir,
    network__pretrained=str(data_dir / "trunk.npz"),
    **TINY,
  )
  results = experiment.run(config, tmp_path)
  assert 0 <= results["average_accuracy"]["mean"] <= 100
  assert results["facts"]["parameters"] == 1024 * 8 + 8 + 8 * 8 + 8 + 8 + 1


def test_the_trunk_s_features_as_embeddings_give_the_same_bits(data_dir, tmp_path):
  """The run of `cifar100.py:fixed` again, by a user who has the features alone."""
  config = make_config(
    f"{CIFAR100}:fixed,smoke",
    data_dir,
    network__pretrained=str(data_dir / "trunk.npz"),
    **TINY,
  )
  experiment.run(config, tmp_path / "images")
  np.savez(tmp_path / "features.npz", **trunk_features(config))
  rows = loading.load(str(ROOT / "configs" / "embeddings.py:smoke"))
  keys = flat_keys(with_settings(rows, {"network.name": "ebm"}))
  same = {
    key: value
    for key, value in flat_keys(config).items()
    if key in keys and not key.startswith(("data.", "network.name"))
  }
  given = {"data.dir": str(tmp_path / "features.npz"), "data.mean": (0.0,)}
  experiment.run(
    with_settings(rows, same | given | {"data.std": (1.0,)}), tmp_path / "rows"
  )
  ours, theirs = (
    loading_models.restore(loading_models.read_run(tmp_path / name)).states
    for name in ("images", "rows")
  )
  assert_same_bits(ours, theirs)
  first, second = (read_results(tmp_path / name) for name in ("images", "rows"))
  assert first["accuracy_matrix"] == second["accuracy_matrix"]


def test_a_network_of_rows_takes_colours(data_dir, tmp_path):
  config = make_config(f"{CIFAR10}:smoke", data_dir, network__name="ebm", **TINY)
  results = experiment.run(config, tmp_path)
  hidden, labels = config.network.hidden, len(results["class_names"])
  gated = 32 * 32 * 3 * hidden + hidden + labels * hidden
  assert results["facts"]["parameters"] == gated + hidden + 1


@pytest.mark.parametrize("variants", ["bir,sbc,fixed,smoke", "bir,fixed,smoke"])
def test_features_of_a_frozen_trunk_can_be_replayed(variants, data_dir, tmp_path):
  config = make_config(
    f"{CIFAR100}:{variants}",
    data_dir,
    network__pretrained=str(data_dir / "trunk.npz"),
    **TINY,
  )
  results = experiment.run(config, tmp_path)
  assert results["average_accuracy"]["n"] == 1


def test_colours_can_be_replayed(data_dir, tmp_path):
  config = make_config(f"{CIFAR100}:dgr,sbc,source,smoke", data_dir, **TINY)
  config.network.pretrained = str(data_dir / "trunk.npz")
  results = experiment.run(config, tmp_path)
  assert results["average_accuracy"]["n"] == 1


def test_a_generator_of_colours_starts_as_the_network_s_trunk(data_dir):
  config = loading.load(f"{CIFAR100}:dgr,sbc,source,smoke")
  config.network.pretrained = str(data_dir / "trunk.npz")
  row = jax.ShapeDtypeStruct((32, 32, 3), jnp.uint8)
  classes = np.eye(2, 4, dtype=bool)
  problem = make_problem(resolve(config), row, classes, jax.random.key(0)[None])
  learner = make_learner(resolve(config), problem)
  state = jax.jit(learner.init)(jax.random.key(0))
  weights = load_trunk(data_dir / "trunk.npz")
  chex.assert_trees_all_equal(state.generator["params"]["trunk"], weights["params"])
  own = state.generator["batch_stats"]["trunk"]
  chex.assert_trees_all_equal(own, weights["batch_stats"])


def test_what_is_replayed_has_edges_like_what_is_new():
  """A crop is off the middle in 80 of 81 cases, and then has a black edge."""
  config = resolve(loading.load(f"{CIFAR10}:er,sbc"))
  row = jax.ShapeDtypeStruct((32, 32, 3), jnp.uint8)
  classes = np.arange(10)[None, :] // 2 == np.arange(5)[:, None]
  problem = make_problem(config, row, classes, jax.random.key(0)[None])
  learner: Any = make_learner(config, problem)
  view = TaskView(
    x=jnp.full((1000, 32, 32, 3), 255, jnp.uint8),
    y=jnp.arange(1000) % 2,
    permutation=jnp.zeros(0, jnp.int32),
    rows=jnp.arange(1000),
    valid=jnp.ones(1000, bool),
    task=jnp.int32(0),
    seen=jnp.asarray(classes[0]),
  )
  state = jax.jit(learner.init)(jax.random.key(0))
  state = jax.jit(learner.consolidate)(state, jax.random.key(1), view)
  stored = np.asarray(state.own.x)
  assert stored.shape == (1000, 32, 32, 3)
  assert np.mean(stored.min(axis=(1, 2, 3)) == 0) > 0.95


def test_gss_s_own_protocol_on_cifar10(data_dir, tmp_path):
  """Its ResNet moves its running statistics, and each image is shown once."""
  chosen = f"{CIFAR10}:gss_greedy,sbc,source"
  made = resolve(loading.load(chosen))
  assert made.stream.iterations * made.stream.batch_size == 10_000
  assert (made.negatives, made.optimiser.name) == ("all_classes", "sgd")
  small = {"method__repeats": 1, "method__directions": 1, "method__budget": 8}
  config = make_config(f"{chosen},smoke", data_dir, **TINY | small)
  results = experiment.run(config, tmp_path)
  assert results["facts"]["parameters"] == 1_094_750


def test_a_pretrained_trunk_serves_cifar100(data_dir, tmp_path, capsys):
  """The exported file holds a trunk that has been trained, and images have features."""
  run, file = tmp_path / "pretrain", tmp_path / "trunk.npz"
  experiment.run(make_config(f"{PRETRAIN}:smoke", data_dir, **TINY), run)
  assert export.main(["--trunk", str(run), str(file)]) == 0
  assert "after 4 steps" in capsys.readouterr().out
  trained = load_trunk(file)
  fresh = jax.jit(NormTrunk().init)(jax.random.key(0), jnp.zeros((1, 32, 32, 3)))
  mean = trained["batch_stats"]["bn1"]["mean"]
  assert (np.asarray(mean) != np.asarray(fresh["batch_stats"]["bn1"]["mean"])).all()
  config = make_config(
    f"{CIFAR100}:fixed,smoke", data_dir, network__pretrained=str(file), **TINY
  )
  features = trunk_features(config)["x_train"]
  assert features.shape == (400, 1024) and features.any()


@pytest.mark.parametrize(
  ("arguments", "code", "sentence"),
  [
    (["nowhere", "x.npz"], 1, "holds no finished run"),
    (["x"], 2, "the following arguments are required: FILE.npz; see --help."),
  ],
)
def test_what_cannot_be_exported_is_told(arguments, code, sentence, tmp_path, capsys):
  arguments = [str(tmp_path / word) for word in arguments]
  assert export.main(arguments) == code
  assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
  ("chosen", "changes", "sentence"),
  [
    (CIFAR10, {"stream__name": "permuted"}, "'permuted' permutes rows of pixels"),
    (
      CIFAR10,
      {"stream__name": "permuted", "network__name": "ebm"},
      "'permuted' is for grey images",
    ),
    (
      CIFAR100,
      {
        "network__pretrained": "x",
        "network__backbone_mode": "fixed_statistics",
        "data__augment": "crop_and_flip",
      },
      "computes the features once",
    ),
  ],
)
def test_what_does_not_fit_is_told(chosen, changes, sentence, data_dir, tmp_path):
  with pytest.raises(ConfigError, match=sentence):
    experiment.run(make_config(f"{chosen}:smoke", data_dir, **changes), tmp_path)
