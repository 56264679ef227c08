"""Two processes of two devices are one run: the bits of one process, whoever dies."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from ebmjax import data
from ebmjax.config.validation import resolve
from ebmjax.errors import BusyError
from ebmjax.runtime import distributed
from ebmjax.runtime.checkpoints import Checkpoints, newest_step
from ebmjax.runtime.trainer import make_run_spec
from ebmjax.runtime.workdir import Workdir
from ebmjax.tools.processes import _free_port
from tests.helpers import (
  ROOT,
  SPLIT,
  assert_same_bits,
  command,
  environment,
  make_config,
  overrides,
  read_results,
  write_idx,
)

CHANGES = {"seeds": 3, "checkpoint__every": 4}
LIMIT = 600  # seconds that any process may take


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
  base = tmp_path_factory.mktemp("distributed")
  write_idx(base / "data")
  return base


@pytest.fixture(scope="module")
def reference(base) -> Path:
  """Returns the workdir of the run that all others must equal: one CPU device."""
  done = subprocess.run(
    command(*arguments(base, base / "reference")),
    env=variables(base),
    capture_output=True,
    timeout=LIMIT,
  )
  assert done.returncode == 0, done.stderr
  return base / "reference"


def arguments(base: Path, workdir: Path, **changes: Any) -> list[str]:
  flags = overrides(base / "data", **CHANGES, **changes)
  return [f"--config={SPLIT}:smoke", *flags, f"--workdir={workdir}"]


def variables(base: Path) -> dict[str, str]:
  return environment(base / "cache") | {"JAX_PLATFORMS": "cpu"}


def launch(base: Path, workdir: Path, *, devices: int) -> subprocess.Popen[str]:
  """Returns the running launcher of two processes."""
  own = [sys.executable, str(ROOT / "launch" / "processes.py")]
  own += ["--processes=2", f"--devices={devices}", f"--logs={base / 'logs'}", "--"]
  return subprocess.Popen(
    own + arguments(base, workdir),
    env=variables(base),
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  )


def members(launcher: subprocess.Popen[str]) -> list[int]:
  """Returns the processes of a launcher, in their order."""
  path = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children")
  return sorted(map(int, path.read_text().split()))


def wait_until(process: subprocess.Popen[str], reached: Callable[[], bool]) -> None:
  """Waits for `reached`; the run must still be going on then."""
  limit = time.monotonic() + LIMIT
  while not reached():
    assert process.poll() is None, "the run ended before its kill"
    assert time.monotonic() < limit
    time.sleep(0.005)


def states_of(base: Path, workdir: Path) -> Any:
  """Returns the states of the last checkpoint, as one device reads them."""
  config = resolve(make_config(f"{SPLIT}:smoke", base / "data", **CHANGES))
  spec = make_run_spec(config, data.load(config.data), "map")
  shapes = jax.eval_shape(jax.vmap(spec.learner.init), spec.tables.key)
  here = jax.sharding.SingleDeviceSharding(jax.devices()[0])
  like = jax.tree.map(lambda leaf: leaf.update(sharding=here), shapes)
  with Checkpoints(workdir / "checkpoints", keep=2) as keeper:
    restored = keeper.restore(like)
  assert restored is not None
  assert restored[0] == 24
  return restored[1]


def assert_same_run(base: Path, workdir: Path, reference: Path) -> None:
  """Asserts the same bits of losses, evaluations, results and checkpoints."""
  scalars = [(path / "scalars.jsonl").read_bytes() for path in (workdir, reference)]
  assert scalars[0] == scalars[1]
  names = sorted(path.name for path in (reference / "evaluations").glob("*.npz"))
  assert names == sorted(path.name for path in (workdir / "evaluations").glob("*.npz"))
  for name in names:
    found = [
      (path / "evaluations" / name).read_bytes() for path in (workdir, reference)
    ]
    assert found[0] == found[1]
  results, first = read_results(workdir), read_results(reference)
  for key in ("seeds", "per_seed", "accuracy_matrix", "average_accuracy"):
    assert results[key] == first[key]
  assert_same_bits(states_of(base, workdir), states_of(base, reference))


def test_a_killed_run_continues_on_one_process_and_then_on_two(base, reference):
  """Two processes, one, and again two, each of other devices, are one run."""
  workdir = base / "killed"

  def saved() -> int:
    return newest_step(workdir / "checkpoints")

  def continued_from(stderr: str) -> int:
    step = re.search(r"Continuing from the checkpoint of step (\d+)\.", stderr)
    assert step is not None
    return int(step[1])

  launcher = launch(base, workdir, devices=2)
  wait_until(launcher, lambda: saved() >= 8)
  os.kill(members(launcher)[1], signal.SIGKILL)
  _, stderr = launcher.communicate(timeout=60)
  assert launcher.returncode == 1
  assert stderr.splitlines()[-1] == (
    "launch: process 1 of 2 was killed by SIGKILL, and the others were stopped; the "
    "same command continues from the last checkpoint."
  )

  of_two = saved()
  alone = subprocess.Popen(
    command(*arguments(base, workdir)),
    env=variables(base),
    stdout=subprocess.DEVNULL,
    stderr=subprocess.PIPE,
    text=True,
  )
  wait_until(alone, lambda: saved() > of_two)
  alone.kill()
  assert continued_from(alone.communicate(timeout=LIMIT)[1]) == of_two
  assert not (workdir / "results.json").exists()

  launcher = launch(base, workdir, devices=2)
  stdout, stderr = launcher.communicate(timeout=LIMIT)
  assert launcher.returncode == 0, stderr
  assert continued_from(stderr) > of_two
  assert stdout.count("Results, tables and figures:") == 1
  assert stderr.count("seeds 0, 1, 2 (map)") == 1
  assert "Devices: 1 seed on each of 4 devices of 2 processes; 1 place to" in stderr
  assert_same_run(base, workdir, reference)
  facts = read_results(workdir)["facts"]
  assert facts["placement"] == {"processes": 2, "devices": 4, "batch_devices": 1}
  assert (facts["environment"]["processes"], facts["environment"]["devices"]) == (2, 4)
  facts = read_results(reference)["facts"]
  assert facts["placement"] == {"processes": 1, "devices": 1, "batch_devices": 1}


def start_both(base: Path, *each: list[str]) -> list[tuple[int, str]]:
  """Returns exit codes and errors of processes that were started without a launcher."""
  address = f"localhost:{_free_port()}"
  started = []
  for index, flags in enumerate(each):
    join = {"JAX_COORDINATOR_ADDRESS": address, "JAX_NUM_PROCESSES": str(len(each))}
    join["JAX_PROCESS_ID"] = str(index)
    started.append(
      subprocess.Popen(
        command(*flags),
        env=variables(base) | join,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
      )
    )
  errors = [process.communicate(timeout=LIMIT)[1] for process in started]
  return [(p.returncode, e) for p, e in zip(started, errors, strict=True)]


def test_processes_with_other_data_are_refused_once(base):
  """The fault is the second process's; the first one tells it, and both end."""
  other = write_idx(base / "other", seed=1)
  flags = arguments(base, base / "refused")
  moved = [*flags, f"--config.data.dir={other}"]
  (first, told), (second, silent) = start_both(base, flags, moved)
  assert (first, second) == (1, 1)
  assert "Traceback" not in told + silent
  (line,) = [line for line in told.splitlines() if line.startswith("ebmjax: ")]
  assert line.startswith('ebmjax: process 1 has data="mnist, not the official set')
  assert line.endswith("give all processes the same command and the same data.")
  assert "ebmjax: " not in silent
  assert not (base / "refused" / "config.json").exists()


