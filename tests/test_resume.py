"""Neither kills nor chunks, evaluations or other seeds change a bit of a result."""

import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from ebmjax import data, experiment
from ebmjax.config.validation import resolve
from ebmjax.report import plots
from ebmjax.runtime import train
from ebmjax.runtime.checkpoints import Checkpoints
from ebmjax.runtime.trainer import RunSpec, Trainer, make_run_spec
from tests.helpers import (
  SPLIT,
  TIMINGS,
  assert_same_bits,
  command,
  environment,
  make_config,
  overrides,
  read_results,
  write_idx,
)

EBM = f"{SPLIT}:smoke"
# Two tasks of 60 steps with a stop every 10 or fewer.
LONG = {
  "seeds": 2,
  "stream__iterations": 60,
  "eval__every": 25,
  "checkpoint__every": 10,
  "runner__chunk": 3,
}


class Run(NamedTuple):
  """What a run leaves that no accident may change."""

  results: dict[str, Any]
  evaluations: dict[str, bytes]
  scalars: bytes
  states: Any


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
  base = tmp_path_factory.mktemp("resume")
  write_idx(base / "data")
  return base


def read_run(base: Path, workdir: Path, **changes: Any) -> Run:
  results = read_results(workdir)
  for timing in TIMINGS:
    del results["facts"][timing]
  npz = sorted((workdir / "evaluations").glob("*.npz"))
  config = resolve(make_config(EBM, base / "data", **changes))
  spec = make_run_spec(config, data.load(config.data), results["facts"]["driver"])
  with Checkpoints(workdir / "checkpoints", keep=2) as keeper:
    restored = keeper.restore(shapes_of_states(spec))
  assert restored is not None
  assert restored[0] == results["facts"]["steps"]
  return Run(
    results,
    {path.name: path.read_bytes() for path in npz},
    (workdir / "scalars.jsonl").read_bytes(),
    restored[1],
  )


def shapes_of_states(spec: RunSpec) -> Any:
  """Returns what a restore must know of the states, without compiling anything."""
  shapes = jax.eval_shape(jax.vmap(spec.learner.init), spec.tables.key)
  here = jax.sharding.SingleDeviceSharding(jax.devices()[0])
  return jax.tree.map(lambda leaf: leaf.update(sharding=here), shapes)


# ---- killed processes ----


def start(base: Path, workdir: Path) -> subprocess.Popen[bytes]:
  flags = overrides(base / "data", **LONG)
  arguments = [f"--config={EBM}", *flags, f"--workdir={workdir}"]
  return subprocess.Popen(
    command(*arguments),
    env=environment(base / "cache"),
    stdout=subprocess.DEVNULL,
    stderr=subprocess.PIPE,
  )


def kill_when(process: subprocess.Popen[bytes], reached: Callable[[], bool]) -> None:
  """Kills the process as soon as `reached` holds; it must still be running then."""
  limit = time.monotonic() + 600
  while not reached():
    assert process.poll() is None, "the run ended before its kill"
    assert time.monotonic() < limit
    time.sleep(0.001)
  process.send_signal(signal.SIGKILL)
  process.communicate()
  assert process.returncode == -signal.SIGKILL


def trained(workdir: Path, step: int) -> bool:
  """Whether losses of `step` are on the disk."""
  path = workdir / "scalars.jsonl"
  return path.exists() and f'"step": {step},' in path.read_text()


def evaluated(workdir: Path, step: int) -> bool:
  """Whether `step` has been evaluated, and is about to be saved."""
  return (workdir / "evaluations" / f"{step:09d}.npz").exists()


def saving(workdir: Path, step: int) -> bool:
  """Whether a checkpoint of `step` or later is half written."""
  names = [path.name for path in (workdir / "checkpoints").glob("*tmp*")]
  return any(int(name.split(".")[0]) >= step for name in names)


def test_killed_runs_end_in_the_same_bits(base):
  """Before any checkpoint, while training, evaluating and saving, and at random."""
  reference, killed = base / "reference", base / "killed"
  process = start(base, reference)
  _, stderr = process.communicate(timeout=600)
  assert process.returncode == 0, stderr
  rng = random.Random(0)
  moments = [
    (trained, 3 * rng.randint(1, 3)),  # before the first checkpoint
    (evaluated, 25),
    (saving, 10 * rng.randint(4, 7)),
    (trained, 90 + 3 * rng.randint(1, 3)),
  ]
  for reached, step in moments:
    kill_when(start(base, killed), partial(reached, killed, step))
    assert not (killed / "results.json").exists()
    time.sleep(rng.random() / 100)
  process = start(base, killed)
  _, stderr = process.communicate(timeout=600)
  assert process.returncode == 0, stderr
  found = re.search(rb"Continuing from the checkpoint of step (\d+)\.", stderr)
  assert found is not None
  assert int(found[1]) >= 90
  assert_same_run(read_run(base, reference, **LONG), read_run(base, killed, **LONG))
  assert not list((killed / "checkpoints").glob("*tmp*"))


