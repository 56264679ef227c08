"""Each distinct label of a batch is computed once, and equals its slots one by one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ebmjax import negatives
from ebmjax.losses import likelihood
from ebmjax.networks.cifar10 import EnergyConv
from ebmjax.networks.distinct import each_label_once
from ebmjax.networks.mlp import EnergyMLP
from ebmjax.networks.module import from_module
from ebmjax.runtime import flops
from ebmjax.runtime.budget import batch_shapes
from ebmjax.tools.bench import cases

CLASSES = 6


def mlp():
  return from_module(EnergyMLP(9, 16, CLASSES, gated_layers=2), (9,), CLASSES)


def conv(position: str):
  shape = (10, 10, 3)
  module = EnergyConv(CLASSES, position, image_shape=shape, conv_form="native")
  return from_module(module, shape, CLASSES)


def loss_of(network, params, state, x, y):
  """Returns (loss, energies) and the gradient, as all of a batch's labels give them."""
  labels, valid = negatives.all_of_batch(jax.random.key(0), y, CLASSES)

  def loss(params):
    energies, _ = network.energies(params, state, x, labels, train=True)
    return jnp.mean(likelihood(energies, valid)), energies

  return jax.jit(jax.value_and_grad(loss, has_aux=True))(params)


@pytest.mark.parametrize("number", [1, 4, CLASSES])
def test_energies_and_gradients_are_those_of_every_slot(number):
  plain = mlp()
  params, state = plain.init(jax.random.key(0))
  x = jax.random.uniform(jax.random.key(1), (CLASSES, 9))
  y = CLASSES - 1 - jnp.arange(CLASSES) % number
  forms = (plain, each_label_once(plain, CLASSES), each_label_once(plain, number))
  one, *others = (jax.tree.leaves(loss_of(n, params, state, x, y)) for n in forms)
  for other in others:
    for a, b in zip(one, other, strict=True):
      np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("position", ["v2", "v3"])
def test_a_label_among_the_convolutions_is_computed_once(position):
  plain = conv(position)
  params, state = plain.init(jax.random.key(0))
  x = jax.random.uniform(jax.random.key(1), (3, 10, 10, 3)) * 255
  y = jnp.array([1, 4, 4])
  one = loss_of(plain, params, state, x, y)
  two = loss_of(each_label_once(plain, 2), params, state, x, y)
  for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_more_labels_than_announced_give_no_number():
  network = each_label_once(mlp(), 2)
  params, state = network.init(jax.random.key(0))
  x, zeros = jnp.ones((3, 9)), jnp.zeros((3, 3), jnp.int32)
  two, three = zeros.at[0, 1].set(4), zeros.at[0, :2].set(jnp.array([4, 5]))
  assert np.isfinite(network.energies(params, state, x, two)[0]).all()
  assert np.isnan(network.energies(params, state, x, three)[0]).all()


@pytest.mark.parametrize(
  ("chosen", "most"),
  [
    ("permmnist.py:boundary_free,all_of_batch", 20 / 101),  # of two tasks at most
    ("splitmnist.py:boundary_free,all_of_batch", 4 / 11),
    ("cifar10.py:v2,all_of_batch", 2 / 11),
  ],
)
def test_a_step_computes_each_label_once(chosen, most, few_images, monkeypatch):
  """Against a step of every slot; what all labels share is a small part of it."""

  def count() -> int:
    spec = cases.make_training(cases.Training(chosen, chosen, steps=2))
    state = jax.eval_shape(spec.learner.init, spec.tables.key[0])
    key, batch = spec.tables.key[0], batch_shapes(spec)
    return flops.count(spec.learner.step, state, key, batch)

  once = count()
  for name in ("mlp", "cifar10"):
    path = f"ebmjax.networks.{name}.each_label_once"
    monkeypatch.setattr(path, lambda network, max_labels: network)
  assert once < 1.3 * most * count()
