"""The files of a finished run: all there, whole, and the same every time."""

import csv
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from ebmjax.report import plots, write
from ebmjax.runtime import atomic
from tests.helpers import read_results
from tests.report.histories import make_config, make_history
from tests.report.pages import losses

FIGURES = {
  *("accuracy_per_task", "accuracy_matrix", "predicted_labels"),
  *("confusion", "energies", "loss"),
}
PNG = b"\x89PNG\r\n\x1a\n"


def read_csv(path) -> list[dict[str, str]]:
  with path.open(newline="") as file:
    return list(csv.DictReader(file))


def drawn(line: Any) -> np.ndarray:
  """Returns [N, 2], the points of a line of a figure."""
  return np.asarray(line.get_xydata(), dtype=np.float64)


def shown(chart: plots.Chart) -> np.ndarray:
  """Returns the values of a chart's heat map, NaN where it is left empty."""
  values: Any = chart.figure.axes[0].images[0].get_array()
  return np.ma.filled(values, np.nan)


def refuse(token: str) -> None:
  raise AssertionError(f"{token} is not JSON")


class Written(NamedTuple):
  """A run's folder, the results, and the names of its files as they were written."""

  folder: Path
  results: dict[str, Any]
  order: list[str]


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Written:
  """Drawing takes seconds: the tests of whole folders share this one."""
  folder, order = tmp_path_factory.mktemp("written"), []
  plain = atomic.write

  def record(path, content):
    order.append(path.name)
    plain(path, content)

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(atomic, "write", record)
    results = write(folder, make_history(), make_config(), {}, losses((0, 1)))
  return Written(folder, results, order)


def test_write_leaves_exactly_these_files(written):
  found = {
    str(path.relative_to(written.folder))
    for path in written.folder.rglob("*")
    if path.is_file() and path.parent.name != "tensorboard"
  }
  images = {f"plots/{name}.png" for name in FIGURES}
  tables = {"results.json", "accuracy_matrix.csv", "eval_results.csv", "metrics.csv"}
  assert found == images | tables | {"report.html"}
  text = (written.folder / "results.json").read_text("utf-8")
  json.loads(text, parse_constant=refuse)
  assert read_results(written.folder) == written.results
  for name in images:
    content = (written.folder / name).read_bytes()
    assert content.startswith(PNG) and content.endswith(b"IEND\xaeB`\x82")
    assert b"Software" not in content  # a version would change the bytes


@pytest.mark.usefixtures("no_plots")
def test_accuracy_csv_is_long_and_in_percent(tmp_path):
  history = make_history(tasks=3, runs=2, per_task=2)
  write(tmp_path, history, make_config(), {}, [])
  rows = read_csv(tmp_path / "accuracy_matrix.csv")
  # six entries on and below the diagonal, two on the masked superdiagonal, two runs
  assert len(rows) == 16
  entry = {(r["seed"], r["after_task"], r["task"]): r for r in rows}
  evaluations = history.evaluations
  row = entry["1", "2", "1"]
  assert row["accuracy"] == f"{100 * evaluations.accuracy[4, 1, 0]:.4f}"
  assert row["masked_accuracy"] == f"{100 * evaluations.masked_accuracy[4, 1, 0]:.4f}"
  ahead = entry["0", "1", "2"]
  assert ahead["accuracy"] == "" and float(ahead["masked_accuracy"]) > 1


@pytest.mark.usefixtures("no_plots")
def test_eval_csv_follows_avalanche(tmp_path):
  history = make_history(tasks=2, runs=2, per_task=1)
  history.evaluations.accuracy[1] = [[0.9, np.nan], [0.8, np.nan]]
  history.evaluations.accuracy[2] = [[0.3, 0.7], [0.5, 0.6]]
  write(tmp_path, history, make_config(), {}, [])
  assert (tmp_path / "eval_results.csv").read_text() == (
    "eval_exp,training_exp,eval_accuracy,eval_loss,forgetting\n"
    "0,0,0.8500,,0.0000\n"
    "0,1,0.4000,,0.4500\n"
    "1,1,0.6500,,0.0000\n"
  )


def test_metrics_csv_has_a_row_per_seed(written):
  results, rows = written.results, read_csv(written.folder / "metrics.csv")
  assert [row["seed"] for row in rows] == ["0", "1"]
  assert list(rows[0]) == ["seed", *results["metrics"]]
  for name in results["metrics"]:
    wanted = [f"{value:.4f}" for value in results[name]["per_seed"]]
    assert [row[name] for row in rows] == wanted


def test_files_are_deterministic(written, tmp_path):
  write(tmp_path, make_history(), make_config(), {}, losses((0, 1)))
  compared = [p for p in written.folder.rglob("*.*") if "tfevents" not in p.name]
  assert len(compared) == len(written.order)
  for path in compared:
    other = tmp_path / path.relative_to(written.folder)
    assert path.read_bytes() == other.read_bytes(), path.name


def test_results_come_last(written):
  assert len(written.order) == len(FIGURES) + 5
  assert written.order[-1] == "results.json"
  assert written.order.count("results.json") == 1


def test_no_loss_no_figure():
  without = [{"step": 1, "seed": 0, "accuracy": 0.5}]
  without += [{"step": 1, "seed": 0, "loss": float("nan")}]
  assert set(plots.draw(make_history(), without)) == FIGURES - {"loss"}


def test_accuracy_figure_draws_means_over_seeds():
  history = make_history(tasks=3, runs=2, per_task=1)
  axes = plots.accuracy_per_task(history).figure.axes[0]
  lines = {line.get_label(): line for line in axes.get_lines()}
  accuracy = history.evaluations.accuracy[2:, :, 1].mean(axis=1)
  expected = np.stack([[2000, 3000], 100 * accuracy], axis=1)
  np.testing.assert_allclose(drawn(lines["task 2"]), expected)
  so_far = 100 * np.nanmean(history.evaluations.accuracy[1:], axis=-1).mean(axis=1)
  np.testing.assert_allclose(drawn(lines["mean so far"])[:, 1], so_far)


def test_energies_are_means_over_seeds_and_empty_classes_left_out():
  history = make_history(tasks=1, classes=3, runs=2, per_task=1)
  history.evaluations.energies[-1, 0] = [[0, 1, 0.5], [1, 0.25, 0], [0, 0, 0]]
  history.evaluations.energies[-1, 1] = [[0, 0.5, 1], [1, 0.75, 0], [0, 0, 0]]
  history.evaluations.confusion[-1, :, 2] = 0
  image = shown(plots.energies(history))
  nan = np.nan
  np.testing.assert_allclose(image, [[0, 0.75, 0.75], [1, 0.5, 0], [nan, nan, nan]])


def test_predicted_labels_has_a_row_for_each_task_end():
  history = make_history(tasks=3, classes=6, runs=2, per_task=2)
  chart = plots.predicted_labels(history)
  shares = shown(chart)
  assert shares.shape == (3, 6)
  np.testing.assert_allclose(shares.sum(axis=1), 100)
  assert (shares[0, 2:] == 0).all()
  names = [tick.get_text() for tick in chart.figure.axes[0].get_yticklabels()]
  assert names == ["task 1", "task 2", "task 3"]


def test_long_loss_curves_are_averaged_in_bins():
  points = np.stack([np.arange(1600.0), np.tile([0.0, 2.0], 800)], axis=1)
  curve = drawn(plots.loss({0: points}).figure.axes[0].get_lines()[0])
  assert curve.shape == (plots.MAX_POINTS, 2)
  np.testing.assert_allclose(curve[:, 1], 1.0)
