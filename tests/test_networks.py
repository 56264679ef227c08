"""Networks: the released code's numbers at given weights, and equal forms."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from ebmjax import losses, networks
from ebmjax.networks import mlp
from ebmjax.networks.gates import (
  gated_relu,
  gated_relu_readout,
  normalise,
)
from ebmjax.networks.mlp import EBM, ClassifierMLP, EnergyMLP
from ebmjax.types import num_params
from tests.golden import GOLDEN, assert_gradients, golden_tensors
from tests.programs import spec_of

GATES = EBM.keys["gate"].choices
MLPS = ["mlp_boundary_aware", "mlp_boundary_free"]


def to_params(tensors):
  """Returns Linen parameters of PyTorch's tensors; kernels are transposed."""
  layers = {
    f"layers_{i}": {
      "kernel": tensors[f"x_fc{i + 1}.weight"].T,
      "bias": tensors[f"x_fc{i + 1}.bias"],
    }
    for i in range(2)
    if f"x_fc{i + 1}.weight" in tensors
  }
  head = {"kernel": tensors["classifier.weight"].T, "bias": tensors["classifier.bias"]}
  gate = {"embedding": tensors["y_ebm.weight"]}
  return layers | {"label_gate": gate, "head": head}


def from_params(params):
  """Returns PyTorch's tensors of Linen gradients: the inverse of `to_params`."""
  out = {"y_ebm.weight": params["label_gate"]["embedding"]}
  for i in range(2):
    if f"layers_{i}" in params:
      out[f"x_fc{i + 1}.weight"] = params[f"layers_{i}"]["kernel"].T
      out[f"x_fc{i + 1}.bias"] = params[f"layers_{i}"]["bias"]
  out["classifier.weight"] = params["head"]["kernel"].T
  out["classifier.bias"] = params["head"]["bias"]
  return out


@pytest.mark.parametrize("name", MLPS)
def test_energies_loss_and_gradients_are_the_released_code_s(name):
  entry = GOLDEN[name]
  tensors, x = golden_tensors(name)
  layers = sum(key.endswith(".weight") and key.startswith("x_fc") for key in tensors)
  module = EnergyMLP(
    entry["input_size"], entry["hidden"], entry["classes"], gated_layers=layers
  )
  with jax.enable_x64(True):
    labels = jnp.array(entry["labels"])

    def loss(params):
      energies: Any = module.apply({"params": params}, jnp.array(x), labels)
      return losses.contrastive(energies, jnp.ones((4, 2), bool)).mean(), energies

    params = jax.tree.map(jnp.array, to_params(tensors))
    (value, energies), gradients = jax.value_and_grad(loss, has_aux=True)(params)
    np.testing.assert_allclose(energies, entry["energies"], rtol=1e-6)
    np.testing.assert_allclose(value, entry["loss"], rtol=1e-6)
    assert_gradients(from_params(gradients), entry["grads"])


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("layers", [1, 2])
def test_shared_labels_equal_labels_per_row(gate, skip, layers):
  module = EnergyMLP(7, 5, 4, gated_layers=layers, gate=gate, skip=skip)
  x = jax.random.normal(jax.random.key(0), (6, 7))
  variables = module.init(jax.random.key(1), x, jnp.zeros((6, 1), int))
  energies: Any = partial(module.apply, variables, x)
  shared = energies(jnp.arange(4))
  rows = energies(jnp.tile(jnp.arange(4)[None, :], (6, 1)))
  np.testing.assert_allclose(shared, rows, rtol=1e-5, atol=1e-6)
  some = energies(jnp.array([2, 0]))
  np.testing.assert_allclose(some, shared[:, jnp.array([2, 0])], rtol=1e-5, atol=1e-6)


def test_normalisations_are_over_the_features_of_each_label():
  table = np.random.default_rng(0).normal(size=(3, 8))
  unit = table / np.sqrt((table**2).sum(axis=1, keepdims=True))
  share = np.exp(table) / np.exp(table).sum(axis=1, keepdims=True)
  expected = {"none": table, "l2": unit, "l2_scaled": 8 * unit, "softmax": 8 * share}
  assert set(expected) == set(GATES)
  for kind, gate in expected.items():
    np.testing.assert_allclose(normalise(jnp.asarray(table), kind), gate, rtol=1e-5)


