"""The CIFAR-10 networks: the released code's numbers, counts, and equal forms."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict

from ebmjax import losses, networks
from ebmjax.networks.cifar10 import EBM_CONV4, ClassifierConv, EnergyConv
from ebmjax.networks.conv import COMPILER_OPTIONS, conv2d, max_pool
from ebmjax.types import num_params
from tests.golden import GOLDEN, assert_gradients, golden_tensors

CACHED = {"backbone_mode": "fixed_statistics"}

NAME = "cifar10_end_softmax"


def to_params(tensors):
  """Returns Linen parameters of PyTorch's tensors: OIHW -> HWIO, dense transposed."""
  trunk: dict[str, Any] = {
    f"convs_{i}": {
      "kernel": tensors[f"conv{i + 1}.weight"].transpose(2, 3, 1, 0),
      "bias": tensors[f"conv{i + 1}.bias"],
    }
    for i in range(4)
  }
  trunk["fc"] = {"kernel": tensors["fc1.weight"].T, "bias": tensors["fc1.bias"]}
  head = {"kernel": tensors["classifier.weight"].T, "bias": tensors["classifier.bias"]}
  gate = {"embedding": tensors["y_ebm.weight"]}
  return {"trunk": trunk, "label_gate": gate, "head": head}


def from_params(params):
  """Returns PyTorch's tensors of Linen gradients."""
  out = {"y_ebm.weight": params["label_gate"]["embedding"]}
  for i in range(4):
    conv = params["trunk"][f"convs_{i}"]
    out[f"conv{i + 1}.weight"] = conv["kernel"].transpose(3, 2, 0, 1)
    out[f"conv{i + 1}.bias"] = conv["bias"]
  for tensor, layer in (("fc1", params["trunk"]["fc"]), ("classifier", params["head"])):
    out[f"{tensor}.weight"] = layer["kernel"].T
    out[f"{tensor}.bias"] = layer["bias"]
  return out


@pytest.mark.parametrize("form", ["native", "blocked"])
def test_end_softmax_is_the_released_code_s(form):
  entry = GOLDEN[NAME]
  tensors, x = golden_tensors(NAME)
  module = EnergyConv(10, conv_form=form)
  with jax.enable_x64(True):
    labels = jnp.array(entry["labels"])

    def loss(params):
      images = jnp.array(x).transpose(0, 2, 3, 1)
      energies: Any = module.apply({"params": params}, images, labels)
      return losses.contrastive(energies, jnp.ones((2, 2), bool)).mean(), energies

    params = jax.tree.map(jnp.array, to_params(tensors))
    (value, energies), gradients = jax.value_and_grad(loss, has_aux=True)(params)
    np.testing.assert_allclose(energies, entry["energies"], rtol=1e-6)
    np.testing.assert_allclose(value, entry["loss"], rtol=1e-6)
    assert_gradients(from_params(gradients), entry["grads"])


@pytest.mark.parametrize("position", EBM_CONV4.keys["position"].choices)
def test_shared_labels_equal_labels_per_row(position):
  module = EnergyConv(3, position=position)
  x = jax.random.normal(jax.random.key(0), (2, 32, 32, 3))

  @jax.jit
  def both(key):
    variables = module.init(key, x, jnp.zeros((2, 1), int))
    rows = jnp.tile(jnp.arange(3)[None, :], (2, 1))
    return module.apply(variables, x, jnp.arange(3)), module.apply(variables, x, rows)

  shared, rows = both(jax.random.key(1))
  assert shared.shape == (2, 3)
  np.testing.assert_allclose(shared, rows, rtol=1e-5, atol=1e-6)
  assert len(np.unique(np.asarray(shared[0]).round(6))) == 3  # the label matters


