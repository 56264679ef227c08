"""Strictness for every test: silent broadcasting raises."""

import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(scope="module")
def quick_compilation():
  """Compiles in half the time, for tests that do not depend on the speed of a step."""
  jax.config.update("jax_disable_most_optimizations", True)
  yield
  jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture
def few_images(monkeypatch):
  """Gives the cases of the speed benchmark as many random images as a test needs."""
  from ebmjax.bench import cases

  monkeypatch.setattr(cases, "_TRAIN_IMAGES", {})
  monkeypatch.setattr(cases, "_FEWER", 1_600)
