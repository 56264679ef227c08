"""Rejection of inputs whose energy is higher than training rows usually have."""

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from ebmjax import metrics
from ebmjax.errors import ConfigError, DataError


class Reservoir:
  """A uniform sample of all rows seen (Vitter 1985), in the form they are stored in."""

  def __init__(self, size: int, *, seed: int) -> None:
    if size < 0:
      raise ConfigError(f"calibration_rows={size} is negative: give 0 or more.")
    self.size, self.seen = size, 0
    self._rng = np.random.default_rng(seed)
    self._rows = np.empty(0)  # [M, ...], with room for `size` once the first is there

  def add(self, x: np.ndarray) -> None:
    """Takes rows x [N, ...] into account."""
    if not self.seen:
      self._rows = np.empty((self.size, *x.shape[1:]), x.dtype)
    first = x[: max(0, self.size - self.seen)]
    self._rows[self.seen : self.seen + len(first)] = first
    late = np.arange(len(first), len(x))
    places = self._rng.integers(0, self.seen + late + 1) if len(late) else late
    taken = places < self.size  # the last one, where several come to a place
    self._rows[places[taken]] = x[late[taken]]
    self.seen += len(x)

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
    return {"size": self.size, "seen": self.seen, "random": random}

  def restore(self, rows: np.ndarray, state: Mapping[str, Any]) -> None:
    """Continues from a sample [M, ...] and the state of a saved reservoir."""
    self.size, self.seen = int(state["size"]), int(state["seen"])
    self._rng.bit_generator.state = state["random"]
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
