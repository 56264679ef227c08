"""The plain-text table that a run prints when it has finished."""

import html
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ebmjax import methods
from ebmjax.errors import ConfigError
from ebmjax.report import budget, labels, paper_comparison, scores
from ebmjax.report.history import evaluated_on

if TYPE_CHECKING:
  from ebmjax.report.stored import StoredRun

WIDTH = 96
LABEL = 26  # width of the names on the left
TASKS_PER_LINE = 10
# Softmax baselines that know only the last task score about 100 / T percent, and more
# if tasks overlap. The paper's are 0.70 (CIFAR-100, five tasks) to 1.75 times that.
LOW = 1.75
LOWEST = 0.6
SCORED_ON = {
  "validation": "validation images, held out of the training set; not the test images",
  "training": "the training images; not the test images",
}


class Results(dict[str, Any]):
  """The results of a run: a mapping that is displayed as the closing table."""

  def __repr__(self) -> str:
    return closing_table(self) if self else "{}"  # in a process that reads no results

  def _repr_html_(self) -> str:
    return f"<pre>{html.escape(repr(self))}</pre>"


def closing_table(run: "Mapping[str, Any] | StoredRun") -> str:
  """Returns what was run and its outcome, in lines of at most `WIDTH` columns.

  `run` is what `ebmjax.run` returns, or `report.read`.
  """
  results = run if isinstance(run, Mapping) else run.results
  parts = (_heading, _tasks, _scores, _budget, _remarks)
  blocks = [part(results) for part in parts]
  rule = "-" * WIDTH
  body = f"\n{rule}\n".join("\n".join(block) for block in blocks if block)
  return f"{rule}\n{body}\n{rule}"


def _heading(results: Mapping[str, Any]) -> list[str]:
  config, facts = results["config"], results["facts"]
  stream = config["stream"]
  run = (
    f"{config['network']['name']}, {config['method']['name']}, {config['objective']}; "
    f"{stream['name']} {config['data']['name']}, {stream['tasks']} tasks, "
    f"{labels.setting(config)}"
  )
  seeds = ", ".join(str(seed) for seed in results["seeds"])
  lines = _entry("Run", run) + _entry("Seeds", seeds)
  lines += _entry("Data", data(results))
  if evaluated_on(config) != "test":
    lines += _entry("Scored on", SCORED_ON[evaluated_on(config)])
  if isinstance(facts.get("wall_time"), int | float):
    lines += _entry("Wall time", f"{facts['wall_time']:.1f} s{_speed(facts)}")
  return lines


def _speed(facts: Mapping[str, Any]) -> str:
  rate = facts.get("steps_per_second")
  known = isinstance(rate, int | float)
  return "" if not known else f" ({rate:.1f} steps/s, all seeds together)"


def _tasks(results: Mapping[str, Any]) -> list[str]:
  """Returns lines with each task's accuracy at the end."""
  means = _final_means(results)
  lines = []
  for start in range(0, len(means), TASKS_PER_LINE):
    part = means[start : start + TASKS_PER_LINE]
    names = "".join(f"{start + i:>7}" for i in range(1, len(part) + 1))
    cells = "".join(f"{'-':>7}" if np.isnan(m) else f"{m:>7.2f}" for m in part)
    lines.append(f"{'Task':<{LABEL}}{names}")
    lines.append(f"{'  accuracy at the end (%)':<{LABEL}}{cells}")
  return lines


def _final_means(results: Mapping[str, Any]) -> np.ndarray:
  """Returns the accuracy of each task at the end [T], mean over seeds, or NaN."""
  last: np.ndarray = np.array(results["accuracy_matrix"], float)[:, -1]
  return last.mean(axis=0)


def _scores(results: Mapping[str, Any]) -> list[str]:
  """Returns a line per metric; the first one also has the paper's number."""
  lines = [("", "this run", "paper")]
  scored_on = evaluated_on(results["config"])
  for spec, summary in scores.rows(results):
    label, cited = spec.label, ""
    if spec.name == scores.HEADLINE:
      cited = labels.cited(results.get("paper"), "no figure for this run")
      if scored_on != "test":
        label = f"{scored_on.capitalize()} accuracy (%)"
    lines.append((label, labels.counted(summary), cited))
  return labels.columns(lines)


def _budget(results: Mapping[str, Any]) -> list[str]:
  found = budget.rows(results).items()
  costs = "; ".join(f"{cost.title.lower()} {text}" for cost, text in found)
  return _entry("Budget", costs) if costs else []


def data(results: Mapping[str, Any]) -> str:
  """Returns the source of a run's data."""
  return str(results["facts"].get("data_source", "not recorded"))


def _remarks(results: Mapping[str, Any]) -> list[str]:
  found = [f"WARNING: {text}" for text in warnings(results)]
  found += [f"Note: {text}" for text in notes(results)]
  return [line for text in found for line in _wrap(text)]


def warnings(results: Mapping[str, Any]) -> list[str]:
  """Returns why the accuracy of a run must not be compared with others."""
  found = []
  if results["facts"].get("data_full") is False:
    found.append(
      "This run did not use the full data set, so its accuracy is not comparable with "
      "the paper's."
    )
  if results["config"]["data"].get("memorise"):
    found.append(
      "Labels are random and are memorised: the training images are evaluated, and no "
      "accuracy here is a test accuracy."
    )
  return found


def notes(results: Mapping[str, Any]) -> list[str]:
  """Returns notes that explain the accuracy of a run."""
  found = paper_comparison.note(results), _low_value_note(results)
  return [f"{note[0].upper()}{note[1:]}" for note in found if note]


def _replays(config: Mapping[str, Any]) -> bool:
  """Returns whether a run's method trains on earlier data or has its own loss."""
  try:
    spec = methods.find(config["method"]["name"])
  except ConfigError:  # of a package that is not installed here
    return True
  return spec.mixes_tasks or spec.own_objective


def _low_value_note(results: Mapping[str, Any]) -> str | None:
  """Returns why a low average is not a bug; None if it needs no explanation.

  There is none if the paper's figure for such a run is high, if the average is even
  lower, or if another task than the last is the best: such a run has not even learned
  its last task.
  """
  config, average = results["config"], results["average_accuracy"]
  cell, final = results.get("paper"), _final_means(results)
  tasks, only_last = len(final), 100 / len(final)
  plain = config["objective"] == "ce" and not _replays(config)
  class_incremental = config["stream"]["scenario"] == "class"
  if not (plain and class_incremental) or average is None or tasks < 2:
    return None
  figures = [average["mean"], *([] if cell is None else [cell["accuracy"]])]
  low = max(figures) < LOW * only_last and average["mean"] > LOWEST * only_last
  if not low or final[-1] < np.nanmax(final):
    return None
  published = f" The paper reports {labels.cited(cell)} %."
  return (
    f"about 100/{tasks} = {only_last:.1f} % is expected here and is not a bug. "
    "A softmax classifier without replay, regularised or not, ends up predicting "
    "little but the classes of the last task, and the earlier tasks score close to 0 %."
    f"{published if cell else ''}"
  )


def _entry(label: str, text: str) -> list[str]:
  return _wrap(text, first=f"{label:<12}", rest=" " * 12)


def _wrap(text: str, first: str = "", rest: str = "") -> list[str]:
  return textwrap.wrap(
    labels.plain(text),
    WIDTH,
    initial_indent=first,
    subsequent_indent=rest,
    break_on_hyphens=False,
  )
