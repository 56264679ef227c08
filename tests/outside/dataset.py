"""Grey images of 12 x 20 pixels in seven classes: bright columns, three for each."""

from typing import Annotated

import numpy as np

from ebmjax.config.schema import Count, Number
from ebmjax.data import DatasetSpec


def load(
  *,
  per_class: Annotated[Count, "training images of each class"] = 60,
  noise: Annotated[Number, "largest brightness of a dark pixel"] = 90,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
  """Returns train_x [N, 12, 20] uint8, train_y [N] int32, test_x and test_y."""
  train = _draw(np.random.default_rng(0), per_class, noise)
  test = _draw(np.random.default_rng(1), 20, noise)
  return *train, *test


def _draw(
  rng: np.random.Generator, per_class: int, noise: int
) -> tuple[np.ndarray, np.ndarray]:
  y = rng.permutation(np.arange(7 * per_class, dtype=np.int32) % 7)
  x = rng.integers(0, noise + 1, (len(y), 12, 20), dtype=np.uint8)
  # Classes have the columns 0 to 20: the last class has two of its own.
  own = np.arange(20)[None, :] // 3 == y[:, None]
  return np.where(own[:, None, :], np.uint8(255), x), y


SPEC = DatasetSpec(name="columns", title="columns", load=load)
