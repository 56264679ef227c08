"""Class means, SLDA, SQDA and ridge regression against the formulas in float64."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ebmjax import methods, networks
from ebmjax.config import loading
from ebmjax.config.validation import resolve
from ebmjax.methods._moments import add_rows, empty_moments
from ebmjax.types import Problem, make_batch
from tests.helpers import ROOT, SPLIT

PIXELS, CLASSES, SIZE, BATCHES = 20, 5, 16, 12
NAMES = ("ncm", "slda", "sqda", "ridge")


@cache  # the same functions again: nothing is compiled twice
def make(name: str, network: str = "raw", **keys: Any) -> Any:
  size: dict[str, Any] = {} if network == "raw" else {"num_features": 30}
  if name == "sqda":
    keys = {"rank": PIXELS if network == "raw" else 30} | keys  # nothing is dropped
  built = networks.make(network, input_shape=(PIXELS,), num_classes=CLASSES, **size)
  row = jax.ShapeDtypeStruct((PIXELS,), jnp.float32)
  return methods.make(name, Problem(built, None, None, row, 2), **keys)


def rows(classes: int = CLASSES, offset: float = 3.0) -> tuple[np.ndarray, np.ndarray]:
  """Returns correlated rows far from 0, and their labels."""
  rng = np.random.default_rng(0)
  y = rng.integers(0, classes, SIZE * BATCHES)
  mix = rng.normal(size=(PIXELS, PIXELS)) * np.logspace(0, -2, PIXELS)
  x = rng.normal(size=(len(y), PIXELS)) @ mix + rng.normal(size=(classes, PIXELS))[y]
  return (x + offset).astype(np.float32), y.astype(np.int32)


def train(learner: Any, x: np.ndarray, y: np.ndarray, size: int = SIZE) -> Any:
  state, step = learner.init(jax.random.key(0)), jax.jit(learner.step)
  for i in range(0, len(y), size):
    part = jnp.asarray(x[i : i + size]), jnp.asarray(y[i : i + size])
    batch = make_batch(*part, jnp.ones(CLASSES, bool))
    state, metrics = step(state, jax.random.key(i), batch)
    assert np.isfinite(metrics["loss"])
  return state


def expected(name: str, phi: np.ndarray, y: np.ndarray, test: np.ndarray) -> np.ndarray:
  """Returns energies [B, C] by the definitions, all rows at once, in float64."""
  phi, test = phi.astype(np.float64), test.astype(np.float64)
  means = np.stack([phi[y == label].mean(axis=0) for label in range(CLASSES)])
  if name == "ncm":
    return np.square(test[:, None] - means[None]).sum(axis=2)
  identity = np.eye(phi.shape[1])
  if name == "sqda":
    return quadratic(phi, y, means, test)
  if name == "slda":
    apart = phi - means[y]
    spread = (1 - 1e-4) * apart.T @ apart / len(y) + 1e-4 * identity
    precision, centre = np.linalg.inv(spread), phi.mean(axis=0)

    def distance(to: np.ndarray) -> np.ndarray:
      gap = test[:, None] - to[None]
      return np.einsum("bcf,fg,bcg->bc", gap, precision, gap) / 2

    return distance(means) - distance(centre[None])
  gram = phi.T @ phi
  penalty = 1e-4 * np.trace(gram) / phi.shape[1]
  hot = np.eye(CLASSES)[y]
  return -test @ np.linalg.solve(gram + penalty * identity, phi.T @ hot)


def quadratic(
  phi: np.ndarray, y: np.ndarray, means: np.ndarray, test: np.ndarray
) -> np.ndarray:
  """Returns energies [B, C] of one Gaussian a class, less what labels share."""
  apart, identity = phi - means[y], np.eye(phi.shape[1])
  shared = (1 - 1e-4) * apart.T @ apart / len(y) + 1e-4 * identity
  energies = np.zeros((len(test), CLASSES))
  for label in range(CLASSES):
    mine = apart[y == label]
    spread = 0.8 * shared + 0.2 * mine.T @ mine / len(mine)
    gap = test - means[label]
    distance = np.einsum("bf,bf->b", gap @ np.linalg.inv(spread), gap)
    ratio = np.linalg.slogdet(spread)[1] - np.linalg.slogdet(0.8 * shared)[1]
    energies[:, label] = (distance + ratio) / 2
  gap = test - phi.mean(axis=0)
  common = np.einsum("bf,bf->b", gap @ np.linalg.inv(shared), gap) / 2 / 0.8
  return energies - common[:, None]


# Of the spread of energies. A factor comes from squares of its rows, in float32: of
# directions 300 times as short as the longest it knows little.
TOLERANCE = {"sqda": 5e-3}


def assert_close(found: Any, wanted: np.ndarray, share: float = 1e-5) -> None:
  """Asserts equality to a share of the mean spread of a row's energies."""
  spread = np.mean(wanted.max(axis=1) - wanted.min(axis=1))
  np.testing.assert_allclose(found, wanted, rtol=0, atol=share * spread)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("offset", [0.0, 3.0])
