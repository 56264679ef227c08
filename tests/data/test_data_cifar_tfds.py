"""CIFAR through TFDS: archives are downloaded and prepared without TensorFlow."""

from pathlib import Path

import numpy as np
import pytest

from ebmjax import data
from ebmjax.data import tfds_prepare
from ebmjax.errors import DataError
from tests.data.cifar import NAMES, TinyCifar, make_cifar, write
from tests.data.stock import prepare_stock, rows


@pytest.fixture
def served(server, monkeypatch, tmp_path: Path):
  """Returns a maker of small sets that are registered and served."""
  monkeypatch.setenv("no_proxy", "127.0.0.1")
  monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "default_tfds"))

  def make(name: str) -> TinyCifar:
    tiny = make_cifar(name, server.url)
    monkeypatch.setitem(data.DATASETS, name, tiny.info)
    server.files[f"{tiny.form.archive}-binary.tar.gz"] = tiny.archive("binary")
    return tiny

  return make


@pytest.mark.parametrize("name", NAMES)
def test_archive_is_prepared_in_its_order(served, server, config, tmp_path, name):
  tiny = served(name)
  dataset = data.load(config("auto", tmp_path, name=name, require_full=True))
  tiny.assert_holds(dataset)
  assert dataset.source == f"{name}, full, TFDS ebmjax_{name} 1.0.0"
  assert dataset.num_classes == tiny.info.num_classes
  server.requests.clear()
  again = data.load(config("tfds", tmp_path, name=name, download=False))
  tiny.assert_holds(again)
  assert not server.requests
  files = data.load(
    config("files", write(tmp_path / "files", tiny.binary()), name=name)
  )
  assert data.digest(files) == data.digest(dataset)


def test_damaged_archive_on_the_server(served, server, config, tmp_path, sentence):
  tiny = served("cifar10")
  (name,) = server.files
  server.files[name] = tiny.archive("binary", **{"test_batch.bin": b"0" * 9})
  with pytest.raises(tfds_prepare.UnavailableError) as caught:
    data.load(config("tfds", tmp_path, name="cifar10"))
  text = sentence(caught)
  assert "the connection ended early" in text
  assert f"download {name} from {server.url} into a folder" in text
  assert not (tmp_path / "ebmjax_cifar10" / "1.0.0").exists()


def test_wrong_content_behind_the_checksum(served, config, tmp_path, monkeypatch):
  tiny = served("cifar100")
  pins = tiny.info.train._replace(rows=tiny.info.test.rows)
  monkeypatch.setitem(data.DATASETS, "cifar100", tiny.info._replace(train=pins))
  with pytest.raises(DataError, match=r"the train split in .* official checksum"):
    data.load(config("tfds", tmp_path, name="cifar100"))


@pytest.mark.parametrize("name", NAMES)
def test_stock_set_is_read(served, server, config, tmp_path: Path, name):
  tiny = served(name)
  arrays, classes = tiny.arrays, tiny.info.num_classes
  prepare_stock(tmp_path, arrays, "array_record", name, classes)
  dataset = data.load(config("auto", tmp_path, name=name, require_full=True))
  assert dataset.source == f"{name}, full, TFDS {name} 3.0.1"
  assert dataset.train_x.shape == (20, 32, 32, 3)
  found = rows(dataset.train_x, dataset.train_y)
  assert found == rows(arrays["train_x"], arrays["train_y"])
  np.testing.assert_array_equal(np.sort(dataset.test_y), np.sort(arrays["test_y"]))
  assert not server.requests


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_embedded(config, name, sentence):
  with pytest.raises(DataError) as caught:
    data.load(config("embedded", name=name))
  assert "is not available from config.data.source=embedded" in sentence(caught)
