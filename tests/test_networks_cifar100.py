"""The CIFAR-100 networks: counts, masks, and what training does to the trunk."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ebmjax import networks
from ebmjax.config import loading
from ebmjax.errors import DataError
from ebmjax.networks.cifar100 import (
  PACKAGED,
  NormTrunk,
  load_trunk,
  trunk_digest,
  trunk_file,
  trunk_origin,
)
from ebmjax.networks.conv5 import EBM_CONV5, feature_function, frozen_trunk
from ebmjax.types import num_params
from tests.helpers import ROOT


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
  """Returns the path of a trunk's weights with statistics of their own."""
  trunk = NormTrunk()
  variables = jax.jit(trunk.init)(jax.random.key(0), jnp.zeros((1, 32, 32, 3)))
  moved = jax.tree.map(lambda stat: stat + 0.25, variables["batch_stats"])
  path = tmp_path_factory.mktemp("trunk") / "trunk.npz"
  content = trunk_file({"params": variables["params"], "batch_stats": moved})
  path.write_bytes(content)
  return path


def make(weights, mode, name="ebm", hidden=32, classes=4):
  shape = (1024,) if mode == "fixed_statistics" else (32, 32, 3)
  return networks.make(
    f"{name}_conv5",
    input_shape=shape,
    num_classes=classes,
    hidden=hidden,
    backbone_mode=mode,
    pretrained=str(weights),
  )


def images(count=3):
  rng = np.random.default_rng(0)
  return jnp.asarray(rng.integers(0, 256, (count, 32, 32, 3)), jnp.uint8)


@pytest.mark.parametrize(("name", "count"), [("sbc", 6_252_100), ("ebm", 6_054_001)])
@pytest.mark.parametrize("mode", ["batch_statistics", "fixed_statistics"])
def test_trainable_parameters_are_the_paper_s(weights, mode, name, count):
  network = make(weights, mode, name, hidden=2000, classes=100)
  params, _ = jax.eval_shape(network.init, jax.random.key(0))
  assert num_params(params) == count


def test_weights_come_back_as_they_were_saved(weights, tmp_path):
  first = load_trunk(weights)
  (tmp_path / "again.npz").write_bytes(trunk_file(first))
  again = load_trunk(tmp_path / "again.npz")
  for one, two in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True):
    np.testing.assert_array_equal(one, two)
  assert first["params"]["conv2"]["kernel"].shape == (3, 3, 16, 32)


@pytest.mark.parametrize(
  ("damage", "told"),
  [
    ("missing", r"there is no file .*weights\.npz; give"),
    ("truncated", r"weights\.npz holds no weights"),
    ("other arrays", r"weights\.npz holds no weights"),
    (
      "other widths",
      r"holds no weights .* conv2 has a kernel of shape \(3, 3, 16, 8\)",
    ),
  ],
)
def test_damaged_weights_are_told(weights, tmp_path, damage, told):
  path = tmp_path / "weights.npz"
  if damage == "truncated":
    path.write_bytes(weights.read_bytes()[:5000])
  if damage == "other arrays":
    np.savez(path, x=np.zeros(3))
  if damage == "other widths":
    with np.load(weights) as file:
      arrays = dict(file)
    arrays["convLayer2.conv.weight"] = np.zeros((8, 16, 3, 3), np.float32)
    np.savez(path, **arrays)
  with pytest.raises(DataError, match=told):
    load_trunk(path)


def test_weights_that_may_not_be_read_are_told(weights, monkeypatch):
  def refuse(*args, **kwargs):
    raise PermissionError(13, "Permission denied")

  monkeypatch.setattr(Path, "open", refuse)  # root may read everything
  told = r"cannot be read \(Permission denied\); make it readable"
  with pytest.raises(DataError, match=told):
    trunk_digest(weights)


