"""Comparisons of trees of arrays, whose errors name the leaf."""

from typing import Any

import jax
import numpy as np


def require_same(one: Any, other: Any, what: str) -> None:
  """Requires the same structure and the same numbers, to the bit."""
  for name, a, b in _pairs(one, other, what):
    assert np.array_equal(a, b, equal_nan=True), f"{what}: {name} differs"


def require_close(one: Any, other: Any, what: str) -> None:
  """Requires the same structure and the same numbers, up to rounding."""
  for name, a, b in _pairs(one, other, what):
    same = np.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True)
    assert same, f"{what}: {name} differs by {np.abs(a - b).max():.3g}"


def require_alike(one: Any, other: Any, what: str) -> None:
  """Requires the same structure, shapes and types, of arrays or of their shapes."""
  for name, a, b in _leaves(one, other, what):
    shapes = f"{a.dtype}{list(a.shape)}", f"{b.dtype}{list(b.shape)}"
    assert shapes[0] == shapes[1], f"{what}: {name} is {shapes[0]}, then {shapes[1]}"


def require_finite(tree: Any, what: str) -> None:
  """Requires that no floating-point number is infinite or NaN."""
  for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
    value = np.asarray(leaf)
    finite = value.dtype.kind != "f" or np.isfinite(value).all()
    assert finite, f"{what}: {_name(path)} is not finite"


def _pairs(one: Any, other: Any, what: str) -> list[tuple[str, Any, Any]]:
  require_alike(one, other, what)
  return [
    (name, np.asarray(a), np.asarray(b)) for name, a, b in _leaves(one, other, what)
  ]


def _leaves(one: Any, other: Any, what: str) -> list[tuple[str, Any, Any]]:
  structures: list[Any] = [jax.tree.structure(one), jax.tree.structure(other)]
  same = structures[0] == structures[1]
  assert same, f"{what}: the structure {structures[0]} became {structures[1]}"
  pairs = zip(
    jax.tree_util.tree_leaves_with_path(one), jax.tree.leaves(other), strict=True
  )
  return [(_name(path), a, b) for (path, a), b in pairs]


def _name(path: Any) -> str:
  return jax.tree_util.keystr(path) or "the array"
