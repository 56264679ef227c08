"""The converter of CIFAR-100 mosaics, on two classes."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ebmjax import data
from ebmjax.errors import DataError
from tests.data.cifar import make_pins

SCRIPT = Path(data.__file__).parents[2] / "launch" / "cifar100_from_mosaics.py"


@pytest.fixture(scope="module")
def script() -> Any:
  """Returns the script as a module."""
  spec = importlib.util.spec_from_file_location("cifar100_from_mosaics", SCRIPT)
  assert spec is not None and spec.loader is not None
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


@pytest.fixture
def tiles(tmp_path: Path) -> dict[str, np.ndarray]:
  """Returns the tiles of two classes by split, and writes their mosaics."""
  random = np.random.default_rng(3)
  made = {}
  for split, rows, columns in (("train", 20, 25), ("test", 10, 10)):
    shape = (2, rows, columns, 2, 2, 3)  # large blocks are packed fast
    grids = random.integers(0, 256, shape, np.uint8).repeat(16, 3).repeat(16, 4)
    for label, grid in enumerate(grids):
      strips = [np.concatenate(list(row), axis=1) for row in grid]
      image = Image.fromarray(np.concatenate(strips, axis=0))
      image.save(tmp_path / f"{split}_{label:02d}.webp", lossless=True, method=0)
    made[split] = grids.reshape(-1, 32, 32, 3)
  return made


def test_tiles_come_row_by_row(script, tiles, tmp_path: Path, config, monkeypatch):
  path = script.convert(tmp_path, tmp_path / "out", num_classes=2)
  assert path == tmp_path / "out" / "cifar100.npz"
  assert [file.name for file in path.parent.iterdir()] == ["cifar100.npz"]
  info = data.DATASETS["cifar100"]
  pins: dict[str, Any] = {}
  with np.load(path) as arrays:
    for split, count in (("train", 500), ("test", 100)):
      x, y = arrays[f"x_{split}"], arrays[f"y_{split}"]
      np.testing.assert_array_equal(x, tiles[split])
      assert y.tolist() == [0] * count + [1] * count
      pins[split] = make_pins(x, y, info.train)
  with pytest.raises(DataError, match="the full cifar100 set is required"):
    data.load(config("files", path.parent, name="cifar100", require_full=True))
  monkeypatch.setitem(data.DATASETS, "cifar100", info._replace(**pins))
  found = data.load(config("files", path.parent, name="cifar100", require_full=True))
  assert found.full
  content = path.read_bytes()
  script.convert(tmp_path, tmp_path / "out", num_classes=2)
  assert path.read_bytes() == content, "always the same bytes"


def test_what_is_missing_is_named(script, tiles, tmp_path: Path):
  (tmp_path / "test_01.webp").unlink()
  with pytest.raises(script.MosaicError, match=r"lacks test_01\.webp and 0 more of 4 "):
    script.convert(tmp_path, tmp_path / "out", num_classes=2)
  assert not (tmp_path / "out").exists()


def test_mosaics_that_are_not(script, tiles, tmp_path: Path):
  path = tmp_path / "train_01.webp"
  path.write_bytes((tmp_path / "test_01.webp").read_bytes())
  with pytest.raises(script.MosaicError, match="must have 640 rows and 800 columns"):
    script.convert(tmp_path, tmp_path / "out", num_classes=2)
  path.write_bytes(b"<html>")
  with pytest.raises(script.MosaicError, match=r"train_01\.webp cannot be read"):
    script.convert(tmp_path, tmp_path / "out", num_classes=2)


def test_command_line(script, tmp_path: Path, monkeypatch):
  monkeypatch.setattr(sys, "argv", [SCRIPT.name, str(tmp_path), str(tmp_path / "out")])
  with pytest.raises(SystemExit) as caught:
    script.main()
  assert caught.value.code == (
    f"{tmp_path} lacks train_00.webp and 199 more of 200 mosaics: give the folder that "
    "has them all."
  )
