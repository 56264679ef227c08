"""The slim ResNet-18, against its layers written out."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ebmjax import networks
from ebmjax.networks.resnet import SlimResNet18
from ebmjax.types import Network, num_params


def make() -> Network:
  return networks.make("sbc_resnet18", input_shape=(32, 32, 3), num_classes=10)


def images(number: int = 3) -> jax.Array:
  rng = np.random.default_rng(0)
  return jnp.asarray(rng.integers(0, 256, (number, 32, 32, 3)), jnp.uint8)


def test_it_has_the_published_size():
  params, _ = jax.eval_shape(make().init, jax.random.key(0))
  assert num_params(params) == 1_094_750


def test_a_pass_is_its_layers_written_out():
  """With the batch's own statistics; parameters are taken in the order of use."""
  trunk, x = SlimResNet18("native"), images() / 255.0
  variables = jax.jit(trunk.init)(jax.random.key(0), x)
  params: Any = variables["params"]
  used = {"Conv": 0, "BatchNorm": 0, "Dense": 0}

  def take(kind: str) -> Any:
    used[kind] += 1
    return params[f"{kind}_{used[kind] - 1}"]

  def conv(x: Any, stride: int) -> Any:
    layout = ("NHWC", "HWIO", "NHWC")
    kernel, ones = take("Conv")["kernel"], [(1, 1), (1, 1)]
    strides = (stride, stride)
    return lax.conv_general_dilated(x, kernel, strides, ones, dimension_numbers=layout)

  def norm(x: Any) -> Any:
    own, axes = take("BatchNorm"), (0, 1, 2)
    mean, var = (f(x, axis=axes, keepdims=True) for f in (jnp.mean, jnp.var))
    scaled = (x - mean) / jnp.sqrt(var + 1e-5)
    return scaled * own["scale"][None, None, None] + own["bias"][None, None, None]

  h = jax.nn.relu(norm(conv(x, 1)))
  for stage, stride in enumerate((1, 2, 2, 2)):
    for s in (stride, 1):
      y = norm(conv(jax.nn.relu(norm(conv(h, s))), 1))
      if (stage, s) in ((1, 2), (2, 2), (3, 2)):
        h = norm(h[:, ::2, ::2] @ take("Dense")["kernel"])
      h = jax.nn.relu(h + y)
  got, _ = trunk.apply(variables, x, True, mutable=["batch_stats"])
  assert used == {"Conv": 17, "BatchNorm": 20, "Dense": 3}
  chex.assert_trees_all_close(got, h.mean(axis=(1, 2)), rtol=1e-3, atol=1e-4)


def test_training_moves_all_weights_and_the_running_statistics():
  network, x, labels = make(), images(), jnp.arange(10)
  params, state = jax.jit(network.init)(jax.random.key(0))

  @jax.jit
  def step(params: Any) -> Any:
    def loss(params: Any) -> Any:
      energies, after = network.energies(params, state, x, labels, train=True)
      return jnp.sum(energies[:, 0] ** 2), after

    return jax.grad(loss, has_aux=True)(params)

  gradient, after = step(params)
  assert all(leaf.any() for leaf in jax.tree.leaves(gradient))
  pairs = zip(*(jax.tree.leaves(s["batch_stats"]) for s in (state, after)), strict=True)
  assert all((one != other).any() for one, other in pairs)
  still, same = jax.jit(network.energies)(params, state, x, labels)
  chex.assert_trees_all_equal(same, state)
  assert still.shape == (3, 10)
