"""A progress bar where one can be shown, and a line for each evaluation."""

import logging

from tqdm import tqdm

from ebmjax.runtime.console import shows_bars

_log = logging.getLogger("ebmjax")


class Progress:
  """Shows task, step, loss, accuracy so far and the time left."""

  def __init__(self, total: int, initial: int, num_tasks: int) -> None:
    self._total, self._num_tasks = total, num_tasks
    self._bar = tqdm(
      total=total,
      initial=initial,
      disable=not shows_bars(),
      unit="step",
      dynamic_ncols=True,
      leave=None,  # under another bar, as in a sweep, it goes at its end
    )
    self._shown: dict[str, str] = {}

  def task(self, number: int) -> None:
    """Names the task, from 0, that is trained from here on."""
    self._bar.set_description(f"task {number + 1} of {self._num_tasks}", refresh=False)

  def steps(self, count: int, loss: float) -> None:
    """Advances by `count` steps whose mean loss over seeds was `loss`."""
    self._shown["loss"] = f"{loss:.4f}"
    self._bar.set_postfix(self._shown, refresh=False)
    self._bar.update(count)

  def accuracy(self, step: int, per_task: list[float], average: float) -> None:
    """Shows the accuracies, in percent, of the tasks seen so far."""
    self._shown["accuracy"] = f"{average:.2f}%"
    self._bar.set_postfix(self._shown, refresh=True)
    tasks = " ".join(f"{value:.1f}" for value in per_task)
    _log.info(
      "step %d of %d: accuracy %.2f %% (tasks: %s)", step, self._total, average, tasks
    )

  def __enter__(self) -> "Progress":
    return self

  def __exit__(self, *exception: object) -> None:
    self._bar.close()
