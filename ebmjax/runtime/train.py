"""Trains and evaluates a run, from its data to what the report needs.

Runs are resumable: rerun the same command to continue from the last checkpoint, bit
for bit. At a milestone the checkpoint is therefore written last: whatever is lost
before it is computed again with the same bits.
"""

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ml_collections import ConfigDict

from ebmjax import streams
from ebmjax.errors import DivergenceError, WorkdirError
from ebmjax.runtime import budget, cost, distributed, failures, memory, scan
from ebmjax.runtime.checkpoints import Checkpoints
from ebmjax.runtime.plan import Milestone, make_plan
from ebmjax.runtime.progress import Progress
from ebmjax.runtime.records import Record
from ebmjax.runtime.tensorboard import Board
from ebmjax.runtime.timing import Stopwatch
from ebmjax.runtime.trainer import RunSpec, Trainer, describe_parts, make_run_spec
from ebmjax.runtime.workdir import Workdir
from ebmjax.types import Dataset, Evaluation

_log = logging.getLogger("ebmjax")
_ACTIVITIES = (
  *("preparing", "training", "consolidating", "evaluating", "recording", "saving"),
)


class Outcome(NamedTuple):
  """What a report needs besides the records in the run's folder."""

  seeds: list[int]
  class_names: tuple[str, ...]
  facts: dict[str, Any]  # with sizes, memory and timings


class Place(NamedTuple):
  """One setting's run: its configuration, its folder and what is known of it."""

  config: ConfigDict
  workdir: Path
  folder: Workdir  # the claimed `workdir`; a no-op stand-in on other processes
  facts: dict[str, Any]  # of the data and the environment


def train_and_evaluate(
  places: Sequence[Place], dataset: Dataset, started: float
) -> list[Outcome | DivergenceError]:
  """Trains all seeds of a setting to the end, from its last checkpoint if it has one.

  Several settings, which differ in traced keys alone and have come equally far, are
  trained together, by one program; with other settings beside it, one that diverges
  has its error in the place of an outcome. `started` is the run's start as
  `time.perf_counter` gives it.
  """
  first = places[0]
  spec = make_run_spec([each.config for each in places], dataset, first.facts["driver"])
  with failures.explain_write_errors(first.workdir), ExitStack() as stack:
    for place in places:
      place.folder.begin(place.config, place.facts)
    _announce(spec, first.facts)
    milestones = make_plan(first.config, streams.task_ends(spec.stream))
    trainer = Trainer(spec)
    watch = Stopwatch(started, *_ACTIVITIES, together=len(places))
    keep = first.config.checkpoint.keep
    checkpoints = [
      stack.enter_context(Checkpoints(place.workdir / "checkpoints", keep))
      for place in places
    ]
    done = _restore(trainer, checkpoints, watch)
    step = max(done, 0)
    found = budget.measure(spec)
    forecast = cost.Forecast(spec, milestones, found, done)
    forecast.announce()
    bar = stack.enter_context(
      distributed.on_primary(
        lambda: Progress(milestones[-1].step, step, first.config.stream.tasks)
      )
    )
    recorders = []
    for place in places:
      _rewind(place.folder, milestones, done)
      open_own = partial(Board, place.workdir / "tensorboard", step)
      board = stack.enter_context(distributed.on_primary(open_own))
      recorders.append(_Recorder(spec.seeds, place.folder, board, bar))
    together = _Together(spec, trainer, recorders, bar, watch, forecast)
    left = [stop for stop in milestones if stop.step > done]
    try:
      together.run(left, step, checkpoints)
    except DivergenceError:
      if len(places) == 1:
        raise  # of several, each has an error of its own
  own = describe_parts(spec) | memory.describe(spec) | watch.summary()
  own |= {"budget": found}
  return [
    trainer.diverged.get(point)
    or Outcome(spec.seeds, spec.class_names, place.facts | own)
    for point, place in enumerate(places)
  ]


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


def _restore(
  trainer: Trainer, checkpoints: Sequence[Checkpoints], watch: Stopwatch
) -> int:
  """Loads the newest checkpoints into the trainer; returns their step, -1 without."""
  like = trainer.like_saved()
  found = [each.restore(like) for each in checkpoints]
  if found[0] is None and not any(found):
    return -1
  steps = {restored[0] if restored else -1 for restored in found}
  if len(steps) > 1:
    raise WorkdirError("settings that were trained together are at different steps.")
  step = steps.pop()
  trainer.load([restored[1] for restored in found if restored])
  watch.resume_from(checkpoints[0].spent(step))
  _log.info("Continuing from the checkpoint of step %d.", step)
  return step


