"""The TFDS source: prepared by download without TensorFlow, and read back verified."""

import shutil
import socket
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebmjax import data
from ebmjax.data import download, tfds_builder, tfds_prepare, tfds_source
from ebmjax.errors import ConfigError, DataError

IMAGES = "train-images-idx3-ubyte.gz"


def own_folder(data_dir: Path) -> Path:
  """Returns where our preparation goes."""
  return data_dir / "ebmjax_mnist" / "1.0.0"


def test_download_equals_the_files_in_content_and_order(tiny, config, tmp_path: Path):
  dataset = data.load(config("tfds", tmp_path, require_full=True))
  tiny.assert_holds(dataset)
  assert dataset.full
  assert dataset.source == "mnist, full, TFDS ebmjax_mnist 1.0.0"
  files = data.load(config("files", tiny.write_idx(tmp_path / "idx")))
  assert data.digest(dataset) == data.digest(files)


def test_second_load_asks_nobody(tiny, config, tmp_path: Path, capsys):
  data.load(config("tfds", tmp_path))
  assert tiny.server.requests.count(f"GET {IMAGES}") == 1
  tiny.server.requests.clear()
  tiny.assert_holds(data.load(config("tfds", tmp_path, download=False)))
  assert not tiny.server.requests
  assert capsys.readouterr().out == "", "stdout is for results"


def test_the_default_folder_is_that_of_tfds(tiny, config, tmp_path: Path):
  data.load(config("tfds"))
  assert tfds_prepare.is_prepared(own_folder(tmp_path / "default_tfds"))


def test_a_default_folder_of_nobody_is_told(tiny, config, monkeypatch):
  monkeypatch.setenv("TFDS_DATA_DIR", "~nobody_here/x")
  with pytest.raises(ConfigError, match="the home of an unknown user"):
    data.load(config("tfds", ""))


def test_tfds_itself_can_read_the_set(tiny, config, tmp_path: Path):
  import tensorflow_datasets as tfds

  data.load(config("tfds", tmp_path))
  source = tfds.builder_from_directory(own_folder(tmp_path)).as_data_source("test")
  example = source[4]
  index = int(example["index"])
  np.testing.assert_array_equal(example["image"], tiny.arrays["test_x"][index])
  indices = [int(source[i]["index"]) for i in range(len(source))]
  assert indices != sorted(indices), "the test of the order needs a shuffled set"


def test_more_than_one_block(tiny, config, tmp_path: Path, monkeypatch):
  monkeypatch.setattr(data.tfds_source, "_BLOCK", 32)
  tiny.assert_holds(data.load(config("tfds", tmp_path)))


def test_unprepared_without_download(tiny, config, tmp_path: Path, sentence):
  with pytest.raises(DataError) as caught:
    data.load(config("tfds", tmp_path, download=False))
  assert "config.data.download=True" in sentence(caught)
  assert not tiny.server.requests


def flip(content: bytes) -> bytes:
  """Returns content with one bit changed in its middle."""
  middle = len(content) // 2
  return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize(
  ("served", "told"),
  [
    (flip, "does not match its official checksum"),
    (lambda content: content[:-50], "the connection ended early"),
    (lambda content: content + b"x", "sends more than the official size"),
    (lambda content: b"<html>sign in", "the connection ended early"),
  ],
)
def test_damaged_on_the_server(tiny, config, tmp_path: Path, served, told, sentence):
  tiny.server.files[IMAGES] = served(tiny.server.files[IMAGES])
  with pytest.raises(tfds_prepare.UnavailableError) as caught:
    data.load(config("tfds", tmp_path))
  assert told in sentence(caught)
  assert not own_folder(tmp_path).exists()


def test_mended_on_the_server_after_a_failure(tiny, config, tmp_path: Path):
  whole = tiny.server.files[IMAGES]
  tiny.server.files[IMAGES] = whole[:-50]
  with pytest.raises(DataError):
    data.load(config("tfds", tmp_path))
  tiny.server.files[IMAGES] = whole
  tiny.assert_holds(data.load(config("tfds", tmp_path)))


def test_absent_on_the_server(tiny, config, tmp_path: Path, sentence):
  del tiny.server.files["t10k-labels-idx1-ubyte.gz"]
  with pytest.raises(tfds_prepare.UnavailableError) as caught:
    data.load(config("tfds", tmp_path))
  text = sentence(caught)
  assert "404" in text
  assert "data.source=files" in text
  assert not own_folder(tmp_path).exists()