def test_masks_switch_units_off_by_label_and_layer(weights):
  network = make(weights, "fixed_statistics", hidden=400, classes=10)
  params, state = network.init(jax.random.key(3))
  masks = np.asarray(state["fixed"]["label_gate"]["masks"])
  assert masks.shape == (2, 10, 400)
  assert set(np.unique(masks)) == {0, 1}
  np.testing.assert_allclose(masks.mean(), 0.15, atol=0.02)
  assert (masks[0] != masks[1]).any() and (masks[0, 0] != masks[0, 1]).any()
  assert "label_gate" not in params


def test_cached_features_give_the_energies_of_the_frozen_trunk(weights):
  """The features computed once stand for the images, in native and blocked form."""
  cached = make(weights, "fixed_statistics")
  x = images()
  # Three images in batches of two: the last batch is not full.
  trunk_of = frozen_trunk(str(weights), networks.Normalise())
  features = feature_function(trunk_of, 2)(np.asarray(x))
  assert features.shape == (3, 1024)
  at_once = feature_function(trunk_of)(np.asarray(x))
  np.testing.assert_allclose(at_once, features, rtol=1e-3, atol=1e-4)
  trunk = NormTrunk("blocked")
  plain = jax.jit(lambda x: trunk.apply(load_trunk(weights), x / 255.0))(x)
  np.testing.assert_allclose(features, plain, rtol=1e-3, atol=1e-4)
  whole = make(weights, "batch_statistics")
  inputs = ((cached, jnp.asarray(features)), (whole, x))
  one, other = (
    network.energies(*network.init(jax.random.key(0)), given, jnp.arange(4))[0]
    for network, given in inputs
  )
  np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("mode", EBM_CONV5.keys["backbone_mode"].choices)
def test_what_training_moves(weights, mode):
  """Gradients reach the trunk only when fine-tuned; statistics move in two modes."""
  network = make(weights, mode)
  params, state = jax.jit(network.init)(jax.random.key(0))
  x = jnp.ones((2, 1024)) if mode == "fixed_statistics" else images(2)

  @jax.jit
  def gradient(params):
    def loss(params):
      energies, after = network.energies(params, state, x, jnp.arange(4), train=True)
      return jnp.sum(energies**2), after

    return jax.grad(loss, has_aux=True)(params)

  gradients, after = gradient(params)
  assert ("trunk" in gradients) == (mode == "finetune")
  if mode == "fixed_statistics":
    assert "batch_stats" not in after
    return
  before = state["batch_stats"]["bn1"]["mean"]
  assert (np.asarray(after["batch_stats"]["bn1"]["mean"]) != np.asarray(before)).all()
  if mode == "finetune":
    assert np.abs(gradients["trunk"]["conv1"]["kernel"]).max() > 0
  else:
    np.testing.assert_array_equal(
      after["trunk"]["conv1"]["kernel"], state["trunk"]["conv1"]["kernel"]
    )
  _, same = network.energies(params, state, x, jnp.arange(4))
  np.testing.assert_array_equal(same["batch_stats"]["bn1"]["mean"], before)


def test_the_packaged_trunk_is_whole_and_says_where_it_comes_from():
  trunk = load_trunk(PACKAGED)
  leaves = jax.tree.leaves(trunk)
  assert all(leaf.dtype == jnp.float32 and jnp.isfinite(leaf).all() for leaf in leaves)
  origin = trunk_origin(PACKAGED)
  assert "configs/pretrain_cifar10.py" in origin["command"]
  assert 80 < origin["accuracy"] < 85
  assert loading.load(f"{ROOT}/configs/cifar100.py").network.pretrained == PACKAGED


def test_half_precision_moves_a_feature_little(weights):
  rough = trunk_file(load_trunk(weights), half=True)
  assert len(rough) < 0.6 * Path(weights).stat().st_size
  file = Path(weights).with_name("half.npz")
  file.write_bytes(rough)
  x = jax.random.normal(jax.random.key(0), (2, 32, 32, 3))
  whole, half = (
    np.asarray(NormTrunk().apply(load_trunk(path), x)) for path in (weights, file)
  )
  np.testing.assert_allclose(half, whole, atol=2e-3 * float(np.abs(whole).max()))