@pytest.mark.parametrize("nonnegative", [True, False])
def test_readout_equals_the_plain_form(nonnegative):
  """The matrix product stands for relu(a * s) . w over all pairs, of either sign."""
  keys = jax.random.split(jax.random.key(0), 3)
  a, s, w = (
    jax.random.normal(k, n) for k, n in zip(keys, [(6, 9), (4, 9), (9,)], strict=True)
  )
  s = jnp.abs(s) if nonnegative else s
  plain = gated_relu(a[:, None, :], s[None, :, :]) @ w
  got = gated_relu_readout(a, s, w, nonnegative=nonnegative)
  np.testing.assert_allclose(got, plain, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
  ("name", "inputs", "hidden", "classes", "layers", "count"),
  [
    ("sbc", 784, 400, 10, 0, 478_410),
    ("sbc", 1024, 1000, 100, 0, 2_126_100),
    ("ebm", 784, 400, 10, 1, 318_401),
    ("ebm", 1024, 1000, 100, 1, 1_126_001),
    ("ebm", 784, 400, 10, 2, 478_801),
    ("ebm", 1024, 1000, 100, 2, 2_127_001),
  ],
)
def test_parameter_counts_are_the_paper_s(name, inputs, hidden, classes, layers, count):
  settings = {"hidden": hidden} | ({"gated_layers": layers} if layers else {})
  network = networks.make(name, input_shape=(inputs,), num_classes=classes, **settings)
  params, _ = jax.eval_shape(network.init, jax.random.key(0))
  assert num_params(params) == count


def test_initial_weights_are_uniform_in_pytorch_s_bounds():
  network = networks.make("ebm", input_shape=(784,), num_classes=10)
  params, _ = network.init(jax.random.key(0))
  for layer, fan_in in (("layers_0", 784), ("head", 400)):
    kernel = np.asarray(params[layer]["kernel"])
    bound = fan_in**-0.5
    assert np.abs(kernel).max() <= bound
    np.testing.assert_allclose(kernel.std(), bound / np.sqrt(3), rtol=0.1)
    assert 0 < np.abs(params[layer]["bias"]).max() <= bound
  np.testing.assert_allclose(params["label_gate"]["embedding"].std(), 1, rtol=0.05)


def test_xavier_s_normal_weights_have_normal_biases_beside_them():
  given: dict[str, Any] = {"hidden": 300, "init": "xavier_normal"}
  network = networks.make("sbc", input_shape=(784,), num_classes=200, **given)
  params, _ = network.init(jax.random.key(0))
  for layer, fan_in, fan_out in (("layers_0", 784, 300), ("head", 300, 200)):
    kernel, bias = (np.asarray(params[layer][name]) for name in ("kernel", "bias"))
    std = np.sqrt(2 / (fan_in + fan_out))
    np.testing.assert_allclose(kernel.std(), std, rtol=0.02)
    assert np.abs(kernel).max() > 3 * std  # neither uniform nor cut off
    np.testing.assert_allclose(bias.std(), np.sqrt(2 / (1 + fan_out)), rtol=0.15)


def test_small_weights_are_cut_off_and_have_no_biases():
  given: dict[str, Any] = {"hidden": 300, "init": "small"}
  network = networks.make("sbc", input_shape=(784,), num_classes=10, **given)
  params, _ = network.init(jax.random.key(0))
  kernel = np.asarray(params["layers_0"]["kernel"])
  assert 0.015 < np.abs(kernel).max() < 0.025 and 0.008 < kernel.std() < 0.011
  assert not params["layers_0"]["bias"].any() and not params["head"]["bias"].any()


def test_fixed_embedding_is_no_parameter_and_uniform():
  network = networks.make("ebm", input_shape=(784,), num_classes=10, embedding="fixed")
  params, model_state = network.init(jax.random.key(0))
  assert "label_gate" not in params
  table = np.asarray(model_state["fixed"]["label_gate"]["embedding"])
  assert table.shape == (10, 400)
  assert 0 <= table.min() < 0.01 < 0.99 < table.max() <= 1