def _rewind(folder: Workdir, milestones: Sequence[Milestone], done: int) -> None:
  """Takes the folder back to the step `done`, whose evaluations must all be there."""
  folder.require_evaluations(
    [stop.step for stop in milestones if stop.evaluate and stop.step <= done]
  )
  folder.rewind(done)


class _Together(NamedTuple):
  """Advances the settings of a run and has each write to its own folder."""

  spec: RunSpec
  trainer: Trainer
  recorders: Sequence["_Recorder"]
  bar: Progress
  watch: Stopwatch
  forecast: cost.Forecast

  def run(
    self, milestones: Sequence[Milestone], step: int, checkpoints: Sequence[Checkpoints]
  ) -> None:
    """Trains from `step` to each of the milestones, and saves there.

    Training does not wait for the evaluation of the untrained network, which is not
    needed before the first checkpoint: it follows the first chunk.
    """
    spec = self.spec
    untrained = [stop for stop in milestones if stop.step == 0]
    for milestone in milestones[len(untrained) :]:
      self.bar.task(max(milestone.task, 0))
      size = spec.config.runner.chunk
      for chunk in scan.chunks(spec.stream, step, milestone.step, size):
        self._train(chunk)
        while untrained:
          self._evaluate(untrained.pop())
      step = milestone.step
      if milestone.ends_task:
        with self.watch("consolidating"):
          self.trainer.consolidate(milestone.task)
      if milestone.evaluate:
        self._evaluate(milestone)
      with self.watch("saving"):
        self._save(checkpoints, step)

  def _train(self, chunk: scan.Chunk) -> None:
    """Trains on a chunk, and records its losses."""
    watch = self.watch
    with watch("preparing"):
      self.trainer.prepare_images(chunk)
    with watch("training"):
      losses = self.trainer.train(chunk)
    watch.count(losses.size)
    self.forecast.trained(losses.shape[1], watch.latest)
    with watch("recording"):
      for recorder, block in self._finite():
        recorder.add_losses(chunk, losses[block])
      finite = losses[np.isfinite(losses).all(axis=1)]
      self.bar.steps(losses.shape[1], float(finite.mean()))

  def _evaluate(self, milestone: Milestone) -> None:
    """Evaluates at a milestone, and records what was found."""
    with self.watch("evaluating"):
      found = self.trainer.evaluate(milestone)
    with self.watch("recording"):
      for recorder, block in self._finite():
        part = Evaluation(*(values[block] for values in found))
        recorder.add_evaluation(milestone, part)

  def _save(self, checkpoints: Sequence[Checkpoints], step: int) -> None:
    """Writes the checkpoints of a milestone, after the curves."""
    spent = self.watch.spent()
    for recorder, _ in self._finite():
      recorder.flush()
    for point, keeper in enumerate(checkpoints):
      if point not in self.trainer.diverged:
        keeper.save(step, self.trainer.saved(point), spent)

  def _finite(self) -> list[tuple["_Recorder", slice]]:
    """Returns the recorders of the settings that have not diverged, and their runs."""
    diverged = self.trainer.diverged
    return [
      (recorder, self.spec.block(point))
      for point, recorder in enumerate(self.recorders)
      if point not in diverged
    ]


class _Recorder(NamedTuple):
  """Writes losses and evaluations to the run's folder, its curves and the terminal."""

  seeds: list[int]
  folder: Workdir
  board: Board
  bar: Progress

  def add_losses(self, chunk: scan.Chunk, losses: np.ndarray) -> None:
    """Writes the mean over a chunk of losses [R, S] at the step that ends the chunk."""
    step = int(chunk.step[chunk.active][-1]) + 1
    means = losses.mean(axis=1)
    self.folder.add_scalars(
      {"step": step, "seed": seed, "loss": float(mean)}
      for seed, mean in zip(self.seeds, means, strict=True)
    )
    self.board.scalars(step, {"loss": float(means.mean())})

  def flush(self) -> None:
    """Writes all points of the curves to the disk."""
    self.board.flush()

  def add_evaluation(self, milestone: Milestone, found: Evaluation) -> None:
    """Writes an evaluation, and shows the accuracies of the scored tasks in percent."""
    step, ends_task = milestone.step, milestone.ends_task
    finished = milestone.task + 1 if ends_task else max(milestone.task, 0)
    self.folder.add_evaluation(Record(step, finished, ends_task, found))
    per_task = 100 * found.accuracy.mean(axis=0)
    shown = {
      f"accuracy/task_{task + 1}": float(value)
      for task, value in enumerate(per_task)
      if np.isfinite(value)
    }
    if shown:
      average = float(np.mean(list(shown.values())))
      self.board.scalars(step, shown | {"accuracy/average": average})
      self.bar.accuracy(step, list(shown.values()), average)
