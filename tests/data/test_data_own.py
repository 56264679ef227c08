"""Data of the user's own: npz files, folders of images, prepared sets of TFDS."""

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ebmjax import data
from ebmjax.data import npz
from ebmjax.errors import DataError
from tests.data.stock import prepare_stock, rows

RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.integers(0, 256, (60, 8, 12), np.uint8)
LABELS = np.arange(60) % 3


@pytest.fixture
def own(config):
  """Returns a loader of `config.data.name=own`."""

  def load(place: Path | str, source: str = "auto", **changes):
    return data.load(config(source, place, name="own", **changes))

  return load


def save(folder: Path, name: str = "pets.npz", **arrays) -> Path:
  np.savez(folder / name, **arrays)
  return folder / name


def draw(folder: Path, name: str, pixels: np.ndarray, **options) -> None:
  folder.mkdir(parents=True, exist_ok=True)
  Image.fromarray(pixels).save(folder / name, **options)


@pytest.mark.parametrize("source", ["auto", "files"])
def test_an_npz_with_both_parts(own, tmp_path: Path, source):
  parts: dict[str, Any] = {"x_train": IMAGES[:40], "y_train": LABELS[:40]}
  parts |= {"x_test": IMAGES[40:], "y_test": LABELS[40:]}
  path = save(tmp_path, **parts)
  for place in (path, tmp_path):
    dataset = own(place, source)
    np.testing.assert_array_equal(dataset.train_x, IMAGES[:40])
    np.testing.assert_array_equal(dataset.test_y, LABELS[40:])
    assert dataset.train_x.dtype == np.uint8
    assert (dataset.num_classes, dataset.shape) == (3, (8, 12))
    assert dataset.class_names == ("0", "1", "2")
    assert dataset.full
    assert dataset.name == "pets"
    assert (
      "pets, the user's own pets.npz: 40 training and 20 test images of 8x12 in 3 "
      "classes, pixels from 0 to 255 scaled to 0..1"
    ) in dataset.source


@pytest.mark.parametrize("keys", [("x", "y"), ("x_train", "y_train")])
def test_an_npz_without_a_test_part(own, tmp_path: Path, keys):
  path = save(tmp_path, **dict(zip(keys, (IMAGES, LABELS), strict=True)))
  dataset = own(path, test_share=0.25)
  assert (len(dataset.train_x), len(dataset.test_x)) == (45, 15)
  np.testing.assert_array_equal(np.bincount(dataset.test_y), [5, 5, 5])
  assert "25 % of each class held out as the test part" in dataset.source
  assert data.digest(own(path, test_share=0.25)) == data.digest(dataset)


def test_large_arrays_are_mapped(own, tmp_path: Path, monkeypatch):
  monkeypatch.setattr(npz, "_MAPPED", 1000)
  rows_ = RANDOM.random((60, 33)).astype(np.float32)
  parts: dict[str, Any] = {
    "x_train": rows_,
    "y_train": LABELS,
    "x_test": rows_,
    "y_test": LABELS,
  }
  dataset = own(save(tmp_path, **parts))
  assert isinstance(dataset.train_x, np.memmap)
  np.testing.assert_array_equal(dataset.train_x, rows_)
  assert data.digest(dataset) == data.digest(dataset._replace(train_x=rows_))
  packed = tmp_path / "packed.npz"
  np.savez_compressed(packed, **parts)
  assert data.digest(own(packed)) == data.digest(dataset)
  parts["x_train"] = np.asfortranarray(rows_)
  fortran = save(tmp_path, "fortran.npz", **parts)
  assert data.digest(own(fortran)) == data.digest(dataset)


@pytest.mark.parametrize("mapped", [1000, 1 << 28])
def test_a_damaged_npz_is_reported_and_never_to_be_deleted(
  own, tmp_path: Path, monkeypatch, mapped, sentence
):
  monkeypatch.setattr(npz, "_MAPPED", mapped)
  path = save(tmp_path, x=IMAGES, y=LABELS)
  content = path.read_bytes()
  flipped = content[:2000] + bytes([content[2000] ^ 1]) + content[2001:]
  for damaged in (flipped, content[:-100], b"", b"PK"):
    path.write_bytes(damaged)
    with pytest.raises(DataError) as caught:
      own(path)
    assert f"{path} is a damaged npz" in sentence(caught)
    assert "delete" not in sentence(caught)


