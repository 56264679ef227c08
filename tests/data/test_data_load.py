"""What `load` chooses, says and refuses."""

import io
import socket
import time
from pathlib import Path

import numpy as np
import pytest
from ml_collections import ConfigDict

from ebmjax import data
from ebmjax.data import download
from ebmjax.errors import ConfigError, DataError
from ebmjax.types import Dataset


@pytest.fixture
def offline(tiny, monkeypatch):
  """Makes every server refuse connections, and returns the small set."""
  with socket.socket() as unused:
    unused.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{unused.getsockname()[1]}/"
    for name, info in list(data.DATASETS.items()):
      monkeypatch.setitem(data.DATASETS, name, info._replace(url=url))
    yield tiny


@pytest.fixture
def embedded(monkeypatch) -> Dataset:
  """Makes a stand-in the embedded set, whose checks are not tested here."""
  x, y = np.zeros((3000, 28, 28), np.uint8), np.arange(3000, dtype=np.int32) % 10
  spec = data.DATASETS["mnist"]
  arrays = (x, y, x[:2000], y[:2000])
  stand_in = Dataset("mnist", "embedded", False, *arrays, 10, spec.class_names)
  changed = spec._replace(embedded=lambda spec: stand_in)
  monkeypatch.setitem(data.DATASETS, "mnist", changed)
  return stand_in


@pytest.mark.parametrize("name", ["mnist", "own"])
def test_the_home_of_nobody_is_told(config, name):
  with pytest.raises(ConfigError, match="is in the home of an unknown user; give"):
    data.load(config("files", "~no_such_user/x", name=name))


def test_names_for_the_validator():
  assert data.SOURCES == ("auto", "tfds", "files", "embedded")
  assert {"mnist", "fashion_mnist", "cifar10", "cifar100"} <= set(data.DATASETS)


STORED = [name for name, info in data.DATASETS.items() if not info.load]


@pytest.mark.parametrize("name", STORED)
def test_rows_of_the_registry(name):
  info = data.DATASETS[name]
  assert info.name == name
  assert len(info.downloads) == (1 if name.startswith("cifar") else 4)
  known = [*info.train[1:], *info.test[1:]]
  sums = [value for value in known if value]
  sums += [download.sha256 for download in info.downloads.values()]
  assert len(set(sums)) == len(sums)
  assert all(len(value) == 64 and int(value, 16) for value in sums)
  assert info.train.rows and info.test.rows
  # Nobody here has the official order of CIFAR-100.
  assert all(known) or name == "cifar100"
  assert info.downloaded.kind == ("binary archive" if "cifar" in name else "idx files")


@pytest.mark.parametrize(
  ("name", "shape", "num_classes", "sizes", "mean", "std"),
  [
    ("mnist", (28, 28), 10, (60000, 10000), (0,), (1,)),
    ("fashion_mnist", (28, 28), 10, (60000, 10000), (0,), (1,)),
    (
      "cifar10",
      (32, 32, 3),
      10,
      (50000, 10000),
      (0.4914, 0.4822, 0.4465),
      (0.2023, 0.1994, 0.2010),
    ),
    (
      "cifar100",
      (32, 32, 3),
      100,
      (50000, 10000),
      (0.5071, 0.4865, 0.4409),
      (0.2673, 0.2564, 0.2761),
    ),
  ],
)
def test_facts_of_the_registry(name, shape, num_classes, sizes, mean, std):
  info = data.DATASETS[name]
  assert (info.image_shape, info.num_classes) == (shape, num_classes)
  assert (info.train.size, info.test.size) == sizes
  assert (info.mean, info.std) == (mean, std)


@pytest.mark.parametrize(
  ("change", "error", "told"),
  [
    ({"name": "nist"}, ConfigError, "'nist' is unknown; did you mean 'mnist'?"),
    ({"source": "web"}, DataError, "config.data.source must be one of auto"),
  ],
)
def test_unknown_names(config, change, error, told, sentence):
  values = config("embedded")
  vars(values).update(change)
  with pytest.raises(error) as caught:
    data.load(values)
  assert told in sentence(caught)


def test_config_dict_without_download(embedded):
  values = {"name": "mnist", "source": "embedded", "dir": "", "require_full": False}
  assert data.load(ConfigDict(values)) is embedded


