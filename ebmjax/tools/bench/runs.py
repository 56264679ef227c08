"""Whole runs in processes of their own: compiling, start-up, memory, and their shares.

Two runs of the same command follow each other. The first finds an empty compilation
cache, the second the first one's. They train on random images, as many as the real set
has, for two chunks a task (one epoch a task without boundaries), and evaluate, record
and save as a whole run does. The shares are those of a whole run: the second run's
seconds, each times how much oftener a whole run does it. Recording goes by the number
of chunks, although a part of it comes with evaluations: its share is an upper bound.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ml_collections import ConfigDict

from ebmjax import streams
from ebmjax.config import flat_keys, loading
from ebmjax.config.validation import resolve
from ebmjax.data import DATASETS
from ebmjax.errors import UserError
from ebmjax.runtime.plan import make_plan, tasks_to_evaluate
from ebmjax.tools.bench import cases
from ebmjax.tools.bench.cases import TRAINING, Training, load
from ebmjax.tools.bench.measuring import Options, Row
from ebmjax.tools.bench.tables import number, percent
from ebmjax.types import Dataset

TITLE = "Whole processes, and shares of a whole run"
CASES = TRAINING
_FEW = 2_000  # images of a quick run, and what else makes it one
_QUICK: dict[str, Any] = {
  "eval.batch_size": 50,
  "network.hidden": 32,
  "stream.batch_size": 16,
  "stream.tasks": 2,
}


class Amounts(NamedTuple):
  """How often a run does what takes its time."""

  steps: int
  chunks: int
  evaluated: int  # tasks, each time one is
  saved: int


def measure(case: Training, options: Options) -> Row:
  """Returns what two runs of the case took, on few images where it must be quick."""
  with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    whole = load(case.config, case.changes)
    changes = (_QUICK if options.quick else {}) | dict(case.changes)
    dataset = _dataset(whole.data.name, options.quick)
    changes |= {"data.source": "files", "data.dir": str(_write(dataset, folder))}
    if "pretrained" in whole.network:
      changes["network.pretrained"] = str(cases.write_trunk(folder))
      whole.network.pretrained = changes["network.pretrained"]
    changes |= {
      "stream.iterations": 2 * whole.runner.chunk,
      "stream.epochs_per_task": 1,
    }
    run = load(case.config, tuple(changes.items()))
    known = {key: changes[key] for key in changes if key in flat_keys(run)}
    flags = [f"--config.{key}={value}" for key, value in known.items()]
    command = [f"--config={cases.CONFIGS / case.config}", *flags]
    others = int(run.runner.chunk) - 1  # steps of the first chunk after the first
    cold, warm = (_run(command, folder, start, others) for start in ("cold", "warm"))
    amounts = [_amounts(config, dataset) for config in (run, whole)]
    return {"case": case.name, "cold": cold, "warm": warm} | _whole(warm, *amounts)


def _run(command: list[str], folder: Path, start: str, others: int) -> dict[str, Any]:
  """Returns seconds and memory of one process, whose run goes to a new workdir.

  The first chunk has `others` steps beside the first.
  """
  workdir, out = folder / start, folder / f"{start}.json"
  cache = {"JAX_COMPILATION_CACHE_DIR": str(folder / "cache")}
  program = [
    sys.executable,
    "-m",
    "ebmjax.tools.bench.probe",
    str(out),
    str(time.time()),
  ]
  with (folder / "log").open("wb") as log:
    process = subprocess.run(
      [*program, *command, f"--workdir={workdir}"],
      env=os.environ | {"PYTHONPATH": loading.python_path()} | cache,
      stdout=log,
      stderr=log,
    )
  if process.returncode:
    last = (folder / "log").read_text(errors="replace").strip().splitlines()[-1:]
    raise UserError(f"the run ended with code {process.returncode}: {' '.join(last)}")
  facts = json.loads((workdir / "results.json").read_text())["facts"]
  probed = json.loads(out.read_text())
  to_chunk = probed["seconds_before"] + facts["seconds_to_first_chunk"]
  return {
    "seconds_compiling": probed["seconds_compiling"],
    "seconds_to_first_chunk": to_chunk,
    "seconds_to_first_step": to_chunk - others / facts["steps_per_second"],
    "peak_memory_mb": probed["peak_memory_mb"],
    "steps_per_second": facts["steps_per_second"],
    "seconds": facts["seconds"],
  }


def _whole(run: dict[str, Any], done: Amounts, whole: Amounts) -> dict[str, Any]:
  """Returns the seconds of a whole run by activity, and their shares."""
  spent, per_second = run["seconds"], run["steps_per_second"]
  seconds = {
    # Features of later tasks, too, are computed once.
    "starting": run["seconds_to_first_chunk"] + spent["preparing"],
    "training": whole.steps / per_second,
    "evaluating": spent["evaluating"] * whole.evaluated / done.evaluated,
    "recording": spent["recording"] * whole.chunks / done.chunks,
    "saving": spent["saving"] * whole.saved / done.saved,
  }
  total = sum(seconds.values())
  shares = {name: value / total for name, value in seconds.items()}
  return {"whole_run_seconds": seconds, "shares": shares}


def _amounts(config: ConfigDict, dataset: Dataset) -> Amounts:
  """Returns how often a run of `config` trains, evaluates, records and saves."""
  config = resolve(config)
  stream = streams.stack(
    [streams.build(config.stream, dataset.train_y, dataset.test_y, seed=config.seed)]
  )
  stops = make_plan(config, streams.task_ends(stream))
  tasks, shown = stream.labels.shape[1], config.stream
  steps = np.diff([0, *(stop.step for stop in stops)])
  return Amounts(
    steps=stops[-1].step,
    chunks=int(np.ceil(steps / config.runner.chunk).sum()),
    evaluated=sum(len(tasks_to_evaluate(s, tasks, shown)) for s in stops if s.evaluate),
    saved=sum(stop.step > 0 for stop in stops),
  )


def _dataset(name: str, quick: bool) -> Dataset:
  """Returns random images, a few less than the official set, which is checked."""
  info = DATASETS[name]
  train = _FEW if quick else info.train.size - info.num_classes
  return cases.noise(name, train, _FEW if quick else info.test.size)


def _write(dataset: Dataset, folder: Path) -> Path:
  """Returns the folder, now with the set as an npz."""
  np.savez(
    folder / f"{dataset.name}.npz",
    x_train=dataset.train_x,
    y_train=dataset.train_y,
    x_test=dataset.test_x,
    y_test=dataset.test_y,
  )
  return folder


def cells(row: Row) -> dict[str, str]:
  """Returns a row of the table: what whole processes take, and a whole run's shares."""
  timed = {"compiling": "compiling", "to_first_step": "to the first step"}
  shown = {
    f"{title}, {start} (s)": number(row[start][f"seconds_{what}"])
    for what, title in timed.items()
    for start in ("cold", "warm")
  }
  shown["peak memory (MB)"] = f"{row['cold']['peak_memory_mb']:.0f}"
  shown["whole run (s)"] = number(sum(row["whole_run_seconds"].values()))
  return shown | {name: percent(share) for name, share in row["shares"].items()}


TABLES = (cells,)