def test_energies_are_those_of_float64(name: str, offset: float) -> None:
  x, y = rows(offset=offset)
  learner = make(name)
  state = train(learner, x, y)
  test = x[:40] + 0.1
  wanted = expected(name, x, y, test)
  share = TOLERANCE.get(name, 1e-5)
  assert_close(learner.energies(learner.ready(state), test), wanted, share)
  assert_close(learner.energies(state, test), wanted, share)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("network", ["fourier", "relu"])
def test_the_features_are_the_networks(name: str, network: str) -> None:
  x, y = rows()
  learner = make(name, network)
  state = train(learner, x, y)
  size = networks.make(
    network, input_shape=(PIXELS,), num_classes=CLASSES, num_features=30
  )
  phi = np.asarray(size.features(*size.init(jax.random.key(0)), jnp.asarray(x)))
  found = learner.energies(learner.ready(state), x[:40])
  wanted = expected(name, phi, y, phi[:40])
  assert_close(found, wanted, TOLERANCE.get(name, 1e-5))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("order", ["shuffled", "by class", "single rows", "twice"])
def test_neither_order_nor_batches_nor_passes_matter(name: str, order: str) -> None:
  x, y = rows()
  learner = make(name)
  wanted = expected(name, x, y, x[:40])
  if order == "single rows":
    state = train(learner, x, y, size=1)
  elif order == "twice":
    state = train(learner, np.concatenate([x, x[::-1]]), np.concatenate([y, y[::-1]]))
  else:
    rng = np.random.default_rng(4)
    order_of = rng.permutation(len(y)) if order == "shuffled" else np.argsort(y)
    state = train(learner, x[order_of], y[order_of])
  assert_close(learner.energies(state, x[:40]), wanted, TOLERANCE.get(name, 3e-5))


@pytest.mark.parametrize("name", NAMES)
def test_a_class_may_come_late_and_is_last_of_all_before(name: str) -> None:
  x, y = rows()
  late = y == CLASSES - 1
  learner = make(name)
  early = np.asarray(learner.energies(train(learner, x[~late], y[~late]), x[:40]))
  assert np.isfinite(early).all()
  assert (early[:, -1] > early[:, :-1].max(axis=1)).all()
  order = np.argsort(late, kind="stable")
  assert_close(
    learner.energies(train(learner, x[order], y[order]), x[:40]),
    expected(name, x, y, x[:40]),
    TOLERANCE.get(name, 3e-5),
  )


@pytest.mark.parametrize("name", NAMES)
def test_energies_are_finite_before_any_row_and_after_one(name: str) -> None:
  x, y = rows()
  learner = make(name)
  assert np.isfinite(learner.energies(learner.init(jax.random.key(0)), x)).all()
  one = np.asarray(learner.energies(train(learner, x[:1], y[:1]), x))
  assert np.isfinite(one).all()
  assert (one.argmin(axis=1) == y[0]).all()


