"""The files source: every spelling is read, and every damage is refused."""

import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest

from ebmjax import data
from ebmjax.data.arrays import content_sha256
from ebmjax.errors import DataError

TRAIN_IMAGES = "train-images-idx3-ubyte"
TRAIN_LABELS = "train-labels-idx1-ubyte"


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("dot", [False, True])
def test_reads_official_idx_files(tiny, config, tmp_path: Path, suffix, dot):
  folder = tiny.write_idx(tmp_path / "idx", suffix, dot)
  dataset = data.load(config("files", folder, require_full=True))
  tiny.assert_holds(dataset)
  assert dataset.full
  assert dataset.num_classes == 10
  assert dataset.class_names == tuple("0123456789")
  assert dataset.source == "mnist, full, official idx files"


def test_reads_an_npz(tiny, config, tmp_path: Path):
  labels = tiny.arrays["test_y"].astype(np.int64)
  folder = tiny.write_npz(tmp_path / "npz", y_test=labels)
  dataset = data.load(config("files", folder))
  tiny.assert_holds(dataset)
  assert dataset.full
  assert dataset.source == "mnist, full, official images in an npz file"


def test_idx_files_go_before_an_npz(tiny, config, tmp_path: Path):
  folder = tiny.write_npz(tmp_path / "both", x_train=None)
  tiny.write_idx(folder)
  assert data.load(config("files", folder)).source == "mnist, full, official idx files"


def test_another_size_is_the_users_own_set(tiny, config, tmp_path: Path):
  tiny.arrays["test_x"] = tiny.arrays["test_x"][:25]
  tiny.arrays["test_y"] = np.arange(25, dtype=np.uint8) % 10
  folder = tiny.write_idx(tmp_path / "own")
  dataset = data.load(config("files", folder))
  tiny.assert_holds(dataset)
  assert not dataset.full
  assert "70 training and 25 test images" in dataset.source
  with pytest.raises(DataError, match="the full mnist set is required"):
    data.load(config("files", folder, require_full=True))


@pytest.mark.parametrize("part", ["train", "test"])
def test_a_set_of_one_s_own_needs_every_class(tiny, config, tmp_path, part, sentence):
  kept = tiny.arrays[f"{part}_y"] != 3
  for field in (f"{part}_x", f"{part}_y"):
    tiny.arrays[field] = tiny.arrays[field][kept]
  with pytest.raises(DataError) as caught:
    data.load(config("files", tiny.write_idx(tmp_path / "own")))
  name = {"train": "training", "test": "test"}[part]
  assert f"the {name} images hold none of class 3, one of the 10" in sentence(caught)


@pytest.mark.parametrize("field", ["train_x", "train_y", "test_x", "test_y"])
def test_official_size_with_other_content_is_damaged(
  tiny, config, tmp_path: Path, field, sentence
):
  values = tiny.arrays[field].copy()
  values.flat[3] = (values.flat[3] + 1) % 10
  tiny.arrays[field] = values
  folder = tiny.write_idx(tmp_path / "changed")
  with pytest.raises(DataError) as caught:
    data.load(config("files", folder))
  text = sentence(caught)
  prefix = "train" if field.startswith("train") else "t10k"
  kind = "images-idx3" if field.endswith("x") else "labels-idx1"
  assert f"{prefix}-{kind}-ubyte.gz" in text
  assert "official checksum" in text
  assert "delete it and download it again" in text


def test_official_order_matters(tiny, config, tmp_path: Path):
  for field in ("train_x", "train_y"):
    tiny.arrays[field] = tiny.arrays[field][::-1]
  with pytest.raises(DataError, match="official checksum"):
    data.load(config("files", tiny.write_idx(tmp_path / "reversed")))


