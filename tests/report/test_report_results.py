"""results.json: its numbers, and that any JSON reader accepts it."""

import json
from pathlib import Path

import numpy as np
import pytest

from ebmjax.report import METRICS, History, summarise
from ebmjax.report.results import jsonable
from ebmjax.types import Evaluation
from tests.report.histories import make_config, make_history

NAN = np.nan


@pytest.fixture
def history() -> History:
  """Returns two runs of two tasks: untrained, amid each task, at its end."""
  accuracy = [
    [[NAN, NAN], [NAN, NAN]],
    [[0.11, NAN], [0.11, NAN]],
    [[0.90, NAN], [0.80, NAN]],
    [[0.33, 0.33], [0.33, 0.33]],
    [[0.40, 1.00], [0.20, 0.80]],
  ]
  masked = [
    [[0.50, 0.45], [0.50, 0.55]],
    [[0.60, 0.60], [0.60, 0.60]],
    [[0.95, 0.55], [0.90, 0.60]],
    [[0.70, 0.70], [0.70, 0.70]],
    [[0.90, 1.00], [0.80, 0.90]],
  ]
  confusion = np.zeros((5, 2, 3, 3), np.int32)
  confusion[-1] = [[[1, 1, 0], [0, 0, 2], [0, 0, 4]], [[8, 0, 0]] + [[0, 0, 0]] * 2]
  ranking = np.full((5, 5, 2), NAN)
  ranking[:4, 2] = [[0.9, 0.7], [0.8, 0.6], [0.2, 0.4], [0.3, 0.5]]
  ranking[4, 1:] = [[0.5, 0.5], [0.02, 0.04], [0.5, 0.5], [0.1, 0.2]]
  evaluations = Evaluation(
    np.array(accuracy),
    np.array(masked),
    confusion,
    np.zeros((5, 2, 3, 3), np.float32),
    *ranking,
  )
  return History(
    steps=np.array([0, 5, 10, 15, 20]),
    tasks_finished=np.array([0, 0, 1, 1, 2]),
    at_task_end=np.array([False, False, True, False, True]),
    evaluations=evaluations,
    class_names=("a", "b", "c"),
    seeds=(7, 8),
  )


def test_numbers_of_a_run(history):
  results = summarise(history, make_config(), {})
  assert results["per_seed"] == [70.0, 50.0]
  # two values 20 apart: sample deviation 20 / sqrt(2), SEM 10
  for name, mean, sem, per_seed in (
    ("average_accuracy", 60.0, 10.0, [70.0, 50.0]),
    ("average_incremental_accuracy", 72.5, 7.5, [80.0, 65.0]),
    ("learning_accuracy", 87.5, 7.5, [95.0, 80.0]),
    ("task_incremental_accuracy", 90.0, 5.0, [95.0, 85.0]),
    ("forgetting", 55.0, 5.0, [50.0, 60.0]),
    ("backward_transfer", -55.0, 5.0, [-50.0, -60.0]),
    # 0.55 - 0.45 and 0.60 - 0.55, from the untrained evaluation, not the middle one
    ("forward_transfer", 7.5, 2.5, [10.0, 5.0]),
    # the first task's lowest since its end, 0.33 and 0.20; then 1.0 and 0.8 beside it
    ("min_accuracy", 26.5, 6.5, [33.0, 20.0]),
    ("worst_case_accuracy", 58.25, 8.25, [66.5, 50.0]),
    ("auroc_lowest", 80.0, 10.0, [90.0, 70.0]),
    ("auroc_free", 70.0, 10.0, [80.0, 60.0]),
    ("fpr95_lowest", 30.0, 10.0, [20.0, 40.0]),
    ("fpr95_free", 40.0, 10.0, [30.0, 50.0]),
    ("calibration_error", 15.0, 5.0, [10.0, 20.0]),
  ):
    wanted = {"mean": mean, "sem": sem, "n": 2, "per_seed": per_seed}
    assert results[name] == wanted, name
  assert results["schema"] == 2
  assert list(results["metrics"]) == [spec.name for spec in METRICS]
  assert results["accuracy_matrix"] == [
    [[90.0, None], [40.0, 100.0]],
    [[80.0, None], [20.0, 80.0]],
  ]
  assert results["by_task_end"]["auroc_lowest"] == [[90.0, None], [70.0, None]]
  assert results["by_task_end"]["calibration_error"] == [[2.0, 10.0], [4.0, 20.0]]
  assert results["masked_accuracy_matrix"][0] == [[95.0, 55.0], [90.0, 100.0]]
  assert results["untrained_masked_accuracy"] == [[50.0, 45.0], [50.0, 55.0]]
  # run 0: 1, 1, 6 of 8; run 1: 8, 0, 0 of 8
  assert results["predicted_label_share"] == [56.25, 6.25, 37.5]
  assert results["seeds"] == [7, 8] and results["class_names"] == ["a", "b", "c"]
  assert results["paper"] is None  # unless one is handed in


def test_evaluation_at_the_end_alone_gives_null(history):
  end = history._replace(
    steps=history.steps[-1:],
    tasks_finished=history.tasks_finished[-1:],
    at_task_end=history.at_task_end[-1:],
    evaluations=Evaluation(*(array[-1:] for array in history.evaluations)),
  )
  results = summarise(end, make_config(setting="boundary_free"), {})
  assert results["average_accuracy"]["mean"] == 60.0
  for name in ("forgetting", "backward_transfer", "forward_transfer", "min_accuracy"):
    assert results[name] is None
  assert results["accuracy_matrix"][0] == [[None, None], [40.0, 100.0]]
  assert results["untrained_masked_accuracy"] == [[None, None], [None, None]]


def test_unfinished_run_has_no_average(history):
  short = history._replace(at_task_end=np.array([False, False, True, False, False]))
  assert summarise(short, make_config(), {})["average_accuracy"] is None


def test_single_run_of_a_single_task():
  results = summarise(make_history(tasks=1, runs=1), make_config(tasks=1), {})
  assert results["average_accuracy"]["n"] == 1
  assert results["average_accuracy"]["sem"] is None
  assert results["forgetting"] is None


def test_facts_config_and_paper_pass_through(history):
  facts = {"commit": "abc", "versions": {"jax": "0.10"}, "wall_time": 1.5, "x": None}
  config = make_config()
  paper = {"cell": "a/b", "accuracy": 50.0, "departures": [["seed", 1, None]]}
  results = summarise(history, config, facts, paper=paper)
  assert results["facts"] == facts and results["config"] == config
  assert results["paper"] == paper
  priced = summarise(history, config, facts | {"budget": {"parameters": 7}})
  assert priced["facts"] == facts and priced["budget"] == {"parameters": 7}


def test_results_are_strict_json(history):
  facts = {"rate": NAN, "steps": np.int64(3), "path": Path("data"), "shape": (2, 3)}
  results = summarise(history, make_config(), facts)
  text = json.dumps(results, allow_nan=False)
  assert json.loads(text) == results
  assert results["facts"] == {
    "rate": None,
    "steps": 3,
    "path": "data",
    "shape": [2, 3],
  }


def test_jsonable_removes_infinities_at_any_depth():
  value = {1: [np.inf, (np.float32(0.5), -np.inf)], "b": np.array([NAN, 1.0])}
  assert jsonable(value) == {"1": [None, [0.5, None]], "b": [None, 1.0]}
  assert jsonable(True) is True
