"""Runs a configuration from data to report; the one place with effects in a loop."""

import logging
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict

from ebmjax import data, networks, streams
from ebmjax import report as reporting
from ebmjax.config import PLACES, flat_keys
from ebmjax.config.validation import resolve
from ebmjax.errors import WorkdirError
from ebmjax.runtime import distributed, environment, failures, finished, memory, scan
from ebmjax.runtime.checkpoints import Checkpoints
from ebmjax.runtime.plan import Stop, make_plan
from ebmjax.runtime.progress import Progress
from ebmjax.runtime.records import Record
from ebmjax.runtime.timing import Stopwatch
from ebmjax.runtime.trainer import Machine, Setup, describe_parts, make_setup
from ebmjax.runtime.workdir import WEIGHTS, Workdir
from ebmjax.types import Dataset, Evaluation

_log = logging.getLogger("ebmjax")
_ACTIVITIES = ("training", "consolidating", "evaluating", "recording", "saving")


def run(
  config: ConfigDict,
  workdir: str | Path,
  dataset: Dataset | None = None,
  *,
  command: str | None = None,
) -> dict[str, Any]:
  """Returns the results of `config`, after running what `workdir` does not hold yet.

  A finished run is only read; a broken-off one goes on from its last checkpoint. Of
  several processes all run it, and the first alone reads and writes the folder and
  returns more than an empty mapping. `dataset` is what config.data names, where it has
  been loaded before; `command`, what a user would type to run it again, is kept with
  the results.
  """
  started = time.perf_counter()
  config = resolve(config)
  workdir = Path(workdir).absolute() if distributed.several() else Path(workdir)
  _require_same_command(config, workdir)
  locked = distributed.only_first(lambda: Workdir(workdir))
  with locked as folder, memory.shortage_told():
    folder.claim(config)
    results = folder.results(whole=finished.fills_page)
    if results is not None:
      finished.require_same_data(results, config, workdir, dataset)
      results = reporting.with_todays_figure(results)
      told = "%s holds this run, finished, on %s; nothing is left to do."
      _log.info(told, workdir, finished.source(results))
    if distributed.from_first(lambda: results is not None):
      return results or {}
    _require_shared(workdir)
    if dataset is None:
      dataset = distributed.after_first(lambda: data.load(config.data))
    now = _facts(config, dataset) | ({"command": command} if command else {})
    _require_same_data(now)
    facts = distributed.from_first(lambda: folder.settle(now))
    facts["commits"] = environment.commits(facts, now)
    setup = make_setup(config, dataset, facts["driver"])
    with failures.writing(workdir):
      return _train(setup, folder, workdir, facts, started)


def _train(
  setup: Setup, folder: Workdir, workdir: Path, facts: dict[str, Any], started: float
) -> dict[str, Any]:
  """Returns the results, after everything that a run writes to its folder."""
  folder.begin(setup.config, facts)
  _announce(setup, facts)
  timing = _Loop(setup, folder, workdir, started).run()
  facts = facts | describe_parts(setup) | memory.describe(setup) | timing
  results = _report(setup, folder, facts) if distributed.is_first() else {}
  distributed.wait_for_first()
  return results


def _report(setup: Setup, folder: Workdir, facts: dict[str, Any]) -> dict[str, Any]:
  return reporting.write(
    folder.path,
    reporting.make_history(folder.evaluations(), setup.class_names, setup.seeds),
    setup.config.to_dict(),
    facts,
    folder.scalars(),
  )