def test_many_rows_far_from_zero_keep_their_scatter() -> None:
  rng = np.random.default_rng(0)
  x = (100 + rng.normal(size=(20_000, 6))).astype(np.float32)
  y = rng.integers(0, 3, 20_000).astype(np.int32)

  def body(moments: Any, part: Any) -> tuple[Any, None]:
    return add_rows(moments, *part), None

  start = empty_moments(3, 6, scatter=True)
  parts = jnp.asarray(x.reshape(200, 100, 6)), jnp.asarray(y.reshape(200, 100))
  moments, _ = jax.jit(lambda: jax.lax.scan(body, start, parts))()
  wide = x.astype(np.float64)
  means = np.stack([wide[y == label].mean(axis=0) for label in range(3)])
  apart = wide - means[y]
  np.testing.assert_allclose(moments.means, means, rtol=1e-6)
  np.testing.assert_allclose(moments.scatter, apart.T @ apart, atol=0.2)  # of 20,000
  np.testing.assert_array_equal(moments.counts, np.bincount(y))


def test_a_factor_keeps_the_largest_directions_of_its_class() -> None:
  """With a gap in the spectrum little is lost, though each batch drops the rest."""
  rng, label = np.random.default_rng(0), 1
  scale = np.array([5.0, 4.0, 3.0, *[0.05] * 9])
  x = (rng.normal(size=(96, 12)) * scale + 2).astype(np.float32)
  y = np.where(np.arange(96) % 3 == 0, 0, label).astype(np.int32)
  moments, add = empty_moments(3, 12, scatter=True, rank=3), jax.jit(add_rows)
  for part in (slice(0, 48), slice(48, 96)):  # 32 rows of the label, then 32
    moments = add(moments, jnp.asarray(x[part]), jnp.asarray(y[part]))
  mine = x[y == label].astype(np.float64)
  apart = mine - mine.mean(axis=0)
  values, vectors = np.linalg.eigh(apart.T @ apart)
  wanted = (vectors[:, -3:] * values[-3:]) @ vectors[:, -3:].T
  factors = np.asarray(moments.factors)
  found = factors[label].T @ factors[label]
  np.testing.assert_allclose(found, wanted, atol=2e-3 * values[-1])
  assert not factors[2].any()  # of which no row was seen


def test_the_loss_is_the_distance_to_the_updated_means() -> None:
  x, y = rows()
  learner = make("ncm")
  batch = make_batch(jnp.asarray(x), jnp.asarray(y), jnp.ones(CLASSES, bool))
  _, metrics = learner.step(learner.init(jax.random.key(0)), jax.random.key(0), batch)
  means = np.stack([x[y == label].mean(axis=0) for label in range(CLASSES)])
  wanted = np.square(x - means[y]).sum(axis=1).mean()
  np.testing.assert_allclose(metrics["loss"], wanted, rtol=1e-5)


@pytest.mark.parametrize(
  "name", [*NAMES, "randumb", "ranpac", "fourier_sqda", "patches_sqda"]
)
@pytest.mark.parametrize("setting", ["", ",boundary_free"])
def test_variants_need_neither_boundaries_nor_an_optimiser(
  name: str, setting: str
) -> None:
  config = resolve(loading.load(f"{SPLIT}:{name}{setting}"))
  names = {
    "randumb": ("fourier", "slda"),
    "ranpac": ("relu", "ridge"),
    "fourier_sqda": ("fourier", "sqda"),
    "patches_sqda": ("patches", "sqda"),
  }
  wanted = names.get(name, ("raw", name))
  assert (config.network.name, config.method.name) == wanted
  assert config.optimiser.to_dict() == {"name": "none"}


def test_published_runs_see_each_image_about_once() -> None:
  config = resolve(loading.load(f"{SPLIT}:slda,source"))
  assert config.stream.iterations * 128 < 12_665  # images of the largest task
  trunk = loading.load(f"{ROOT}/configs/cifar100.py:slda,source")
  assert (trunk.network.name, trunk.network.backbone) == ("raw", "conv5")


def test_the_labels_trick_sets_only_the_batchs_labels_against_each_other() -> None:
  config = resolve(loading.load(f"{SPLIT}:labels_trick,sbc"))
  assert (config.objective, config.negatives) == ("ce", "all_of_batch")
  assert config.network.name == "sbc"
