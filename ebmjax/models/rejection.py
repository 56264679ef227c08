"""Rejection of inputs whose energy is higher than training rows usually have."""

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from ebmjax import metrics
from ebmjax.errors import ConfigError, DataError


class Reservoir:
  """A uniform sample of all rows seen, in the form they are stored in.

  Li's algorithm L (1994): it draws how many rows to pass over before the next one that
  enters the sample, so a call costs next to nothing once many rows were seen.
  """

  def __init__(self, size: int, *, seed: int) -> None:
    if size < 0:
      raise ConfigError(f"calibration_rows={size} is negative: give 0 or more.")
    self.size, self.seen = size, 0
    self._rng = np.random.default_rng(seed)
    self._rows = np.empty(0)  # [M, ...], with room for `size` once the first is there
    self._next, self._share = size - 1, 1.0
    self._draw_next()

  def _draw_next(self) -> None:
    """Draws the number of the next row, counted from 0, that replaces another."""
    if self.size:
      self._share *= (1 - self._rng.random()) ** (1 / self.size)
      self._next += int(self._rng.geometric(self._share))

  def add(self, x: np.ndarray) -> None:
    """Takes rows x [N, ...] into account."""
    start, self.seen = self.seen, self.seen + len(x)
    if not start:
      self._rows = np.empty((self.size, *x.shape[1:]), x.dtype)
    if start < self.size:
      self._rows[start : self.seen] = x[: self.size - start]
    while self.size and self._next < self.seen:
      self._rows[self._rng.integers(self.size)] = x[self._next - start]
      self._draw_next()

  def rows(self) -> np.ndarray:
    """Returns the sample [M, ...]."""
    if not min(self.seen, self.size):
      raise DataError(
        "no training rows are kept to know which energies are usual: give "
        "calibration_rows and learn on before you reject."
      )
    return self._rows[: self.seen].copy()

  def state(self) -> dict[str, Any]:
    """Returns, for JSON, all but the rows that `restore` needs."""
    random = self._rng.bit_generator.state
    drawn = {"next": self._next, "share": self._share, "random": random}
    return {"size": self.size, "seen": self.seen, **drawn}

  def restore(self, rows: np.ndarray, state: Mapping[str, Any]) -> None:
    """Continues from a sample [M, ...] and the state of a saved reservoir."""
    self.size, self.seen = int(state["size"]), int(state["seen"])
    if len(rows) != min(self.size, self.seen):
      raise ValueError(
        f"{len(rows)} rows kept of {self.seen}, with room for {self.size}"
      )
    self._rng.bit_generator.state = state["random"]
    self._next, self._share = int(state["next"]), float(state["share"])
    while self.size and self._next < self.seen:  # a file from before these numbers
      self._draw_next()
    if self.seen:
      short = self.size - len(rows)
      self._rows = np.pad(rows, [(0, short)] + [(0, 0)] * (rows.ndim - 1))


def is_outside(energies: np.ndarray, known: np.ndarray, share: float) -> np.ndarray:
  """Returns [N] bool: where the lowest of energies [N, K] is higher than usual.

  known [M, K] are energies of training rows, of which `share` are usual.

  >>> known = np.linspace(0, 1, 101)[:, None]
  >>> is_outside(np.array([[0.5], [0.97]]), known, 0.95).tolist()
  [False, True]
  """
  limit = metrics.acceptance_limit(known.min(axis=1), share)
  return np.asarray(energies.min(axis=1) > limit)


def without(labels: np.ndarray, outside: np.ndarray) -> np.ndarray:
  """Returns labels [N] with -1, or None among strings, where `outside` [N].

  >>> without(np.array(["ant", "bee"]), np.array([False, True])).tolist()
  ['ant', None]
  """
  is_text = labels.dtype.kind == "U"
  found = labels.astype(object if is_text else labels.dtype)
  found[outside] = None if is_text else -1
  return found


def require_share(share: float) -> None:
  """Raises where a share to keep is not between 0 and 1."""
  if not isinstance(share, Real) or not 0 < share < 1:
    raise ConfigError(
      f"reject={share!r} is the share of training rows to accept: give a number "
      "between 0 and 1, such as 0.95."
    )
