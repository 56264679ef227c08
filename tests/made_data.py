"""Makes data sets of known difficulty: python -m tests.made_data FOLDER [CIFAR100].

FOLDER then holds images.npz, 64 x 64 colour images in 37 classes; rows.npz, 768
features in 50 classes; and digits.npz, scikit-learn's 8 x 8 digits, of which each fifth
is held out. The best accuracy that the rows allow is printed. Of CIFAR100, the folder
of that set, it makes trunk.npz: the 1,024 features of an image by the packaged trunk.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from ml_collections import ConfigDict
from sklearn.datasets import load_digits

from ebmjax import data
from ebmjax.config import loading
from ebmjax.config.validation import resolve
from ebmjax.runtime.trainer import preparation, shown_inputs

Arrays = dict[str, Any]


def images(classes: int = 37, side: int = 64, per_class: int = 60) -> Arrays:
  """Returns noisy images [N, side, side, 3] uint8; a class is a place and a colour."""
  rng = np.random.default_rng(0)
  places = rng.integers(0, side - side // 4, (classes, 2))
  colours = rng.integers(60, 256, (classes, 3))

  def draw(count: int) -> tuple[np.ndarray, np.ndarray]:
    y = rng.permutation(np.arange(classes * count) % classes)
    x = rng.integers(0, 120, (len(y), side, side, 3), dtype=np.uint8)
    for image, label in zip(x, y, strict=True):
      top, left = places[label] + rng.integers(0, side // 16, 2)
      image[top : top + side // 4, left : left + side // 4] = colours[label]
    return x, y

  return _named(draw(per_class), draw(10))


def rows(
  classes: int = 50, features: int = 768, spread: float = 0.115
) -> tuple[Arrays, float]:
  """Returns rows [N, F] of Gaussian classes, and the share that their means name.

  Classes have the same covariance, so the nearest true mean is the best classifier.
  """
  rng = np.random.default_rng(0)
  means = spread * rng.normal(size=(classes, features))

  def draw(count: int) -> tuple[np.ndarray, np.ndarray]:
    y = rng.permutation(np.arange(classes * count) % classes)
    return (means[y] + rng.normal(size=(len(y), features))).astype(np.float32), y

  train, test = draw(200), draw(40)
  nearest = np.argmax(test[0] @ means.T - (means**2).sum(axis=1) / 2, axis=1)
  return _named(train, test), float(np.mean(nearest == test[1]))


def digits() -> Arrays:
  """Returns 8 x 8 images of pixels from 0 to 16."""
  x, y = load_digits(return_X_y=True)
  held, x = np.arange(len(y)) % 5 == 0, x.reshape(-1, 8, 8)
  return _named((x[~held], y[~held]), (x[held], y[held]))


def trunk_features(config: ConfigDict) -> Arrays:
  """Returns what a configuration of frozen features shows its network, as rows."""
  config = resolve(config)
  images = data.load(config.data)
  prepare = preparation(config, images)
  train_x, test_x = map(shown_inputs(config, prepare), (images.train_x, images.test_x))
  return _named((train_x, images.train_y), (test_x, images.test_y))


def _named(train: tuple[np.ndarray, ...], test: tuple[np.ndarray, ...]) -> Arrays:
  names = ("x_train", "y_train", "x_test", "y_test")
  return dict(zip(names, train + test, strict=True))


def main(folder: Path, cifar100: str = "") -> None:
  """Writes the files."""
  folder.mkdir(parents=True, exist_ok=True)
  of_rows, best = rows()
  made = {"images": images(), "rows": of_rows, "digits": digits()}
  if cifar100:
    config = loading.load("configs/cifar100.py:fixed", {"data.dir": cifar100})
    made["trunk"] = trunk_features(config)
  for name, arrays in made.items():
    np.savez(folder / f"{name}.npz", **arrays)
    print(f"{folder / name}.npz: {arrays['x_train'].shape}")
  print(f"the best that rows.npz allows: {100 * best:.2f} %")


if __name__ == "__main__":
  main(Path(sys.argv[1]), *sys.argv[2:])
