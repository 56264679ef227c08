"""The kept form of the masked network equals the plain one, or says that it cannot."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ebmjax import networks
from ebmjax.networks import distinct
from ebmjax.networks import kept as kept_form
from ebmjax.networks.kept import kept_units, widest

CLASSES = 6


def plain():
  return networks.make(
    "ebm",
    input_shape=(9,),
    num_classes=CLASSES,
    hidden=40,
    gated_layers=2,
    gate="none",
    embedding="mask",
    skip=False,
    mask_drop_rate=0.7,
  )


def both(width=None, max_labels=CLASSES, key=0):
  """Returns (network, params, state) of the plain and of the kept form, alike."""
  dense = plain()
  key = jax.random.key(key)
  kept = kept_units(
    dense, width=width or widest(dense, jnp.stack([key])), max_labels=max_labels
  )
  return (dense, *dense.init(key)), (kept, *kept.init(key))


def test_the_width_is_the_largest_mask_of_all_seeds():
  dense = plain()
  keys = jax.random.split(jax.random.key(5), 3)
  counts = [
    np.asarray(dense.init(key)[1]["fixed"]["label_gate"]["masks"]).sum(-1).max()
    for key in keys
  ]
  assert widest(dense, keys) == max(counts)
  assert len(set(counts)) > 1


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("extra", [0, 5])
def test_energies_and_gradients_are_the_plain_form_s(shared, extra):
  width = widest(plain(), jnp.stack([jax.random.key(0)])) + extra
  one, two = both(width)
  x = jax.random.uniform(jax.random.key(1), (7, 9))
  labels = jnp.array([5, 0, 3])
  if not shared:
    labels = jax.random.randint(jax.random.key(2), (7, 2), 0, CLASSES)

  def run(network, params, state):
    def loss(params):
      energies, _ = network.energies(params, state, x, labels)
      return jnp.sum(jnp.sin(3 * energies)), energies

    return jax.jit(jax.value_and_grad(loss, has_aux=True))(params)

  for a, b in zip(*(jax.tree.leaves(run(*form)) for form in (one, two)), strict=True):
    np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def test_any_number_of_distinct_labels_is_the_plain_form_s(monkeypatch):
  """From one label to all: every piece, and both sides of its bounds."""
  monkeypatch.setattr(distinct, "_FEWEST", 2)
  monkeypatch.setattr(kept_form, "_PIECE", 2)
  x = jax.random.uniform(jax.random.key(1), (CLASSES, 9))

  def run(network, params, state):
    def loss(params, labels):
      energies, _ = network.energies(params, state, x, labels)
      return jnp.sum(jnp.sin(3 * energies)), energies

    compiled = jax.jit(jax.value_and_grad(loss, has_aux=True))
    return lambda labels: jax.tree.leaves(compiled(params, labels))

  one, two = (run(*form) for form in both())
  for number in range(1, CLASSES + 1):
    labels = (CLASSES - 1 - jnp.arange(CLASSES) % number)[:, None]
    for a, b in zip(one(labels), two(labels), strict=True):
      np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def test_a_width_that_is_too_small_gives_no_number():
  _, (network, params, state) = both(width=4)
  energies, _ = network.energies(params, state, jnp.ones((2, 9)), jnp.arange(CLASSES))
  assert np.isnan(energies).all()


def test_more_labels_than_announced_give_no_number():
  _, (network, params, state) = both(max_labels=2)
  x = jnp.ones((3, 9))
  two = jnp.array([[0, 4], [4, 0], [0, 4]])
  three = jnp.array([[0, 4], [4, 0], [1, 4]])
  assert np.isfinite(network.energies(params, state, x, two)[0]).all()
  assert np.isnan(network.energies(params, state, x, three)[0]).all()
