"""Losses against numbers from NumPy, and their behaviour at the edges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ebmjax import losses, negatives, objectives
from ebmjax.errors import ConfigError

ENERGIES = np.array([[0.3, -1.2, 2.0], [1.5, 0.1, -0.4], [-2.0, 3.0, 0.5]])
VALID = np.array([[True, True, True], [True, False, True], [True, False, False]])


def test_contrastive_is_mean_softplus_over_valid_negatives():
  softplus = lambda z: np.log1p(np.exp(z))  # noqa: E731
  expected = [
    (softplus(0.3 + 1.2) + softplus(0.3 - 2.0)) / 2,
    softplus(1.5 + 0.4),
    0.0,
  ]
  got = losses.contrastive(jnp.array(ENERGIES), jnp.array(VALID))
  np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_difference_is_the_bare_gap():
  got = losses.difference(jnp.array(ENERGIES), jnp.array(VALID))
  np.testing.assert_allclose(got, [(1.5 - 1.7) / 2, 1.9, 0.0], rtol=1e-5)


@pytest.mark.parametrize("loss", [losses.likelihood, losses.ce])
def test_likelihood_normalises_over_the_candidates(loss):
  def expected(row, valid):
    return row[0] + np.log(np.exp(-row[valid]).sum())

  got = loss(jnp.array(ENERGIES), jnp.array(VALID))
  want = [expected(row, valid) for row, valid in zip(ENERGIES, VALID, strict=True)]
  np.testing.assert_allclose(got[:2], want[:2], rtol=1e-6)
  assert got[2] == 0


def test_two_candidates_make_likelihood_and_contrastive_one():
  energies = jax.random.normal(jax.random.key(0), (16, 2))
  valid = jnp.ones((16, 2), bool)
  np.testing.assert_allclose(
    losses.likelihood(energies, valid), losses.contrastive(energies, valid), rtol=1e-5
  )


@pytest.mark.parametrize("name", sorted(losses.LOSSES))
def test_row_without_negative_contributes_nothing(name):
  """Value and gradient are exactly 0 and finite, even at extreme energies."""
  extra = {"key": jax.random.key(0)} if name == "joint_pairs" else {}
  valid = jnp.array([[True, False]] * 4)

  def total(energies):
    return losses.LOSSES[name](energies, valid, **extra).sum()

  energies = jnp.array([[0.0, 1.0], [1e4, -1e4], [-3e38, 3e38], [5.0, 5.0]])
  value, gradient = jax.value_and_grad(total)(energies)
  assert value == 0
  np.testing.assert_array_equal(gradient, np.zeros((4, 2)))


def test_large_gaps_stay_finite():
  energies = jnp.array([[1e4, -1e4], [-1e4, 1e4]])
  valid = jnp.ones((2, 2), bool)
  for loss in (losses.contrastive, losses.likelihood):
    value, gradient = jax.value_and_grad(lambda e, f=loss: f(e, valid).sum())(energies)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


def test_joint_pairs_sets_each_true_pair_against_some_pair_of_the_batch():
  """All negatives are used once: the sum of gradients of column 1 is shared out."""
  energies = jnp.stack([jnp.zeros(6), jnp.arange(6.0)], axis=1)
  valid = jnp.ones((6, 2), bool)
  got = losses.joint_pairs(energies, valid, key=jax.random.key(3))
  in_place = losses.contrastive(energies, valid)
  np.testing.assert_allclose(np.sort(got), np.sort(in_place), rtol=1e-6)
  assert not np.allclose(got, in_place)


def test_joint_triples_set_a_true_pair_against_a_label_and_an_image():
  """By hand, of E(x, y) = 10 x + y: images 1, 2 and 3 of the labels 5, 5 and 7."""
  key, y = jax.random.key(0), jnp.array([5, 5, 7])
  labels, valid = negatives.label_and_image(key, y, num_classes=8)
  energies = 10.0 * jnp.array([1, 2, 3])[:, None] + labels
  pairs = [[(1, 5), (1, 7), (3, 5)], [(2, 5), (2, 7)], [(3, 7), (3, 5), (2, 7)]]
  hand = [np.array([10.0 * x + y for x, y in row]) for row in pairs]
  wanted = [row[0] + np.log(np.exp(-row).sum()) for row in hand]
  np.testing.assert_allclose(losses.joint_triples(energies, valid), wanted, rtol=1e-5)


@pytest.mark.parametrize("name", losses.LOSSES)
@pytest.mark.parametrize(
  ("energies", "valid"), [((4, 3), (4, 1)), ((4, 3), (4,)), ((3,), (3,))]
)
def test_shapes_that_do_not_fit_are_refused(name, energies, valid):
  """Broadcasting would make a loss of them, of nothing or of the wrong rows."""
  extra = {"key": jax.random.key(0)} if name == "joint_pairs" else {}
  with pytest.raises(ValueError, match="must both be"):
    losses.LOSSES[name](jnp.ones(energies), jnp.ones(valid, bool), **extra)


@pytest.mark.parametrize(
  ("name", "energies", "valid", "said"),
  [
    ("likelihood", ENERGIES, VALID.astype(int), "valid booleans, not .* and int"),
    ("contrastive", ENERGIES.astype(int), VALID, "floating-point numbers"),
    ("joint_pairs", ENERGIES, VALID, r"takes energies \[B, 2\], not \[3, 3\]"),
  ],
)
def test_what_is_no_energy_or_no_mask_is_refused(name, energies, valid, said):
  extra = {"key": jax.random.key(0)} if name == "joint_pairs" else {}
  with pytest.raises(ValueError, match=said):
    losses.LOSSES[name](energies, valid, **extra)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
def test_every_precision_under_every_transformation(dtype):
  """Values and gradients keep their type, and are those of 64 bits within rounding."""

  def total(energies):
    pairs = losses.joint_pairs(energies[:, :2], VALID[:, :2], key=jax.random.key(0))
    others = sorted(losses.LOSSES.keys() - {"joint_pairs"})
    rest = [losses.LOSSES[name](energies, VALID) for name in others]
    values = jnp.stack([pairs, *rest])
    return values.sum(), values

  run = jax.jit(jax.vmap(jax.grad(total, has_aux=True)))
  with jax.enable_x64(True):
    found, want = (run(jnp.asarray(ENERGIES[None], t)) for t in (dtype, "float64"))
    for got, wanted in zip(found, want, strict=True):
      assert got.dtype == dtype
      close = 16 * float(jnp.finfo(dtype).eps)
      np.testing.assert_allclose(got.astype(float), wanted, rtol=close, atol=close)


@pytest.mark.parametrize(
  ("name", "drawn", "said"),
  [
    ("contrastiv", "one_of_task", "did you mean 'contrastive'"),
    ("ce", "all_sen", "did you mean 'all_seen'"),
  ],
)
def test_an_objective_that_there_is_not_is_refused(name, drawn, said):
  with pytest.raises(ConfigError, match=said):
    objectives.make(name, drawn)