def test_auto_prefers_files_then_prepared_then_download(tiny, config, tmp_path: Path):
  dataset = data.load(config("auto", tmp_path, require_full=True))
  assert dataset.source == "mnist, full, TFDS ebmjax_mnist 1.0.0"
  assert tiny.server.requests
  tiny.server.requests.clear()
  assert data.load(config("auto", tmp_path)).source == dataset.source
  tiny.write_idx(tmp_path)
  dataset = data.load(config("auto", tmp_path, require_full=True))
  assert dataset.source == "mnist, full, official idx files"
  assert not tiny.server.requests


def test_auto_offline_falls_back_fast_with_a_banner(
  offline, embedded, config, tmp_path: Path, capsys
):
  start = time.monotonic()
  assert data.load(config("auto", tmp_path)) is embedded
  assert time.monotonic() - start < 10
  assert download.CONNECT_SECONDS <= 5
  printed = capsys.readouterr()
  assert printed.out == ""
  assert "ONLY 5,000 IMAGES" in printed.err
  assert "NOT comparable with the paper" in printed.err
  assert "data.source=files" in printed.err
  assert "--workdir" in printed.err
  assert "refused" in printed.err
  assert printed.err.count("!" * 80) == 2
  assert len(printed.err.splitlines()) >= 8


def test_auto_without_download_asks_nobody(tiny, embedded, config, tmp_path, capsys):
  assert data.load(config("auto", tmp_path, download=False)) is embedded
  assert not tiny.server.requests
  printed = capsys.readouterr().err.replace("!!", "")
  assert "data.download is false" in " ".join(printed.split())


def test_auto_falls_back_where_the_server_lacks_the_files(
  tiny, embedded, config, tmp_path: Path, capsys
):
  tiny.server.files.clear()
  assert data.load(config("auto", tmp_path)) is embedded
  assert "404" in capsys.readouterr().err


def test_require_full_forbids_the_fall_back(
  offline, config, tmp_path: Path, capsys, sentence
):
  for allowed in (True, False):
    values = config("auto", tmp_path, require_full=True, download=allowed)
    with pytest.raises(DataError) as caught:
      data.load(values)
    text = sentence(caught)
    assert "the full mnist set is required" in text
    assert "data.source=files" in text
  assert "!!!" not in capsys.readouterr().err


@pytest.mark.parametrize(
  ("name", "file"),
  [
    ("fashion_mnist", "t10k-labels-idx1-ubyte.gz"),
    ("cifar10", "cifar-10-binary.tar.gz"),
    ("cifar100", "cifar-100-binary.tar.gz"),
  ],
)
@pytest.mark.parametrize("download", [True, False])
def test_auto_has_no_fall_back_for_other_sets(
  offline, config, tmp_path, name, file, download, capsys, sentence
):
  with pytest.raises(DataError) as caught:
    data.load(config("auto", tmp_path, name=name, download=download))
  text = sentence(caught)
  assert f"the full {name} set is required" in text
  assert ("refused" if download else "data.download is false") in text
  assert f"{file} from {data.DATASETS[name].url} into a folder" in text
  assert "data.source=files" in text
  assert capsys.readouterr().err == "", "no banner"


@pytest.mark.parametrize("damage", ["truncated", "missing", "npz"])
def test_auto_raises_for_damaged_files(tiny, embedded, config, tmp_path: Path, damage):
  folder = tmp_path / "files"
  if damage == "npz":
    path = tiny.write_npz(folder) / "mnist.npz"
  else:
    path = tiny.write_idx(folder) / "t10k-labels-idx1-ubyte.gz"
  if damage == "missing":
    path.unlink()
  else:
    path.write_bytes(path.read_bytes()[:-5])
  with pytest.raises(DataError, match=path.name.removesuffix(".gz")):
    data.load(config("auto", folder))
  assert not tiny.server.requests


def test_banner_goes_to_the_given_stream(embedded):
  stream = io.StringIO()
  data.banner(embedded, "a reason of many words " * 9, stream)
  lines = stream.getvalue().strip().splitlines()
  assert all(line.startswith("!!") and len(line) <= 80 for line in lines)


def test_digest_names_the_exact_arrays(embedded):
  first = data.digest(embedded)
  assert len(first) == 16
  assert data.digest(embedded._replace(source="elsewhere")) == first
  for field in ("train_x", "train_y", "test_x", "test_y"):
    values = getattr(embedded, field).copy()
    values.flat[-1] += 1
    assert data.digest(embedded._replace(**{field: values})) != first
  other_split = embedded._replace(
    train_x=embedded.test_x,
    train_y=embedded.test_y,
    test_x=embedded.train_x,
    test_y=embedded.train_y,
  )
  assert data.digest(other_split) != first
