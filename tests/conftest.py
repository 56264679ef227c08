"""What holds for every test: quick compilation, no cache, strict broadcasting."""

import os
import signal
from pathlib import Path

import jax
import pytest

# Compiling is the cost of the tests: so it takes a fifth of the time, here and in the
# processes that tests start. XLA reads its flags with the first program.
_QUICK = (
  "--xla_cpu_use_fusion_emitters=false",
  "--xla_cpu_parallel_codegen_split_count=1",
)
os.environ["XLA_FLAGS"] = " ".join((*_QUICK, os.environ.get("XLA_FLAGS", "")))
os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
jax.config.update("jax_disable_most_optimizations", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_enable_compilation_cache", False)  # nothing goes to one's home

# A job that a shell starts in the background ignores interrupts, which tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)

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


@pytest.fixture
def no_plots(monkeypatch) -> None:
  """Leaves the figures out: they take longer than a small run."""
  from ebmjax.report import plots

  monkeypatch.setattr(plots, "draw", lambda history, scalars: {})


@pytest.fixture
def few_images(monkeypatch):
  """Gives the cases of the speed benchmark as many random images as a test needs."""
  from ebmjax.tools.bench import cases

  monkeypatch.setattr(cases, "_TRAIN_IMAGES", {})
  monkeypatch.setattr(cases, "_FEWER", 1_600)