def test_without_what_tfds_writes_and_reads_with(
  tiny, config, tmp_path: Path, monkeypatch, sentence
):
  def lacks(*args: Any) -> None:
    raise ModuleNotFoundError("No module named 'array_record'")

  with monkeypatch.context() as patch:
    patch.setattr(tfds_builder, "make_builder", lacks)
    with pytest.raises(tfds_prepare.UnavailableError) as caught:
      data.load(config("tfds", tmp_path))
  assert "No module named 'array_record'" in sentence(caught)
  tiny.assert_holds(data.load(config("tfds", tmp_path)))
  monkeypatch.setattr(tfds_source, "read_columns", lacks)
  with pytest.raises(DataError) as unread:
    data.load(config("tfds", tmp_path))
  assert sentence(unread).endswith("'array_record'): pip install array_record.")


def set_url(monkeypatch: pytest.MonkeyPatch, tiny: Any, port: int) -> None:
  """Makes the set come from another port of this machine."""
  info = tiny.info._replace(url=f"http://127.0.0.1:{port}/")
  monkeypatch.setitem(data.DATASETS, "mnist", info)


def test_refused_connection_fails_fast(tiny, config, tmp_path, monkeypatch, sentence):
  with socket.socket() as unused:
    unused.bind(("127.0.0.1", 0))  # bound and not listening: refused
    set_url(monkeypatch, tiny, unused.getsockname()[1])
    start = time.monotonic()
    with pytest.raises(tfds_prepare.UnavailableError) as caught:
      data.load(config("tfds", tmp_path))
  assert time.monotonic() - start < 10
  assert "refused" in sentence(caught)


def test_silent_server_fails_fast(tiny, config, tmp_path, monkeypatch, sentence):
  monkeypatch.setattr(download, "CONNECT_SECONDS", 0.5)
  with socket.socket() as silent:
    silent.bind(("127.0.0.1", 0))
    silent.listen()
    set_url(monkeypatch, tiny, silent.getsockname()[1])
    start = time.monotonic()
    with pytest.raises(tfds_prepare.UnavailableError) as caught:
      data.load(config("tfds", tmp_path))
  assert time.monotonic() - start < 10
  sentence(caught)


def test_slow_look_up_of_a_name_fails_fast(tiny, config, tmp_path, monkeypatch):
  released = threading.Event()
  monkeypatch.setattr(download, "CONNECT_SECONDS", 0.2)
  monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: released.wait(10))
  with pytest.raises(tfds_prepare.UnavailableError, match=r"within 0\.2 seconds"):
    data.load(config("tfds", tmp_path))
  released.set()


@pytest.mark.parametrize("damage", ["truncated", "exchanged"])
def test_damaged_download_in_the_cache_is_replaced(tiny, config, tmp_path, damage):
  data.load(config("tfds", tmp_path))
  shutil.rmtree(own_folder(tmp_path))
  cached = tmp_path / "downloads" / "ebmjax_mnist" / IMAGES
  content = cached.read_bytes()
  cached.write_bytes(content[:-50] if damage == "truncated" else flip(content))
  tiny.server.requests.clear()
  tiny.assert_holds(data.load(config("tfds", tmp_path)))
  assert tiny.server.requests == [f"GET {IMAGES}"]


def test_empty_version_folder_is_prepared(tiny, config, tmp_path: Path):
  own_folder(tmp_path).mkdir(parents=True)
  tiny.assert_holds(data.load(config("tfds", tmp_path)))


def test_folder_with_something_else(tiny, config, tmp_path: Path, sentence):
  own_folder(tmp_path).mkdir(parents=True)
  (own_folder(tmp_path) / "features.json").write_text("{}")
  with pytest.raises(DataError) as caught:
    data.load(config("tfds", tmp_path))
  assert "is not a complete prepared set" in sentence(caught)
  assert (own_folder(tmp_path) / "features.json").exists()


def test_data_dir_that_cannot_be_written(tiny, config, tmp_path: Path, sentence):
  (tmp_path / "file").write_text("")
  with pytest.raises(DataError) as caught:
    data.load(config("tfds", tmp_path / "file"))
  assert "can be written" in sentence(caught)
