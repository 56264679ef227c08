"""Strictness for every test: silent broadcasting raises, no program is kept."""

from pathlib import Path

import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_enable_compilation_cache", False)  # nothing goes to one's home

# Every compiled program holds mappings of memory, of which Linux allows a process
# 65,530; the compiler crashes on the next. Far below, for one file adds up to 35,000.
_MAPPINGS = 15_000


@pytest.fixture(scope="module", autouse=True)
def programs_are_forgotten():
  """Frees the programs of the files before, where they have become many."""
  yield
  mappings = Path("/proc/self/maps")
  if mappings.exists() and mappings.read_bytes().count(b"\n") > _MAPPINGS:
    jax.clear_caches()


@pytest.fixture(scope="module")
def quick_compilation():
  """Compiles in half the time, for tests that do not depend on the speed of a step."""
  jax.config.update("jax_disable_most_optimizations", True)
  yield
  jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture
def few_images(monkeypatch):
  """Gives the cases of the speed benchmark as many random images as a test needs."""
  from ebmjax.tools.bench import cases

  monkeypatch.setattr(cases, "_TRAIN_IMAGES", {})
  monkeypatch.setattr(cases, "_FEWER", 1_600)
