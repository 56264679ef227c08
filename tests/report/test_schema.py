"""Results of every version are read; what they lack is left out, never an error."""

import json
from typing import Any

import numpy as np
import pytest
from tensorboardX.proto.event_pb2 import Event

from ebmjax.errors import ConfigError
from ebmjax.report import (
  METRICS,
  MetricSpec,
  closing_table,
  compare,
  compare_files,
  stored,
  summarise,
  write,
)
from ebmjax.runtime import json_files
from ebmjax.runtime.results import is_reportable, is_valid
from ebmjax.tools.report import main
from tests.helpers import read_results
from tests.report.histories import make_config, make_history
from tests.report.pages import Reader, store
from tests.test_tensorboard import points, read_events

LATER = ("average_incremental_accuracy", "learning_accuracy")  # of schema 2


pytestmark = pytest.mark.usefixtures("no_plots")


def first_version(results: dict[str, Any]) -> dict[str, Any]:
  """Returns results as schema 1 had them."""
  old = {key: results[key] for key in results if key not in ("schema", "metrics")}
  for spec in METRICS:
    if old[spec.name]:
      old[spec.name] = {key: old[spec.name][key] for key in ("mean", "sem", "n")}
  return {key: value for key, value in old.items() if key not in LATER}


@pytest.fixture
def old(tmp_path):
  """Returns the folder of a run of schema 1."""
  folder = store(tmp_path / "old", make_history(tasks=5, classes=10), make_config())
  path = folder / "results.json"
  path.write_text(json.dumps(first_version(read_results(folder))))
  return folder


def test_an_older_file_is_shown_without_what_it_lacks():
  results = first_version(summarise(make_history(), make_config(), {}))
  assert is_reportable(results)
  text = closing_table(results)
  assert "Learning accuracy" not in text and "Average incremental" not in text
  rows = {line[:17]: line.split()[-1] for line in text.splitlines()}
  assert rows["Forgetting (point"] == "(n=2)"


def test_an_older_run_gets_its_page_and_is_compared(old, tmp_path, capsys):
  """With the new metrics, which follow from its evaluations."""
  assert main([str(old)]) == 0
  run = stored.read(old)
  assert run.results["learning_accuracy"]["mean"] > 50
  page = Reader((old / "report.html").read_text("utf-8"))
  assert page.faults == [] and "Learning accuracy (%)" in page.text
  assert main([str(old), str(old), f"--out={tmp_path / 'c.html'}"]) == 0
  assert "Learning accuracy (%)" in capsys.readouterr().out


ODD: list[dict[str, Any]] = [
  {"forgetting": 3},
  {"forgetting": {"mean": "a", "sem": None, "n": 1}},
  {"metrics": 3},
  {"metrics": {"other": 3, "forgetting": None}},
  {"metrics": {"other": {}}},
  {"schema": 99, "later": [1]},
  {"paper": "x"},
  {"facts": {"wall_time": "x", "environment": 3, "steps_per_second": []}},
]
DAMAGED: list[dict[str, Any]] = [
  {"seeds": []},
  {"per_seed": [1.0]},
  {"accuracy_matrix": [[1.0]]},
  {"average_accuracy": None},
  {"average_accuracy": {"mean": 1.0, "sem": "x", "n": 2}},
  {"config": {}},
]


def test_odd_parts_do_no_harm_and_damage_is_one_sentence(old, capsys):
  path = old / "results.json"
  content = json_files.read(path, {}, "")
  for change in ODD:
    json_files.write(path, content | change)
    assert main([str(old)]) == 0, change
    assert "Average accuracy (%)" in capsys.readouterr().out
  for change in DAMAGED:
    json_files.write(path, content | change)
    assert main([str(old)]) == 1, change
    said = capsys.readouterr().err
    assert "is not the results of a run" in said and said.count("\n") == 1


def best_task(history) -> np.ndarray:
  return 100 * np.nanmax(history.evaluations.accuracy[-1], axis=-1)


BEST = MetricSpec(
  "best_task", "Best task", "%", best_task, "Accuracy of the best task."
)


def test_a_metric_is_one_row(tmp_path):
  """From outside here; in every output, and after its code is gone."""
  history, config = make_history(), make_config()
  store(tmp_path, history, config)
  results = write(tmp_path, history, config, {}, [], extra=[BEST])
  assert results["best_task"]["per_seed"] == pytest.approx(best_task(history).tolist())
  run = stored.read(tmp_path)
  mean = f"{results['best_task']['mean']:.2f}"
  assert mean in closing_table(run.results)
  page = Reader((tmp_path / "report.html").read_text("utf-8")).text
  assert f"Best task (%) Accuracy of the best task. {mean}" in page
  assert "best_task" in (tmp_path / "metrics.csv").read_text()
  found = compare.compare([run, run])
  assert f"Best task (%)                     {mean}" in compare_files.text(found)
  assert "metrics.best_task.mean" in compare_files.to_csv(found.rows)
  newest = max((tmp_path / "tensorboard").iterdir(), key=lambda path: path.name[-3:])
  events: list[Event] = read_events(newest)
  tags = {tag: value for tag, _, value in points(events)}
  assert tags["metrics/best_task"] == pytest.approx(results["best_task"]["mean"])


@pytest.mark.parametrize(
  "spec, sentence",
  [
    (BEST._replace(name="forgetting"), "two metrics forgetting"),
    (BEST._replace(name="config"), "cannot be named config"),
    (BEST._replace(function=lambda history: 3.0), r"one number per seed \(2\)"),
    (BEST._replace(function=lambda history: "ab"), r"one number per seed \(2\)"),
    (best_task, "is no metric"),
  ],
)
def test_a_metric_that_cannot_be_is_refused(spec, sentence):
  with pytest.raises(ConfigError, match=sentence):
    summarise(make_history(), make_config(), {}, [spec])


def test_a_metric_without_a_value_is_null():
  none = BEST._replace(function=lambda history: None)
  assert summarise(make_history(), make_config(), {}, [none])["best_task"] is None


def test_every_metric_has_a_definition():
  for spec in METRICS:
    assert spec.definition.endswith(".") and spec.title and spec.unit


def test_an_empty_file_is_not_valid():
  assert not is_valid({}) and not is_reportable({})