class _Loop:
  """Training from stop to stop, with what must be on the disk at each of them."""

  def __init__(
    self, setup: Setup, folder: Workdir, workdir: Path, started: float
  ) -> None:
    self._setup, self._folder, self._workdir = setup, folder, workdir
    self._stops = make_plan(setup.config, streams.task_ends(setup.stream))
    self._machine = Machine(setup)
    self._watch = Stopwatch(started, *_ACTIVITIES)

  def run(self) -> dict[str, Any]:
    """Returns timings, after bringing the run to its last step from where it stands."""
    with ExitStack() as stack:
      self._keeper = stack.enter_context(self._open_checkpoints())
      done = self._restore()
      self._require_evaluations(done)
      self._folder.rewind(done)
      first = max(done, 0)
      board_dir, steps = self._workdir / "tensorboard", self._stops[-1].step
      board = distributed.only_first(lambda: reporting.Board(board_dir, first))
      bar = distributed.only_first(lambda: Progress(steps, first))
      self._board = stack.enter_context(board)
      self._bar = stack.enter_context(bar)
      for stop in self._stops:
        if stop.step > done:
          self._train_until(stop, first)
          self._pause(stop)
          first = stop.step
    return self._watch.summary()

  def _open_checkpoints(self) -> Checkpoints:
    keep = self._setup.config.checkpoint.keep
    return Checkpoints(self._workdir / "checkpoints", keep)

  def _restore(self) -> int:
    """Returns the step of the newest checkpoint, now in the machine; -1 without one."""
    restored = self._keeper.restore(self._machine.like_saved())
    if restored is None:
      return -1
    step, states = restored
    self._machine.load(states)
    self._watch.go_on_from(self._keeper.spent(step))
    _log.info("Going on from the checkpoint of step %d.", step)
    return step

  def _require_evaluations(self, done: int) -> None:
    """Refuses to go on without what was found before: its scores need all of it."""
    self._folder.require_evaluations(
      [stop.step for stop in self._stops if stop.evaluate and stop.step <= done]
    )

  def _train_until(self, stop: Stop, first: int) -> None:
    size = self._setup.config.runner.chunk
    for chunk in scan.chunks(self._setup.stream, first, stop.step, size):
      with self._watch("training"):
        losses = self._machine.train(chunk)
      self._watch.count(losses.size)
      with self._watch("recording"):
        self._record_losses(int(chunk.step[chunk.active][-1]) + 1, losses.mean(axis=1))
        self._bar.steps(losses.shape[1], float(losses.mean()))

  def _pause(self, stop: Stop) -> None:
    """Consolidates, evaluates and saves, in this order.

    The checkpoint comes last: whatever is lost before it is made again, alike.
    """
    if stop.ends_task:
      with self._watch("consolidating"):
        self._machine.consolidate(stop.task)
    if stop.evaluate:
      with self._watch("evaluating"):
        found = self._machine.evaluate(stop)
      finished = stop.task + 1 if stop.ends_task else max(stop.task, 0)
      with self._watch("recording"):
        self._folder.add_evaluation(Record(stop.step, finished, stop.ends_task, found))
        self._record_accuracy(stop, found)
    if stop.step > 0:
      with self._watch("saving"):
        self._board.flush()
        self._keeper.save(stop.step, self._machine.saved(), self._watch.spent())

  def _record_losses(self, step: int, means: np.ndarray) -> None:
    """Writes each seed's mean loss [R] over the chunk, under the step that ends it."""
    self._folder.add_scalars(
      {"step": step, "seed": seed, "loss": float(mean)}
      for seed, mean in zip(self._setup.seeds, means, strict=True)
    )
    self._board.scalars(step, {"loss": float(means.mean())})

  def _record_accuracy(self, stop: Stop, found: Evaluation) -> None:
    """Shows the scored tasks' accuracies, and their mean, in percent."""
    per_task = 100 * found.accuracy.mean(axis=0)
    shown = {
      f"accuracy/task_{task + 1}": float(value)
      for task, value in enumerate(per_task)
      if np.isfinite(value)
    }
    if shown:
      average = float(np.mean(list(shown.values())))
      self._board.scalars(stop.step, shown | {"accuracy/average": average})
      self._bar.accuracy(stop.step, list(shown.values()), average)


def _require_same_command(config: ConfigDict, workdir: Path) -> None:
  """Refuses processes that were started to do different things."""
  keys = {
    f"config.{key}": value
    for key, value in flat_keys(config).items()
    if key not in PLACES  # each host may keep the data elsewhere
  }
  distributed.require_same(keys | {"--workdir": str(workdir)})


def _require_shared(workdir: Path) -> None:
  """Refuses a workdir that some process does not see; all take part in checkpoints."""
  if not distributed.several():
    return
  with failures.writing(workdir):
    word = distributed.from_first(Workdir(workdir).sign)
  if not distributed.is_first() and not Workdir(workdir).is_signed(word):
    raise WorkdirError(
      f"the workdir {workdir} of process 0 is not the one that another process sees; "
      "choose a folder that all hosts share with --workdir."
    )


def _require_same_data(facts: dict[str, Any]) -> None:
  data_told = f"{facts['data_source']} ({facts['data_digest']})"
  weights = facts.get(WEIGHTS, "none")
  distributed.require_same({"data": data_told, "pre-trained weights": weights})


def _announce(setup: Setup, facts: dict[str, Any]) -> None:
  parts = describe_parts(setup)
  _log.info("Data: %s.", facts["data_source"])
  _log.info(
    "%s on %s, %d parameters, %d steps, seeds %s (%s).",
    setup.config.network.name.upper(),
    facts["environment"]["device"],
    parts["parameters"],
    parts["steps"],
    ", ".join(map(str, setup.seeds)),
    setup.driver,
  )
  memory.announce(setup)
  if setup.layout.mesh is not None:
    _log.info("Devices: %s.", setup.layout)


def _facts(config: ConfigDict, dataset: Dataset) -> dict[str, Any]:
  """Returns what every output says of the data and the machine."""
  path = config.network.pretrained
  weights = {WEIGHTS: networks.trunk_digest(path)} if path else {}
  return weights | {
    "data_source": dataset.source,
    "data_full": dataset.full,
    "evaluated_on": reporting.evaluated_on(config.to_dict()),
    "data_digest": data.digest(dataset),
    "driver": scan.choose_driver(config.runner.driver, jax.default_backend()),
    "environment": environment.describe(),
  }