def energy_by_the_table(params, x, label, position):
  """Returns E of one image [32, 32, 3], line by line as the paper's table has it."""
  y = params["label_gate"]["embedding"][label]
  y = np.exp(y) / np.exp(y).sum() * len(y)

  def conv(x, number, padding):
    layer = params["trunk"][f"convs_{number}"]
    x = np.pad(x, [(padding, padding), (padding, padding), (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(0, 1))
    out = np.einsum("hwcij,ijco->hwo", windows, layer["kernel"]) + layer["bias"]
    return np.maximum(out, 0)

  def pool(x):
    height, width, channels = x.shape
    x = x[: height // 2 * 2, : width // 2 * 2]
    return x.reshape(height // 2, 2, width // 2, 2, channels).max(axis=(1, 3))

  x = x * y if position == "v1" else x
  x = conv(conv(x, 0, 1), 1, 0)
  x = pool(x * y if position == "v2" else x)
  x = conv(conv(x, 2, 1), 3, 0)
  x = pool(x * y if position == "v3" else x)
  fc, head = params["trunk"]["fc"], params["head"]
  x = x.transpose(2, 0, 1).ravel() @ fc["kernel"] + fc["bias"]
  return np.maximum(x, 0) @ head["kernel"][:, 0] + head["bias"][0]


@pytest.mark.parametrize("position", ["v1", "v2", "v3"])
def test_a_label_enters_where_the_paper_s_tables_have_it(position):
  module = EnergyConv(4, position=position)
  x = np.random.default_rng(0).normal(size=(2, 32, 32, 3)).astype(np.float32)
  labels = jnp.array([[0, 3], [2, 1]])
  variables = module.init(jax.random.key(1), x, labels)
  found: Any = module.apply(variables, x, labels)
  params = jax.tree.map(np.asarray, variables["params"])
  expected = [
    [energy_by_the_table(params, image, label, position) for label in row]
    for image, row in zip(x, np.asarray(labels), strict=True)
  ]
  np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def parameters(module):
  x = jnp.zeros((1, 32, 32, 3))
  variables = jax.eval_shape(module.init, jax.random.key(0), x, jnp.zeros((1, 1), int))
  return variables["params"]


def test_parameter_counts_are_the_paper_s():
  assert num_params(parameters(ClassifierConv(10))) == 3_485_738
  assert num_params(parameters(EnergyConv(10))) == 2_437_153


def test_masks_have_the_configured_share_of_units():
  mask: dict[str, Any] = {"embedding": "mask", "mask_drop_rate": 0.2}
  network = networks.make("ebm_conv4", input_shape=(32, 32, 3), num_classes=10, **mask)
  _, state = jax.jit(network.init)(jax.random.key(0))
  assert state["fixed"]["label_gate"]["masks"].mean() == pytest.approx(0.8, abs=0.02)


def test_a_fixed_embedding_is_not_trained():
  fixed = parameters(EnergyConv(10, embedding="fixed"))
  assert num_params(fixed) == 2_437_153 - 10 * 1024


@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (1, 1), (2, 0), (2, 1)])
@pytest.mark.parametrize("side", [7, 8])
def test_conv_forms_are_equal_with_their_gradients(stride, padding, side):
  x = jax.random.normal(jax.random.key(0), (2, side, side, 3))
  kernel = jax.random.normal(jax.random.key(1), (3, 3, 3, 4))

  def total(x, kernel, form):
    out = conv2d(x, kernel, stride=stride, padding=padding, form=form)
    return jnp.sum(out * jnp.cos(out)), out

  grad = jax.jit(
    jax.value_and_grad(total, argnums=(0, 1), has_aux=True), static_argnums=2
  )
  native, blocked = (grad(x, kernel, form) for form in ("native", "blocked"))
  for one, two in zip(jax.tree.leaves(native), jax.tree.leaves(blocked), strict=True):
    np.testing.assert_allclose(one, two, rtol=2e-4, atol=2e-4)


def test_pooling_is_the_largest_of_each_square():
  x = jax.random.normal(jax.random.key(0), (2, 6, 7, 3))
  blocks = np.asarray(x)[:, :, :6].reshape(2, 3, 2, 3, 2, 3)
  np.testing.assert_array_equal(max_pool(x), blocks.max(axis=(2, 4)))


def test_pooling_s_gradient_goes_to_the_first_of_the_largest():
  """Flat regions tie; the rest is checked against NumPy's argmax, which is first."""
  x = jnp.round(jax.random.normal(jax.random.key(0), (2, 7, 6, 3)))
  g = jax.random.normal(jax.random.key(1), (2, 3, 3, 3))
  found = jax.vjp(max_pool, x)[1](g)[0]
  expected = np.zeros(x.shape, np.float32)
  for b, i, j, c in np.ndindex(*g.shape):
    square = np.asarray(x)[b, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2, c]
    row, column = np.unravel_index(square.argmax(), (2, 2))
    expected[b, 2 * i + row, 2 * j + column, c] = g[b, i, j, c]
  np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("position", ["v2", "v4"])
def test_energies_and_gradients_do_not_depend_on_the_form(position):
  """A batch large enough to go in halves, and in several blocks."""
  x = jax.random.normal(jax.random.key(0), (32, 32, 32, 3))
  labels = jax.random.randint(jax.random.key(1), (32, 2), 0, 10)
  native, blocked = (
    EnergyConv(10, position, conv_form=form) for form in ("native", "blocked")
  )
  variables = native.init(jax.random.key(2), x[:1], labels[:1])

  def loss(variables, module):
    return jnp.mean(jnp.sin(module.apply(variables, x, labels)))

  options = COMPILER_OPTIONS if jax.default_backend() == "cpu" else None
  grad = jax.jit(jax.value_and_grad(loss), static_argnums=1, compiler_options=options)
  one, two = grad(variables, native), grad(variables, blocked)
  for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
  ("name", "changes", "wanted"),
  [
    ("ebm_conv4", {}, COMPILER_OPTIONS),
    ("ebm_conv4", {"conv_form": "native"}, None),
    ("ebm_conv5", {"conv_form": "blocked"}, COMPILER_OPTIONS),
    ("ebm_conv5", CACHED, COMPILER_OPTIONS),  # for its masks
    ("sbc_conv5", CACHED, None),  # nothing convolves
    ("ebm", {}, None),
  ],
)
def test_only_programs_that_ynn_slows_down_have_options(name, changes, wanted):
  spec = networks.find(name)
  defaults = {key.name: key.default for key in spec.keys.values()}
  assert spec.compiler_options(ConfigDict(defaults | changes)) == wanted