def test_a_busy_folder_is_explained_once(base):
  """The launcher adds nothing to the sentence, and passes the exit code on."""
  with Workdir(base / "busy"):
    launcher = launch(base, base / "busy", devices=1)
    _, stderr = launcher.communicate(timeout=LIMIT)
  assert launcher.returncode == BusyError.exit_code
  lines = [line for line in stderr.splitlines() if line.startswith(("ebmjax", "proc"))]
  assert len(lines) == 1
  assert lines[0].startswith("ebmjax: another process is running in ")


# The second process stops dead, as a host does that loses its network.
SILENT = """
import os, signal, time
from ebmjax.errors import BusyError
from ebmjax.runtime import distributed
distributed._SILENCE = 3.0
distributed.start()
distributed.require_same({})
if not distributed.is_primary():
  time.sleep(2)
  os.kill(os.getpid(), signal.SIGSTOP)
time.sleep(60)
"""


def test_a_silent_process_ends_the_run_with_a_sentence(base):
  address = f"localhost:{_free_port()}"
  join = {"JAX_COORDINATOR_ADDRESS": address, "JAX_NUM_PROCESSES": "2"}
  first, second = (
    subprocess.Popen(
      [sys.executable, "-c", SILENT],
      env=variables(base) | join | {"JAX_PROCESS_ID": str(index)},
      stderr=subprocess.PIPE,
      text=True,
    )
    for index in range(2)
  )
  try:
    assert first.communicate(timeout=LIMIT)[1].splitlines()[-1] == (
      "ebmjax: process 1 of the run has died or cannot be reached, so the run was "
      "stopped; the same command continues from the last checkpoint."
    )
    assert first.returncode == 1
  finally:
    second.kill()
    second.communicate()


