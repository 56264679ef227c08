"""Says what a run is going to cost: its plan beforehand, its time once it trains."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from ebmjax.runtime.plan import Milestone, tasks_to_evaluate
from ebmjax.runtime.trainer import RunSpec

_log = logging.getLogger("ebmjax")
_LONG = 10.0  # seconds; a run that takes less needs no forecast


class Forecast:
  """The work of the milestones that are left, and the time that it may take.

  Evaluating is set against training by their arithmetic, as the run's `budget` has it.
  """

  def __init__(
    self,
    spec: RunSpec,
    milestones: Sequence[Milestone],
    budget: Mapping[str, Any],
    done: int,
  ) -> None:
    left = [stop for stop in milestones if stop.step > done]
    stream = spec.stream
    tasks, each = stream.labels.shape[1], stream.test_rows.shape[-1]
    stops = [stop for stop in left if stop.evaluate]
    asked = [tasks_to_evaluate(stop, tasks, spec.config.stream) for stop in stops]
    self._evaluations = len(stops)
    self._images = each * sum(map(len, asked))
    self._labels = stream.classes.shape[-1]
    self._steps = milestones[-1].step - max(done, 0)
    self._config = spec.config
    a_step = budget["training_flops"] / milestones[-1].step
    # In steps of training, each seed alike.
    self._evaluating = self._images * budget["inference_flops"] / max(a_step, 1)
    self._chunks = 0

  def announce(self) -> None:
    """Logs the plan, and how to evaluate less where that costs more than training."""
    _log.info(
      "Plan for each seed: %s steps; %d evaluation%s of %s images x %d labels in all.",
      f"{self._steps:,}",
      self._evaluations,
      "" if self._evaluations == 1 else "s",
      f"{self._images:,}",
      self._labels,
    )
    if self._evaluating > self._steps > 0:
      less = ""
      if self._config.eval.every:
        less = "; raise config.eval.every, or set it to 0, to evaluate less often"
      elif self._config.eval.at_task_ends:
        less = "; config.eval.at_task_ends=False evaluates at the end alone"
      ratio = self._evaluating / self._steps
      _log.info(
        "Evaluating takes about %.1f times the arithmetic of training%s.", ratio, less
      )

  def trained(self, steps: int, seconds: float) -> None:
    """Takes the time of a chunk, and logs a forecast after the first warm one."""
    self._steps -= steps
    self._chunks += 1
    if self._chunks != 2:  # the first one compiles
      return
    training, evaluating = (
      seconds / steps * work for work in (self._steps, self._evaluating)
    )
    if training + evaluating > _LONG:
      _log.info(
        "About %s to go: %s of training, %s of evaluating.",
        *map(duration, (training + evaluating, training, evaluating)),
      )


def duration(seconds: float) -> str:
  """Returns a time in the unit that suits it."""
  if seconds < 90:
    return f"{seconds:.0f} s"
  return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
