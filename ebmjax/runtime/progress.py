"""A progress bar on a terminal; a line for each evaluation elsewhere."""

import logging
import sys

from tqdm import tqdm

_log = logging.getLogger("ebmjax")


class Progress:
  """Shows step, loss, accuracy so far and the time left."""

  def __init__(self, total: int, initial: int) -> None:
    self._total = total
    self._done = initial
    self._quiet = not sys.stderr.isatty()
    self._bar = tqdm(
      total=total,
      initial=initial,
      disable=self._quiet,
      unit="step",
      dynamic_ncols=True,
      leave=None,  # under another bar, as in a sweep, it goes at its end
    )
    self._shown: dict[str, str] = {}

  def steps(self, count: int, loss: float) -> None:
    """Advances by `count` steps whose mean loss over seeds was `loss`."""
    self._done += count
    self._shown["loss"] = f"{loss:.4f}"
    self._bar.set_postfix(self._shown, refresh=False)
    self._bar.update(count)

  def accuracy(self, step: int, per_task: list[float], average: float) -> None:
    """Shows the accuracies, in percent, of the tasks seen so far."""
    self._shown["accuracy"] = f"{average:.2f}%"
    self._bar.set_postfix(self._shown, refresh=True)
    if self._quiet:
      tasks = " ".join(f"{value:.1f}" for value in per_task)
      _log.info(
        "step %d of %d: accuracy %.2f %% (tasks: %s)", step, self._total, average, tasks
      )

  def __enter__(self) -> "Progress":
    return self

  def __exit__(self, *exception: object) -> None:
    self._bar.close()
