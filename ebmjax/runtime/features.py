"""Features of a frozen trunk, computed for a class of images when a run comes to it.

So the first step does not wait for images of later tasks. An image's features do not
depend on the images beside it: they have the same bits whenever they are computed.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import Array

from ebmjax import networks

_BATCH = 200


class Features:
  """Features [N, F] of a set of images: zeros until they are computed."""

  def __init__(
    self, trunk: Callable[[Array], Array], images: np.ndarray, y: np.ndarray
  ) -> None:
    self._images, self._y = images, y
    self._features = networks.feature_function(trunk, _BATCH)
    shape = jax.ShapeDtypeStruct((_BATCH, *images.shape[1:]), images.dtype)
    rows = jax.eval_shape(jax.jit(trunk), shape)  # traced once, for all batches
    # Pages that nobody has written to take no memory.
    self.values = np.zeros((len(images), *rows.shape[1:]), rows.dtype)
    self.shape, self.dtype = self.values.shape, self.values.dtype
    self.nbytes = self.values.nbytes
    self._missing = np.ones(len(images), bool)

  def compute(self, rows: Any) -> bool:
    """Computes what is missing of `rows` (-1: none) and of all images of their classes.

    Returns whether anything was.
    """
    classes = np.unique(self._y[rows[rows >= 0]])
    new = np.flatnonzero(self._missing & np.isin(self._y, classes))
    if not len(new):
      return False
    # Full batches: one program serves all, and one image alone would give other bits.
    filled = np.pad(new, (0, -len(new) % _BATCH), mode="edge")
    found = self._features(self._images[filled])
    self.values[new] = found[: len(new)]
    self._missing[new] = False
    return True

  def compute_all(self) -> np.ndarray:
    """Returns the features of all images."""
    self.compute(np.arange(len(self._y)))
    return self.values
