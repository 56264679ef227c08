"""Trains and evaluates a run, from its data to what the report needs.

Runs are resumable: rerun the same command to continue from the last checkpoint, bit
for bit. At a milestone the checkpoint is therefore written last: whatever is lost
before it is computed again with the same bits.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from ml_collections import ConfigDict

from ebmjax import streams
from ebmjax.runtime import budget, cost, distributed, failures, memory, scan
from ebmjax.runtime.checkpoints import Checkpoints
from ebmjax.runtime.plan import Milestone, make_plan
from ebmjax.runtime.progress import Progress
from ebmjax.runtime.records import Record
from ebmjax.runtime.timing import Stopwatch
from ebmjax.runtime.trainer import RunSpec, Trainer, describe_parts, make_run_spec
from ebmjax.runtime.workdir import Workdir
from ebmjax.types import Dataset, Evaluation

_log = logging.getLogger("ebmjax")
_ACTIVITIES = ("training", "consolidating", "evaluating", "recording", "saving")


class Board(Protocol):
  """Shows curves while a run is training, as TensorBoard does."""

  def scalars(self, step: int, values: Mapping[str, Any]) -> None:
    """Adds a point to the curve of each name."""

  def flush(self) -> None:
    """Writes all points to the disk."""


class Outcome(NamedTuple):
  """What a report needs besides the records in the run's folder."""

  seeds: list[int]
  class_names: tuple[str, ...]
  facts: dict[str, Any]  # with sizes, memory and timings


def train_and_evaluate(
  config: ConfigDict,
  dataset: Dataset,
  workdir: Path,
  folder: Workdir,
  facts: dict[str, Any],
  *,
  started: float,
  open_board: Callable[[Path, int], AbstractContextManager[Board]],
) -> Outcome:
  """Trains all seeds of `config` to the end, from the last checkpoint if there is one.

  `folder` is the claimed `workdir` (a no-op stand-in on other processes), `facts`
  describe the data and the environment, `started` is the run's start as
  `time.perf_counter` gives it, and `open_board(directory, step)` opens the curves of a
  run that continues from `step`.
  """
  spec = make_run_spec(config, dataset, facts["driver"])
  with failures.explain_write_errors(workdir), ExitStack() as stack:
    folder.begin(config, facts)
    _announce(spec, facts)
    milestones = make_plan(config, streams.task_ends(spec.stream))
    trainer = Trainer(spec)
    watch = Stopwatch(started, *_ACTIVITIES)
    checkpoints = stack.enter_context(
      Checkpoints(workdir / "checkpoints", config.checkpoint.keep)
    )
    done = _restore(trainer, checkpoints, watch)
    _rewind(folder, milestones, done)
    step = max(done, 0)
    board = stack.enter_context(
      distributed.on_primary(lambda: open_board(workdir / "tensorboard", step))
    )
    found = budget.measure(spec)
    forecast = cost.Forecast(spec, milestones, found, done)
    forecast.announce()
    bar = stack.enter_context(
      distributed.on_primary(
        lambda: Progress(milestones[-1].step, step, config.stream.tasks)
      )
    )
    recorder = _Recorder(spec.seeds, folder, board, bar)

    for milestone in (stop for stop in milestones if stop.step > done):
      bar.task(max(milestone.task, 0))
      chunks = scan.chunks(spec.stream, step, milestone.step, config.runner.chunk)
      _advance(trainer, chunks, milestone, recorder, watch, forecast)
      step = milestone.step
      if step > 0:
        with watch("saving"):
          board.flush()
          checkpoints.save(step, trainer.saved(), watch.spent())
  facts = facts | describe_parts(spec) | memory.describe(spec) | watch.summary()
  facts |= {"budget": found}
  return Outcome(spec.seeds, spec.class_names, facts)


def _advance(
  trainer: Trainer,
  chunks: Iterable[scan.Chunk],
  milestone: Milestone,
  recorder: "_Recorder",
  watch: Stopwatch,
  forecast: cost.Forecast,
) -> None:
  """Trains up to a milestone and does what is due there, except to save."""
  for chunk in chunks:
    with watch("training"):
      losses = trainer.train(chunk)
    watch.count(losses.size)
    forecast.trained(losses.shape[1], watch.latest)
    with watch("recording"):
      recorder.add_losses(chunk, losses)
  if milestone.ends_task:
    with watch("consolidating"):
      trainer.consolidate(milestone.task)
  if milestone.evaluate:
    with watch("evaluating"):
      found = trainer.evaluate(milestone)
    with watch("recording"):
      recorder.add_evaluation(milestone, found)


def _announce(spec: RunSpec, facts: dict[str, Any]) -> None:
  """Logs what is about to be trained, on which data and which devices."""
  parts = describe_parts(spec)
  _log.info("Data: %s.", facts["data_source"])
  _log.info(
    "%s on %s, %d parameters, %d steps, seeds %s (%s).",
    spec.config.network.name.upper(),
    facts["environment"]["device"],
    parts["parameters"],
    parts["steps"],
    ", ".join(map(str, spec.seeds)),
    spec.driver,
  )
  memory.announce(spec)
  if spec.sharding.mesh is not None:
    _log.info("Devices: %s.", spec.sharding)


def _restore(trainer: Trainer, checkpoints: Checkpoints, watch: Stopwatch) -> int:
  """Loads the newest checkpoint into the trainer; returns its step, -1 without one."""
  restored = checkpoints.restore(trainer.like_saved())
  if restored is None:
    return -1
  step, states = restored
  trainer.load(states)
  watch.resume_from(checkpoints.spent(step))
  _log.info("Continuing from the checkpoint of step %d.", step)
  return step


def _rewind(folder: Workdir, milestones: Sequence[Milestone], done: int) -> None:
  """Takes the folder back to the step `done`, whose evaluations must all be there."""
  folder.require_evaluations(
    [stop.step for stop in milestones if stop.evaluate and stop.step <= done]
  )
  folder.rewind(done)


class _Recorder:
  """Writes losses and evaluations to the run's folder, its curves and the terminal."""

  def __init__(
    self, seeds: list[int], folder: Workdir, board: Board, bar: Progress
  ) -> None:
    self._seeds, self._folder, self._board, self._bar = seeds, folder, board, bar

  def add_losses(self, chunk: scan.Chunk, losses: np.ndarray) -> None:
    """Writes the mean over a chunk of losses [R, S] at the step that ends the chunk."""
    step = int(chunk.step[chunk.active][-1]) + 1
    means = losses.mean(axis=1)
    self._folder.add_scalars(
      {"step": step, "seed": seed, "loss": float(mean)}
      for seed, mean in zip(self._seeds, means, strict=True)
    )
    self._board.scalars(step, {"loss": float(means.mean())})
    self._bar.steps(losses.shape[1], float(losses.mean()))

  def add_evaluation(self, milestone: Milestone, found: Evaluation) -> None:
    """Writes an evaluation, and shows the accuracies of the scored tasks in percent."""
    step, ends_task = milestone.step, milestone.ends_task
    finished = milestone.task + 1 if ends_task else max(milestone.task, 0)
    self._folder.add_evaluation(Record(step, finished, ends_task, found))
    per_task = 100 * found.accuracy.mean(axis=0)
    shown = {
      f"accuracy/task_{task + 1}": float(value)
      for task, value in enumerate(per_task)
      if np.isfinite(value)
    }
    if shown:
      average = float(np.mean(list(shown.values())))
      self._board.scalars(step, shown | {"accuracy/average": average})
      self._bar.accuracy(step, list(shown.values()), average)
