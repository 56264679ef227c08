"""The capacity study, made small: its runs, its tables and its figures."""

import csv
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from ebmjax import data, experiment
from ebmjax.paper.commands import cell_for
from ebmjax.paper.figures import capacity as curves
from ebmjax.report import plots
from ebmjax.tools import capacity
from tests.helpers import ROOT, FullDisk, make_config, read_results

CONFIG = str(ROOT / "configs" / "capacity.py")
TINY = ["--config.network.hidden=8", "--config.stream.iterations=4"]
TINY += ["--config.stream.batch_size=20", "--config.network.label_rows=12"]
TINY += ["--config.eval.batch_size=50", "--config.runner.chunk=4"]


@pytest.fixture(autouse=True)
def no_extras(monkeypatch):
  monkeypatch.setattr(plots, "draw", lambda history, scalars: {})


def command(folder: Path, *arguments: str) -> int:
  return capacity.main([f"--out={folder}", *arguments, *TINY])


def read_points(folder: Path) -> list[dict[str, Any]]:
  found: dict[str, Any] = json.loads((folder / "capacity.json").read_text())
  return list(found["points"])


def test_the_study_from_images_to_figures(tmp_path: Path, capsys, monkeypatch):
  assert command(tmp_path, "--images", "100", "--models", "small") == 0
  printed = capsys.readouterr().out.splitlines()
  assert len(printed) == 3
  assert printed[0].startswith("EBM small, 100 images: ")
  points = read_points(tmp_path)
  runs = [(point["network"], point["images"]) for point in points]
  assert runs == [("ebm", 100), ("sbc", 100)]
  assert [point["parameters"] for point in points] == [
    3073 * 8 + 12 * 8 + 9 * 8 + 9,
    3073 * 8 + 9 * 8 + 9 * 12,
  ]
  with (tmp_path / "capacity.csv").open() as file:
    rows = list(csv.DictReader(file))
  assert [(row["network"], int(row["images"])) for row in rows] == runs
  assert [float(row["accuracy"]) for row in rows] == [p["accuracy"] for p in points]
  assert (tmp_path / "capacity.png").read_bytes().startswith(b"\x89PNG")
  text = (tmp_path / "capacity.svg").read_text()
  assert ElementTree.fromstring(text).tag.endswith("svg")
  # Given again, with a size more: what is finished is read, the rest is run.
  loaded, load = [], data.load

  def watched(config: Any) -> Any:
    loaded.append(config.images)
    return load(config)

  monkeypatch.setattr(data, "load", watched)
  more = ["--images", "150", "100", "--models", "small", "--networks", "sbc"]
  assert command(tmp_path, *more) == 0
  assert loaded == [150]
  assert [point["images"] for point in read_points(tmp_path)] == [100, 150]


def test_an_accuracy_is_that_of_the_run(tmp_path: Path):
  arguments = ["--images", "100", "--networks", "ebm", "--models", "medium"]
  assert command(tmp_path, *arguments, "--config.seeds=2") == 0
  (point,) = read_points(tmp_path)
  results = read_results(tmp_path / point["workdir"])
  assert results["config"]["data"]["images"] == point["images"] == 100
  assert point["seeds"] == [0, 1]
  assert point["accuracy"] == results["average_accuracy"]["mean"]
  assert point["per_seed"] == results["per_seed"]
  assert "labels random" in point["data_source"]


@pytest.mark.parametrize(
  ("arguments", "told", "code"),
  [
    (["--images", "many"], "--images", 2),
    (["--images", "100", "0"], "set config.data.images.", 1),
    (["--models", "huge"], "huge", 2),
    (["--config.stream.iteration=3"], "did you mean config.stream.iterations?", 1),
    (["--image", "100"], "'--image' is not known", 2),
    (["--config=other.py"], "'--config=other.py' is not known", 2),
  ],
)
def test_fault_is_told_in_one_sentence(arguments, told, code, tmp_path: Path, capsys):
  """Before the first run: a mistake at the end of the list would cost hours."""
  folder = tmp_path / "study"
  assert command(folder, *arguments) == code
  printed = capsys.readouterr()
  (line,) = printed.err.splitlines()
  assert line.startswith("capacity: ") and line.endswith(".")
  assert told in line
  assert printed.out == ""
  assert not folder.exists()