@pytest.mark.parametrize(
  ("given", "told"),
  [
    ({"JAX_NUM_PROCESSES": "2"}, "JAX_COORDINATOR_ADDRESS is not; set both."),
    (
      {
        "JAX_NUM_PROCESSES": "2",
        "JAX_PROCESS_ID": "2",
        "JAX_COORDINATOR_ADDRESS": "localhost:1",
      },
      "JAX_PROCESS_ID=2 is too large; give 0 to 1 to the 2 processes.",
    ),
    (
      {
        "JAX_NUM_PROCESSES": "two",
        "JAX_PROCESS_ID": "0",
        "JAX_COORDINATOR_ADDRESS": "localhost:1",
      },
      "must be whole numbers",
    ),
    *(
      (
        {
          "JAX_NUM_PROCESSES": "1",
          "JAX_PROCESS_ID": "0",
          "JAX_COORDINATOR_ADDRESS": address,
        },
        "JAX_COORDINATOR_ADDRESS a host:port",
      )
      for address in (":", "a:b", "localhost:", ":80")
    ),
    (
      {
        "JAX_NUM_PROCESSES": "0",
        "JAX_PROCESS_ID": "0",
        "JAX_COORDINATOR_ADDRESS": "localhost:1",
      },
      "JAX_NUM_PROCESSES=0 is too small; give 1 or more.",
    ),
  ],
)
def test_incomplete_environment(given, told, capsys, monkeypatch):
  from ebmjax import main

  for name, value in given.items():
    monkeypatch.setenv(name, value)
  assert main.main([f"--config={SPLIT}:smoke"]) == 1
  (line,) = capsys.readouterr().err.splitlines()
  assert told in line


def test_a_run_of_one_process_asks_no_variable(monkeypatch):
  monkeypatch.setenv("JAX_NUM_PROCESSES", "x")
  distributed.start("off")
  assert not distributed.is_multiprocess()


def test_states_differ_between_seeds(base, reference):
  """Or a mixed-up seed would not be noticed."""
  kernels = jax.tree.leaves(states_of(base, reference).params)
  assert any(not np.array_equal(leaf[0], leaf[1]) for leaf in kernels)
