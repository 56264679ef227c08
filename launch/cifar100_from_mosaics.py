"""Writes cifar100.npz from a folder of mosaics, one losslessly packed image per class.

The folder holds train_CC.webp and test_CC.webp, where CC is the fine label, 00 to 99: a
grid of 32x32 tiles, row by row, 20 rows x 25 columns to train on and 10 x 10 to test
on. The npz holds x_train, y_train, x_test and y_test, sorted by class; the same mosaics
always give the same bytes. Stands alone: needs numpy and Pillow, not ebmjax.

  python launch/cifar100_from_mosaics.py MOSAICS FOLDER

Then train with data.name=cifar100, data.source=files and data.dir=FOLDER, which
verifies that they are the official images.
"""

import argparse
import os
from pathlib import Path

import numpy as np

SIDE = 32
GRIDS = {"train": (20, 25), "test": (10, 10)}  # rows, columns


class MosaicError(Exception):
  """A mosaic that is missing or not what it should be, in one sentence."""


def convert(mosaics: Path, folder: Path, num_classes: int = 100) -> Path:
  """Returns the npz that it writes into a folder, whole or not at all."""
  _require_all(mosaics, num_classes)
  arrays: dict[str, np.ndarray] = {}
  for split, (rows, columns) in GRIDS.items():
    paths = [_path(mosaics, split, label) for label in range(num_classes)]
    tiles = [read_tiles(path, rows, columns) for path in paths]
    arrays[f"x_{split}"] = np.concatenate(tiles)
    labels = np.arange(num_classes, dtype=np.uint8)
    arrays[f"y_{split}"] = np.repeat(labels, rows * columns)
  folder.mkdir(parents=True, exist_ok=True)
  target = folder / "cifar100.npz"
  part = folder / "cifar100.npz.part"
  with part.open("wb") as file:
    np.savez(file, **arrays)  # type: ignore[arg-type]
  os.replace(part, target)
  return target


def read_tiles(path: Path, rows: int, columns: int) -> np.ndarray:
  """Returns the tiles of a mosaic, [rows * columns, 32, 32, 3] uint8, row by row."""
  from PIL import Image

  try:
    with Image.open(path) as image:
      pixels = np.asarray(image.convert("RGB"))
  except (OSError, SyntaxError, ValueError) as error:
    raise MosaicError(f"{path} cannot be read ({error}): get it again.") from None
  shape = (rows * SIDE, columns * SIDE, 3)
  if pixels.shape != shape:
    raise MosaicError(
      f"{path} must have {shape[0]} rows and {shape[1]} columns of pixels, but has "
      f"{pixels.shape[0]} and {pixels.shape[1]}: get it again."
    )
  grid = pixels.reshape(rows, SIDE, columns, SIDE, 3)
  return grid.swapaxes(1, 2).reshape(-1, SIDE, SIDE, 3)


def _path(mosaics: Path, split: str, label: int) -> Path:
  """Returns where the mosaic of a class is."""
  return mosaics / f"{split}_{label:02d}.webp"


def _require_all(mosaics: Path, num_classes: int) -> None:
  """Raises where a mosaic is missing, naming the first and telling how many are."""
  paths = [_path(mosaics, split, i) for split in GRIDS for i in range(num_classes)]
  missing = [path.name for path in paths if not path.is_file()]
  if missing:
    raise MosaicError(
      f"{mosaics} lacks {missing[0]} and {len(missing) - 1} more of {len(paths)} "
      "mosaics: give the folder that has them all."
    )


def main() -> None:
  """Converts what the command line says."""
  parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
  parser.add_argument("mosaics", type=Path, help="the folder of the mosaics")
  parser.add_argument("folder", type=Path, help="where to write cifar100.npz")
  arguments = parser.parse_args()
  if arguments.folder.suffix == ".npz":
    raise SystemExit(
      f"{arguments.folder} is to be a folder: leave the file's name out."
    )
  try:
    print(f"wrote {convert(arguments.mosaics, arguments.folder)}")
  except (MosaicError, OSError) as error:
    raise SystemExit(str(error)) from None


if __name__ == "__main__":
  main()