def assert_same_run(run: Run, other: Run) -> None:
  assert run.results == other.results
  assert run.evaluations == other.evaluations
  assert run.scalars == other.scalars
  assert_same_bits(run.states, other.states)


# ---- what must not matter ----

SEEDS = {"seed": 4, "seeds": 3}


@pytest.fixture
def machines(monkeypatch) -> list[Trainer]:
  """Returns the machines of the runs to come; leaves the figures out."""
  made: list[Trainer] = []

  def make(spec: Any) -> Trainer:
    made.append(Trainer(spec))
    return made[-1]

  monkeypatch.setattr(train, "Trainer", make)
  monkeypatch.setattr(plots, "draw", lambda history, scalars: {})
  return made


def run_here(base: Path, name: str, **changes: Any) -> Run:
  experiment.run(make_config(EBM, base / "data", **changes), base / name)
  return read_run(base, base / name, **changes)


@pytest.fixture(scope="module")
def by_sevens(base) -> Run:
  """Returns the run that the others are compared with: 12 steps a task, 7 at a time."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(plots, "draw", lambda history, scalars: {})
    return run_here(base, "by_sevens", runner__chunk=7, **SEEDS)


def test_chunks_and_evaluations_change_nothing_and_compile_once(
  base, by_sevens, machines
):
  """A chunk of 50 is longer than a task, and stops at 5, 10, 12, ... cut it short."""
  run = run_here(base, "often", runner__chunk=50, eval__every=5, **SEEDS)
  names = [f"{step:09d}.npz" for step in (0, 5, 10, 12, 15, 20, 24)]
  assert sorted(run.evaluations) == names
  for name, content in by_sevens.evaluations.items():
    assert run.evaluations[name] == content
  assert_same_bits(run.states, by_sevens.states)
  for key in ("per_seed", "accuracy_matrix"):
    assert run.results[key] == by_sevens.results[key]
  assert compiled(machines[0]) == {"_train": 1, "_evaluate": 1}


def compiled(machine: Trainer) -> dict[str, int]:
  """Returns how many programs each function of a machine has been compiled to."""
  return {
    name: getattr(machine, name)._cache_size() for name in ("_train", "_evaluate")
  }


@pytest.mark.usefixtures("machines")
def test_a_seed_alone_equals_it_among_others(base, by_sevens):
  run = run_here(base, "alone", runner__chunk=7, seed=5, seeds=1)
  among = jax.tree.map(lambda leaf: leaf[1:2], by_sevens.states)
  assert_same_bits(run.states, among)
  assert run.results["per_seed"] == by_sevens.results["per_seed"][1:2]
  assert run.results["accuracy_matrix"] == by_sevens.results["accuracy_matrix"][1:2]


def test_seeds_differ(by_sevens):
  """Or the test above could not fail."""
  kernels = [leaf for leaf in jax.tree.leaves(by_sevens.states.params) if leaf.ndim > 2]
  assert kernels
  for kernel in kernels:
    assert not np.array_equal(kernel[0], kernel[1])


def test_seeds_side_by_side_come_close(base, by_sevens, machines):
  """Under vmap sums are taken in another order; nothing more may differ."""
  changes = {"runner__chunk": 7, "runner__driver": "vmap", **SEEDS}
  run = run_here(base, "vmap", **changes)
  assert run.results["facts"]["driver"] == "vmap"
  for a, b in zip(
    jax.tree.leaves(run.states), jax.tree.leaves(by_sevens.states), strict=True
  ):
    np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
  np.testing.assert_allclose(
    run.results["per_seed"], by_sevens.results["per_seed"], atol=1.0
  )
  assert compiled(machines[0]) == {"_train": 1, "_evaluate": 1}


@pytest.mark.usefixtures("machines")
def test_damaged_newest_checkpoint_is_trained_again(base, by_sevens, caplog):
  """With a finished run's newest checkpoint damaged, the one before gives the same."""
  workdir = Path(shutil.copytree(base / "by_sevens", base / "damaged"))
  (workdir / "results.json").unlink()
  arrays = max(
    (workdir / "checkpoints" / "24").glob("state/**/d/*"),
    key=lambda path: path.stat().st_size,
  )
  content = bytearray(arrays.read_bytes())
  content[len(content) // 2] ^= 1
  arrays.write_bytes(content)
  run = run_here(base, "damaged", runner__chunk=7, **SEEDS)
  assert "The checkpoint of step 24 is damaged" in caplog.text
  assert_same_run(run, by_sevens)