def test_objects_are_never_unpickled(own, tmp_path: Path, sentence):
  path = save(tmp_path, x=IMAGES, y=np.array(["a"] * 60, object))
  with pytest.raises(DataError) as caught:
    own(path)
  assert "[y] holds Python objects, which are never unpickled" in sentence(caught)


def test_missing_and_several_npz(own, tmp_path: Path, sentence):
  path = save(tmp_path, images=IMAGES, y=LABELS)
  with pytest.raises(DataError) as caught:
    own(path)
  assert "lacks x and holds images, y" in sentence(caught)
  save(tmp_path, "b.npz", x_train=IMAGES, y_train=LABELS, x_test=IMAGES)
  with pytest.raises(DataError) as caught:
    own(tmp_path / "b.npz")
  assert "lacks y_test" in sentence(caught)
  with pytest.raises(DataError) as caught:
    own(tmp_path)
  assert "several npz files (b.npz, pets.npz)" in sentence(caught)


def test_a_place_that_is_none(own, tmp_path: Path, sentence):
  (tmp_path / "notes.txt").write_text("x")
  problems = {
    "": "is not set",
    "absent": "does not exist",
    "notes.txt": "is not an npz file",
    ".": "has no folders of images",
  }
  for place, problem in problems.items():
    with pytest.raises(DataError) as caught:
      own(tmp_path / place if place else "")
    assert problem in sentence(caught)
    assert "an npz file" in sentence(caught)


def test_a_source_that_cannot_deliver_it(own, tmp_path: Path, sentence):
  with pytest.raises(DataError) as caught:
    own(tmp_path, "tfds")
  assert "own is not available from config.data.source=tfds" in sentence(caught)


@pytest.mark.parametrize("parts", [("train", "test"), ("train",), ("",)])
def test_a_folder_of_images_by_class(own, tmp_path: Path, parts):
  kinds = {"10": "png", "9": "bmp", "cat.": "PNG", "dog": "webp"}
  for part in parts:
    for label, kind in kinds.items():
      options = {"lossless": True} if kind == "webp" else {}
      for i in range(5):
        pixels = np.full((6, 9, 3), 10 * i, np.uint8)
        draw(tmp_path / part / label, f"{i}.{kind}", pixels, **options)
  (tmp_path / parts[0] / "dog" / ".hidden.png").write_text("no image")
  (tmp_path / parts[0] / "dog" / "notes.txt").write_text("no image")
  dataset = own(tmp_path)
  assert dataset.class_names == ("10", "9", "cat.", "dog")
  assert dataset.name == tmp_path.name
  sizes = (20, 20) if "test" in parts else (16, 4)
  assert (len(dataset.train_x), len(dataset.test_x)) == sizes
  assert dataset.shape == (6, 9, 3)
  found = np.concatenate([dataset.train_x, dataset.test_x])
  assert set(np.unique(found)) == {0, 10, 20, 30, 40}
  assert "the user's own folder of images" in dataset.source


def test_classes_that_are_numbers_come_in_their_order(own, tmp_path: Path):
  for label in range(11):
    for i in range(2):
      draw(tmp_path / str(label), f"{i}.png", np.full((4, 4), 20 * label, np.uint8))
  dataset = own(tmp_path)
  assert dataset.class_names == tuple(map(str, range(11)))
  assert dataset.shape == (4, 4)  # grey
  np.testing.assert_array_equal(dataset.train_x[:, 0, 0], 20 * dataset.train_y)


def test_one_colour_image_makes_all_of_them_colour(own, tmp_path: Path):
  for label in "ab":
    for i in range(3):
      draw(tmp_path / label, f"{i}.png", np.full((4, 4), 100, np.uint8))
  draw(tmp_path / "a", "1.png", np.full((4, 4, 4), 100, np.uint8))  # with alpha
  assert own(tmp_path).shape == (4, 4, 3)


