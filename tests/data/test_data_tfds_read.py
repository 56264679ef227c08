"""Prepared TFDS sets that are damaged, partial, or prepared by someone else."""

from pathlib import Path

import numpy as np
import pytest

from ebmjax import data
from ebmjax.data import download, tfds_builder, tfds_prepare
from ebmjax.errors import DataError
from tests.data.stock import prepare_stock, rows


@pytest.fixture
def folder(tiny, config, tmp_path: Path) -> Path:
  """Returns the version folder of a prepared set."""
  data.load(config("tfds", tmp_path))
  return tmp_path / "ebmjax_mnist" / "1.0.0"


def shard_of(folder: Path, split: str) -> Path:
  """Returns the only shard of a split."""
  (shard,) = folder.glob(f"*-{split}.array_record*")
  return shard


@pytest.mark.parametrize("source", ["tfds", "auto"])
@pytest.mark.parametrize("split", ["train", "test"])
def test_truncated_shard(folder, config, tmp_path: Path, source, split, sentence):
  shard = shard_of(folder, split)
  shard.write_bytes(shard.read_bytes()[: shard.stat().st_size // 2])
  with pytest.raises(DataError) as caught:
    data.load(config(source, tmp_path))
  text = sentence(caught)
  assert f"the {split} split in {folder}" in text
  assert f"delete {folder}" in text


def test_missing_shard(folder, config, tmp_path: Path, sentence):
  shard_of(folder, "train").unlink()
  with pytest.raises(DataError) as caught:
    data.load(config("tfds", tmp_path))
  assert f"delete {folder}" in sentence(caught)


def test_changed_byte_in_a_shard(folder, config, tmp_path: Path, sentence):
  shard = shard_of(folder, "train")
  content = bytearray(shard.read_bytes())
  used = np.flatnonzero(np.frombuffer(content, np.uint8))  # the others are padding
  content[used[len(used) // 2]] ^= 1
  shard.write_bytes(content)
  with pytest.raises(DataError) as caught:
    data.load(config("tfds", tmp_path))
  assert f"delete {folder}" in sentence(caught)


def test_damaged_metadata(folder, config, tmp_path: Path, sentence):
  (folder / "features.json").write_text("{")
  with pytest.raises(DataError) as caught:
    data.load(config("tfds", tmp_path))
  assert "cannot be read" in sentence(caught)


def test_exchanged_splits_are_noticed(folder, config, tiny, tmp_path, monkeypatch):
  info = tiny.info._replace(train=tiny.info.train._replace(x=tiny.info.test.x))
  monkeypatch.setitem(data.DATASETS, "mnist", info)
  with pytest.raises(DataError, match="official checksum"):
    data.load(config("tfds", tmp_path))


def test_lost_order_is_noticed(folder, config, tmp_path, monkeypatch, sentence):
  read_columns = data.tfds_source.read_columns

  def with_one_index_twice(*args):
    columns = read_columns(*args)
    columns["index"][3] = columns["index"][4]
    return columns

  monkeypatch.setattr(data.tfds_source, "read_columns", with_one_index_twice)
  with pytest.raises(DataError) as caught:
    data.load(config("tfds", tmp_path))
  assert "has lost the official order" in sentence(caught)


def test_partly_prepared_set_counts_as_damaged(tiny, config, tmp_path, sentence):
  own = tfds_prepare.own_folder(tiny.info, tmp_path)
  files = download.fetch((tiny.info.url,), tiny.info.downloads, tmp_path / "files")
  with tfds_prepare.quiet_tfds() as tfds:
    few = tfds.download.DownloadConfig(max_examples_per_split=5)
    builder = tfds_builder.make_builder(tiny.info, own, files)
    builder.download_and_prepare(download_config=few)
  assert tfds_prepare.is_prepared(own)
  with pytest.raises(DataError) as caught:
    data.load(config("tfds", tmp_path))
  assert "must hold 70 examples, but holds 5" in sentence(caught)


@pytest.mark.parametrize("source", ["tfds", "auto"])
def test_stock_set_is_read(tiny, config, tmp_path: Path, source):
  prepare_stock(tmp_path, tiny.arrays, "array_record")
  dataset = data.load(config(source, tmp_path, require_full=True))
  assert dataset.full
  assert dataset.source == "mnist, full, TFDS mnist 3.0.1"
  assert dataset.train_x.shape == (70, 28, 28)
  assert dataset.train_y.dtype == np.int32
  arrays = tiny.arrays
  found = rows(dataset.train_x, dataset.train_y)
  assert found == rows(arrays["train_x"], arrays["train_y"])
  assert not tiny.server.requests


def test_stock_set_with_other_content(tiny, config, tmp_path: Path, sentence):
  labels = tiny.arrays["test_y"].copy()
  labels[0] = (labels[0] + 1) % 10
  prepare_stock(tmp_path, tiny.arrays | {"test_y": labels}, "array_record")
  with pytest.raises(DataError) as caught:
    data.load(config("tfds", tmp_path))
  assert "the test split" in sentence(caught)


def test_stock_set_that_is_partial(tiny, config, tmp_path: Path, sentence):
  few = {field: values[:9] for field, values in tiny.arrays.items()}
  prepare_stock(tmp_path, few, "array_record")
  with pytest.raises(DataError) as caught:
    data.load(config("tfds", tmp_path))
  assert "must hold 70 examples, but holds 9" in sentence(caught)


def test_our_own_set_goes_before_a_stock_one(folder, config, tiny, tmp_path: Path):
  prepare_stock(tmp_path, tiny.arrays, "array_record")
  tiny.assert_holds(data.load(config("tfds", tmp_path)))


def test_stock_folder_without_array_records_is_passed_over(tiny, config, tmp_path):
  prepare_stock(tmp_path, tiny.arrays, "array_record")
  for shard in (tmp_path / "mnist" / "3.0.1").glob("*.array_record*"):
    shard.rename(shard.with_name(shard.name.replace("array_record", "tfrecord")))
  tiny.assert_holds(data.load(config("tfds", tmp_path)))