def test_tables_that_cannot_be_written_are_told(tmp_path: Path, monkeypatch, capsys):
  monkeypatch.setattr(capacity.curves, "curves", lambda found: None)
  monkeypatch.setattr(capacity, "atomic", FullDisk)
  arguments = ["--images", "100", "--networks", "sbc", "--models", "small"]
  assert command(tmp_path, *arguments) == 1
  assert capsys.readouterr().err.splitlines()[-1] == (
    f"capacity: {tmp_path} cannot be written (No space left on device); make room, and "
    "the same command continues from the last checkpoint."
  )


def test_curves_are_told_apart_without_colours(tmp_path: Path):
  points = [
    {"network": network, "model": model, "images": images, "hidden": 1}
    | {"seeds": [0, 1], "per_seed": [50.0, 60.0]}
    for network in capacity.NETWORKS
    for model in capacity.MODELS
    for images in (1000, 100)
  ]
  axes = curves.curves(points).axes[0]
  lines = [line for line in axes.lines if line.get_marker() != "None"]
  looks = {
    (line.get_linestyle(), line.get_marker(), line.get_markerfacecolor() == "white")
    for line in lines
  }
  assert len(lines) == len(looks) == 6
  for line in lines:
    np.testing.assert_array_equal(line.get_xdata(), [100, 1000])
    np.testing.assert_array_equal(line.get_ydata(), [55, 55])
  assert axes.get_xscale() == "log"
  assert [tick.get_text() for tick in axes.get_xticklabels()] == ["100", "1,000"]


def test_the_legend_fits_the_figure():
  points = [
    {"network": network, "model": model, "images": 100, "hidden": 4096}
    | {"seeds": [0], "per_seed": [50.0]}
    for network in capacity.NETWORKS
    for model in capacity.MODELS
  ]
  figure = curves.curves(points)
  figure.canvas.draw()
  box = figure.legends[0].get_window_extent()
  assert 0 <= box.x0 < box.x1 <= figure.bbox.width


def test_noise_is_learned_by_heart(tmp_path: Path):
  """Random labels of generated images: nothing but memory reaches this accuracy."""
  changes = {"stream__iterations": 120, "stream__batch_size": 50, "network__hidden": 32}
  config = make_config(
    f"{CONFIG}:smoke", tmp_path, data__source="auto", data__images=100, **changes
  )
  config.optimiser.learning_rate = 1e-3
  results = experiment.run(config, tmp_path / "run")
  assert results["average_accuracy"]["mean"] > 80
  assert np.array(results["accuracy_matrix"]).shape == (1, 1, 1)


def test_a_stored_set_is_learned_by_heart(tmp_path: Path):
  """Its images have labels of their own, and a test set; neither is used."""
  rng = np.random.default_rng(0)
  arrays: dict[str, Any] = {}
  for part, count in (("train", 60), ("test", 20)):
    arrays[f"x_{part}"] = rng.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)
    arrays[f"y_{part}"] = np.arange(count) % 10
  np.savez(tmp_path / "cifar10.npz", **arrays)
  config = make_config(
    f"{CONFIG}:cifar10,smoke", tmp_path, stream__iterations=100, network__hidden=32
  )
  config.optimiser.learning_rate = 1e-3
  results = experiment.run(config, tmp_path / "run")
  assert results["average_accuracy"]["mean"] > 80
  assert "labels random" in results["facts"]["data_source"]
  assert results["paper"] is None


@pytest.mark.parametrize("change", [{"memorise": True}, {"images": 100}])
def test_the_paper_s_figures_are_for_real_labels_and_all_images(change, tmp_path: Path):
  config = make_config(str(ROOT / "configs" / "splitmnist.py"), tmp_path)
  assert cell_for(config.to_dict()) is not None
  config.data.update(change)
  assert cell_for(config.to_dict()) is None