def test_faults_in_a_folder_of_images(own, tmp_path: Path, sentence):
  for label in "ab":
    for i in range(3):
      draw(tmp_path / label, f"{i}.png", RANDOM.integers(0, 256, (40, 40), np.uint8))
  odd = tmp_path / "a" / "7.png"

  def problem() -> str:
    with pytest.raises(DataError) as caught:
      own(tmp_path)
    assert "delete" not in sentence(caught)
    return sentence(caught)

  draw(odd.parent, odd.name, np.zeros((40, 39), np.uint8))
  assert f"{odd} is 39x40 pixels, but {tmp_path / 'a' / '0.png'} is 40x40" in problem()
  assert "resize all images" in problem()
  draw(odd.parent, odd.name, np.zeros((40, 40), np.uint16))
  assert f"{odd} has pixels of more than 8 bits" in problem()
  odd.write_bytes(b"no image")
  assert f"{odd} cannot be read as an image" in problem()
  whole = (tmp_path / "a" / "0.png").read_bytes()
  odd.write_bytes(whole[: len(whole) // 2])  # its header is whole
  assert f"{odd} cannot be read as an image" in problem()
  odd.unlink()
  os.mkfifo(odd)
  assert f"{odd} cannot be read as an image (it is a pipe)" in problem()
  odd.unlink()
  (tmp_path / "c").mkdir()
  assert f"{tmp_path / 'c'} holds no image" in problem()
  draw(tmp_path / "c", "0.png", np.zeros((40, 40), np.uint8))
  assert "class 'c' has one example only" in problem()


def test_a_set_that_tfds_has_prepared(own, tmp_path: Path):
  parts = {"train_x": IMAGES[:40, :, :8], "train_y": LABELS[:40]}
  parts |= {"test_x": IMAGES[40:, :, :8], "test_y": LABELS[40:]}
  names = ["cat", "dog", "fish"]
  prepare_stock(tmp_path, parts, "array_record", name="pets", names=names)
  for place in (tmp_path, tmp_path / "pets", tmp_path / "pets" / "3.0.1"):
    dataset = own(place)
    found = rows(dataset.train_x, dataset.train_y)
    assert found == rows(parts["train_x"], parts["train_y"])
    assert len(dataset.test_x) == 20
    assert dataset.name == "pets"
    assert dataset.class_names == tuple(names)
    assert "TFDS pets 3.0.1: 40 training and 20 test images of 8x8" in dataset.source
  prepare_stock(tmp_path, parts, "array_record", name="more", num_classes=3)
  with pytest.raises(DataError, match=r"several sets of TFDS \(more/3.0.1, pets"):
    own(tmp_path)


def test_a_prepared_set_that_cannot_be_read(own, tmp_path: Path, sentence):
  parts = {"train_x": IMAGES[:, :, :8], "train_y": LABELS}
  parts |= {"test_x": IMAGES[:, :, :8], "test_y": LABELS}
  prepare_stock(tmp_path, parts, "array_record", name="pets", num_classes=3)
  folder = tmp_path / "pets" / "3.0.1"
  for file in folder.glob("*.array_record*"):
    file.write_bytes(file.read_bytes()[:100])
  with pytest.raises(DataError) as caught:
    own(tmp_path)
  assert "cannot be read" in sentence(caught)
  assert "delete" not in sentence(caught)
  for file in folder.glob("*.array_record*"):
    file.rename(str(file).replace("array_record", "tfrecord"))
  with pytest.raises(DataError) as caught:
    own(tmp_path)
  assert "not stored as array_record" in sentence(caught)


def test_a_prepared_set_without_an_image(own, tmp_path: Path, sentence):
  parts = {"train_x": IMAGES[:, :, :8], "train_y": LABELS}
  parts |= {"test_x": IMAGES[:, :, :8], "test_y": LABELS}
  prepare_stock(tmp_path, parts, "array_record", name="pets", feature="picture")
  with pytest.raises(DataError) as caught:
    own(tmp_path)
  assert "the train split in" in sentence(caught)
  assert "has no image: give a set whose examples have" in sentence(caught)


def test_an_npz_that_is_too_long_inside(own, tmp_path: Path, sentence):
  """More bytes than the array's header says."""
  buffer = io.BytesIO()
  np.save(buffer, IMAGES)
  with zipfile.ZipFile(save(tmp_path, "long.npz", y=LABELS), "a") as archive:
    archive.writestr("x.npy", buffer.getvalue() + b"more")
  with pytest.raises(DataError) as caught:
    own(tmp_path)
  assert "has another size than its array" in sentence(caught)