def test_missing_file_is_named(tiny, config, tmp_path: Path, sentence):
  folder = tiny.write_idx(tmp_path / "idx")
  (folder / f"{TRAIN_LABELS}.gz").unlink()
  with pytest.raises(DataError) as caught:
    data.load(config("files", folder))
  text = sentence(caught)
  assert TRAIN_LABELS in text
  assert TRAIN_IMAGES not in text
  assert "download" in text


def test_missing_set_and_missing_folder(tiny, config, tmp_path: Path, sentence):
  with pytest.raises(DataError) as caught:
    data.load(config("files", tmp_path))
  assert TRAIN_IMAGES in sentence(caught)
  with pytest.raises(DataError) as caught:
    data.load(config("files", tmp_path / "absent"))
  assert "is not a folder" in sentence(caught)
  with pytest.raises(DataError) as caught:
    data.load(config("files", ""))
  assert "set config.data.dir" in sentence(caught)


def test_truncated_file_is_named(tiny, config, tmp_path: Path, sentence):
  folder = tiny.write_idx(tmp_path / "idx")
  path = folder / f"{TRAIN_IMAGES}.gz"
  path.write_bytes(path.read_bytes()[:-100])
  with pytest.raises(DataError) as caught:
    data.load(config("files", folder))
  assert f"{path} is truncated" in sentence(caught)


@pytest.mark.parametrize(
  ("changes", "problem"),
  [
    ({"train_y": np.zeros(69)}, "holds 70 images, but"),
    (
      {"train_y": np.full(70, 10)},
      "labels from 0 to 9, but holds labels from 10 to 10",
    ),
    (
      {"test_x": np.zeros((30, 27, 28))},
      "shape (28, 28), but holds uint8 of shape (27",
    ),
    ({"test_x": np.zeros((0, 28, 28)), "test_y": np.zeros(0)}, "holds no images"),
  ],
)
def test_invalid_content(tiny, config, tmp_path: Path, changes, problem, sentence):
  tiny.arrays.update(changes)
  with pytest.raises(DataError) as caught:
    data.load(config("files", tiny.write_idx(tmp_path / "idx")))
  assert problem in sentence(caught)


@pytest.mark.parametrize(
  ("changes", "problem"),
  [
    ({"x_test": None}, "lacks x_test and holds x_train, y_train, "),
    ({"x_train": np.zeros((70, 28, 28))}, "[x_train] must hold images of type uint8"),
    ({"y_train": np.zeros(70)}, "[y_train] must hold one integer per image"),
    ({"y_train": np.full(70, -1)}, "holds labels from -1 to -1"),
    ({"y_test": np.array([{}] * 30)}, "never unpickled"),
  ],
)
def test_invalid_npz(tiny, config, tmp_path: Path, changes, problem, sentence):
  with pytest.raises(DataError) as caught:
    data.load(config("files", tiny.write_npz(tmp_path / "npz", **changes)))
  text = sentence(caught)
  assert problem in text
  assert "mnist.npz" in text


def test_damaged_npz(tiny, config, tmp_path: Path, sentence):
  folder = tiny.write_npz(tmp_path / "npz")
  content = (folder / "mnist.npz").read_bytes()
  middle = len(content) // 2
  flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
  for damaged in (content[:-200], content[:10], b"", flipped, gzip.compress(content)):
    (folder / "mnist.npz").write_bytes(damaged)
    with pytest.raises(DataError) as caught:
      data.load(config("files", folder))
    assert "mnist.npz" in sentence(caught)
  np.save(folder / "mnist.npy", tiny.arrays["train_x"])
  (folder / "mnist.npy").rename(folder / "mnist.npz")
  with pytest.raises(DataError, match="damaged npz"):
    data.load(config("files", folder))


def test_content_sum_is_that_of_the_idx_file(tiny, tmp_path: Path):
  folder = tiny.write_idx(tmp_path / "idx", suffix="")
  content = (folder / TRAIN_IMAGES).read_bytes()
  assert content_sha256(tiny.arrays["train_x"]) == hashlib.sha256(content).hexdigest()