def test_softmax_classifier_s_energies_are_minus_its_logits():
  module = ClassifierMLP(3, 4, 5)
  x = jax.random.normal(jax.random.key(0), (2, 3))
  variables = module.init(jax.random.key(1), x, jnp.zeros((2, 1), int))
  params = jax.tree.map(np.asarray, variables["params"])
  hidden = np.asarray(x)
  for layer in ("layers_0", "layers_1"):
    hidden = np.maximum(hidden @ params[layer]["kernel"] + params[layer]["bias"], 0)
  logits = hidden @ params["head"]["kernel"] + params["head"]["bias"]
  energies: Any = module.apply(variables, x, jnp.arange(5))
  np.testing.assert_allclose(energies, -logits, rtol=1e-5)


def test_uint8_images_enter_as_the_unit_interval():
  x = jnp.array([[[0, 255], [51, 102]]], jnp.uint8)
  got = networks.Normalise()(x)
  np.testing.assert_allclose(got, np.array([[[0, 1], [0.2, 0.4]]]), rtol=1e-6)


def test_channels_are_normalised_one_by_one():
  x = jnp.array([[[[0, 51, 255]]]], jnp.uint8)
  got = networks.Normalise((0.5, 0.1, 0.0), (0.5, 0.2, 2.0))(x)
  np.testing.assert_allclose(got, [[[[-1, 0.5, 0.5]]]], rtol=1e-6)


def test_a_run_normalises_with_the_mean_and_std_that_it_is_given():
  """Floats stay themselves, so they can be given as the images should become."""
  few: dict[str, Any] = {"driver": "map", "stream__batch_size": 4}
  plain = spec_of("splitmnist.py:sbc,smoke", **few).learner
  given = spec_of("splitmnist.py:sbc,hsu,smoke", **few).learner
  state = plain.init(jax.random.key(0))
  x = jnp.array(np.random.default_rng(0).integers(0, 256, (3, 784)), jnp.uint8)
  wanted = plain.energies(state, (x / 255 - 0.1) / 0.2752)
  np.testing.assert_allclose(given.energies(state, x), wanted, rtol=1e-4)


@pytest.mark.parametrize("labels_at_a_time", [1, 2, 5])
def test_labels_in_turn_have_the_energies_of_each_row_s_own(
  monkeypatch, labels_at_a_time
):
  """However many labels go together, the last few included."""
  monkeypatch.setattr(mlp, "_NUMBERS", {"cpu": labels_at_a_time * 3 * 8})
  module = EnergyMLP(num_inputs=4, hidden=8, num_classes=5, gated_layers=2)
  x, labels = jax.random.normal(jax.random.key(1), (3, 4)), jnp.arange(5)
  rows = jnp.tile(labels[None, :], (3, 1))
  variables = module.init(jax.random.key(0), x, rows)
  found: Any = module.apply(variables, x, labels)
  wanted: Any = module.apply(variables, x, rows)
  np.testing.assert_allclose(found, wanted, rtol=1e-5)


class Normalised(nn.Module):
  """A module with statistics that training would have to move."""

  @nn.compact
  def __call__(self, x, labels):
    return nn.BatchNorm(use_running_average=True)(x)[:, :1] + 0.0 * labels


def test_a_module_with_running_statistics_is_refused():
  network = networks.from_module(Normalised(), (3,), 2)
  with pytest.raises(ValueError, match="Normalised has running statistics"):
    network.init(jax.random.key(0))


def test_rows_of_another_size_are_refused():
  network = networks.from_module(ClassifierMLP(4, 5, 3), (4,), 3)
  params, state = network.init(jax.random.key(0))
  assert network.energies(params, state, jnp.ones((3, 2, 2)), jnp.arange(3))[0].shape
  with pytest.raises(TypeError, match="reshape"):
    network.energies(params, state, jnp.ones((6, 2)), jnp.arange(3))
