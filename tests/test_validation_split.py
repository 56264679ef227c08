"""Training images held out and scored on in place of the test images."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebmjax import data, experiment, report
from ebmjax.config.validation import resolve
from ebmjax.data.arrays import idx_header
from ebmjax.data.held_out import hold_out, smallest_class
from ebmjax.errors import ConfigError, DataError
from ebmjax.paper.commands import cell_for
from ebmjax.report import plots
from ebmjax.types import Dataset
from tests.helpers import SPLIT, make_config, read_results, write_idx


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory) -> Path:
  return write_idx(tmp_path_factory.mktemp("data"))


def load(data_dir: Path, **changes: Any) -> Dataset:
  given = {f"data__{name}": value for name, value in changes.items()}
  return data.load(make_config(f"{SPLIT}:smoke", data_dir, **given).data)


def rows_of(images: np.ndarray) -> list[bytes]:
  return [image.tobytes() for image in images]


def test_the_split_is_stratified_and_disjoint(data_dir: Path):
  whole, split = load(data_dir), load(data_dir, validation=15)
  np.testing.assert_array_equal(np.bincount(split.test_y), np.full(10, 15))
  np.testing.assert_array_equal(np.bincount(split.train_y), np.full(10, 45))
  label_of = dict(zip(rows_of(whole.train_x), whole.train_y, strict=True))
  trained, held = rows_of(split.train_x), rows_of(split.test_x)
  assert len(label_of) == 600
  assert not set(trained) & set(held)
  assert set(trained) | set(held) == label_of.keys()
  assert [label_of[row] for row in held] == split.test_y.tolist()
  # What stays keeps its order, and its labels.
  assert trained == [row for row in rows_of(whole.train_x) if row not in set(held)]
  assert [label_of[row] for row in trained] == split.train_y.tolist()


def test_the_split_never_changes(data_dir: Path):
  few, many = load(data_dir, validation=10), load(data_dir, validation=30)
  assert set(rows_of(few.test_x)) < set(rows_of(many.test_x))
  np.testing.assert_array_equal(few.test_x, load(data_dir, validation=10).test_x)
  # Rows written down: with others, new scores could not be compared with old ones.
  rows = np.arange(40)
  numbered = Dataset("two", "", True, rows, rows % 2, rows[:1], rows[:1], 2)
  assert hold_out(numbered, 3).test_x.tolist() == [1, 8, 12, 21, 31, 38]


def test_fewer_training_images_leave_the_validation_images(data_dir: Path):
  """Or settings of data.images would be compared on different images."""
  split = load(data_dir, validation=15)
  fewer = load(data_dir, validation=15, images=100)
  np.testing.assert_array_equal(fewer.test_x, split.test_x)
  np.testing.assert_array_equal(fewer.train_x, split.train_x[:100])


def test_the_source_and_the_digest_tell_it(data_dir: Path):
  whole, split = load(data_dir), load(data_dir, validation=15)
  assert split.source == (
    f"{whole.source}, 15 training images of each class held out for validation in "
    "place of the test images"
  )
  others = [load(data_dir, validation=14), split, whole]
  assert len({data.digest(dataset) for dataset in others}) == 3


def test_a_class_must_keep_images_to_be_trained_on(data_dir: Path):
  assert smallest_class(load(data_dir)) == (0, 60)
  assert smallest_class(load(data_dir, validation=59)) == (0, 1)
  with pytest.raises(DataError) as caught:
    load(data_dir, validation=60)
  assert str(caught.value) == (
    "config.data.validation is 60, but class 0 of mnist has only 60 training images, "
    "and some must be left to train on: set config.data.validation to less than 60."
  )


@pytest.mark.parametrize(
  ("changes", "told"),
  [
    ({"data__validation": 5, "data__memorise": True}, "config.data.memorise=True"),
    ({"data__validation": -1}, "config.data.validation=-1 is too small"),
  ],
)
def test_impossible_configurations(changes, told, data_dir: Path):
  with pytest.raises(ConfigError, match=told):
    resolve(make_config(SPLIT, data_dir, **changes))


def test_the_paper_s_figures_are_of_the_test_set(data_dir: Path):
  assert cell_for(make_config(SPLIT, data_dir).to_dict()) is not None
  held = make_config(SPLIT, data_dir, data__validation=5)
  assert cell_for(held.to_dict()) is None


@pytest.mark.parametrize(
  ("change", "name"),
  [({}, "test"), ({"validation": 5}, "validation"), ({"memorise": True}, "training")],
)
def test_every_output_names_the_images(change, name):
  assert report.evaluated_on({"data": {"name": "mnist", **change}}) == name


def write_by_hand(folder: Path, dataset: Dataset) -> Path:
  """Returns the folder, now with the idx files of exactly these arrays."""
  folder.mkdir()
  for prefix, x, y in (
    ("train", dataset.train_x, dataset.train_y),
    ("t10k", dataset.test_x, dataset.test_y),
  ):
    for name, values in (("images-idx3", x), ("labels-idx1", y)):
      content = idx_header(values.shape) + values.astype(np.uint8).tobytes()
      (folder / f"{prefix}-{name}-ubyte").write_bytes(content)
  return folder


def test_a_run_is_scored_on_the_images_held_out(
  data_dir: Path, tmp_path: Path, monkeypatch
):
  """As one whose files hold those images for testing, and lack them for training."""
  labels = []

  def only_the_label(history, scalars):
    (axes,) = plots.accuracy_per_task(history).figure.axes[:1]
    labels.append(axes.get_ylabel())
    return {}

  monkeypatch.setattr(plots, "draw", only_the_label)
  chosen, changes = f"{SPLIT}:smoke,sbc", {"seeds": 2, "optimiser__learning_rate": 0.01}
  held = make_config(chosen, data_dir, data__validation=15, **changes)
  experiment.run(held, tmp_path / "held")
  files = write_by_hand(tmp_path / "files", load(data_dir, validation=15))
  experiment.run(make_config(chosen, files, **changes), tmp_path / "by_hand")
  got, wanted = (read_results(tmp_path / name) for name in ("held", "by_hand"))
  for key in ("accuracy_matrix", "masked_accuracy_matrix", "untrained_masked_accuracy"):
    assert got[key] == wanted[key]
  evaluations = report.read(tmp_path / "held").history.evaluations
  np.testing.assert_array_equal(evaluations.confusion[-1].sum(axis=(1, 2)), [150, 150])
  assert got["facts"]["data_digest"] == wanted["facts"]["data_digest"]
  facts = [results["facts"]["evaluated_on"] for results in (got, wanted)]
  assert facts == ["validation", "test"]
  assert labels == ["validation accuracy (%)", "test accuracy (%)"]
  table = " ".join(report.closing_table(got).split())
  assert "Validation accuracy (%)" in table and "no figure for this run" in table
  assert "Scored on validation images, held out of the training set" in table
  assert "Scored on" not in report.closing_table(wanted)
  assert report.read(tmp_path / "held").history.evaluated_on == "validation"
