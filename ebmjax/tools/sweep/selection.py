"""How settings are scored for the choice: by all tasks, or by the first one."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ebmjax import metrics

Results = Mapping[str, Any]


class Selection(NamedTuple):
  """One way to score a run for the choice."""

  images: str  # scored, as part of a sentence
  score: Callable[
    [Results], tuple[Mapping[str, Any], list[float]]
  ]  # mean, sem, n; each


def _all_tasks(results: Results) -> tuple[Mapping[str, Any], list[float]]:
  return results["average_accuracy"], results["per_seed"]


def _first_task(results: Results) -> tuple[Mapping[str, Any], list[float]]:
  each = [matrix[0][0] for matrix in results["accuracy_matrix"]]
  return metrics.mean_sem(np.array(each))._asdict(), each


WHOLE_STREAM, FIRST_TASK = "whole_stream", "first_task"
SELECTIONS = {
  WHOLE_STREAM: Selection("the held-out images of all tasks at the end", _all_tasks),
  FIRST_TASK: Selection(
    "the held-out images of the first task when it has ended", _first_task
  ),
}


def summary(results: Results, select: str = WHOLE_STREAM) -> dict[str, Any]:
  """Returns the score of a run: mean, sem, n, per_seed, seeds and seconds."""
  score, each = SELECTIONS[select].score(results)
  return {
    **score,
    "per_seed": each,
    "seeds": results["seeds"],
    "seconds": results["facts"].get("wall_time"),
  }
