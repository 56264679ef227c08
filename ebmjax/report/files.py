"""The files of a finished run, each written completely or not at all."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ebmjax.report import page, plots, scores
from ebmjax.report.history import History, evaluated_on, matrices
from ebmjax.report.results import summarise
from ebmjax.report.scores import MetricSpec
from ebmjax.runtime import atomic, json_files
from ebmjax.runtime.tabular import csv_text
from ebmjax.runtime.tensorboard import Board

AVALANCHE_HEADER = (
  "eval_exp",
  "training_exp",
  "eval_accuracy",
  "eval_loss",
  "forgetting",
)


def write(
  workdir: Path,
  history: History,
  config: Mapping[str, Any],
  facts: Mapping[str, Any],
  scalars: Sequence[Mapping[str, Any]],
  extra: Sequence[MetricSpec] = (),
  paper: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
  """Writes the results and figures of a run to `workdir`, and returns the results.

  `scalars` are the training curves, one mapping with step, seed and loss per point;
  `extra` are metrics besides those of `scores.METRICS`, and `paper` is the published
  figure to show beside the run, as `paper_comparison` describes it.
  """
  workdir = Path(workdir)
  (workdir / "plots").mkdir(parents=True, exist_ok=True)
  history = history._replace(evaluated_on=evaluated_on(config))
  results = summarise(history, config, facts, extra, paper)
  charts = plots.draw(history, scalars)
  for name, chart in charts.items():
    atomic.write(workdir / "plots" / f"{name}.png", plots.png(chart))
  atomic.write(workdir / "accuracy_matrix.csv", _accuracy_csv(history))
  atomic.write(workdir / "eval_results.csv", _avalanche_csv(history))
  atomic.write(workdir / "metrics.csv", _metrics_csv(results, history))
  atomic.write(workdir / page.NAME, page.render(results, history, charts))
  _write_board(workdir / "tensorboard", results, int(history.steps[-1]))
  # Last: where this file exists, the run has finished and the others are complete.
  json_files.write(workdir / "results.json", results)
  return results


def _write_board(folder: Path, results: Mapping[str, Any], step: int) -> None:
  """Adds the metrics to the run's TensorBoard curves, at its last step."""
  found = {
    f"metrics/{spec.name}": summary["mean"]
    for spec, summary in scores.rows(results)
    if summary is not None
  }
  with Board(folder, resume_step=step) as board:
    board.scalars(step, found)


def _metrics_csv(results: Mapping[str, Any], history: History) -> str:
  """Returns a row per seed and a column per metric; undefined values are empty."""
  columns = scores.by_seed(results, history)
  rows = [
    (seed, *(_number(column[run]) for _, column in columns))
    for run, seed in enumerate(history.seeds)
  ]
  return csv_text(("seed", *(spec.name for spec, _ in columns)), rows)


def _accuracy_csv(history: History) -> str:
  """Returns every evaluated entry of both matrices, in percent, tasks from 1."""
  accuracy, masked = matrices(history)
  rows = []
  for run, after, task in np.argwhere(~np.isnan(accuracy) | ~np.isnan(masked)):
    entry = (run, after, task)
    numbers = (_number(100 * accuracy[entry]), _number(100 * masked[entry]))
    rows.append((history.seeds[run], after + 1, task + 1, *numbers))
  header = ("seed", "after_task", "task", "accuracy", "masked_accuracy")
  return csv_text(header, rows)


def _avalanche_csv(history: History) -> str:
  """Returns the mean over seeds in the layout of Avalanche's CSVLogger.

  Programs that read it expect its conventions: experiences from 0, fractions of 1 with
  four decimals, and forgetting as the drop since the experience was learned.
  """
  mean = matrices(history)[0].mean(axis=0)
  rows = []
  for training, task in np.argwhere(~np.isnan(mean)):
    drop = mean[task, task] - mean[training, task] if task < training else 0.0
    numbers = (_number(mean[training, task]), "", _number(drop))
    rows.append((task, training, *numbers))
  return csv_text(AVALANCHE_HEADER, rows)


def _number(value: float) -> str:
  return "" if np.isnan(value) else f"{value:.4f}"
