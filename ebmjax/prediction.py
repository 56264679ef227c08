"""The prediction: the label of lowest energy among those that may be predicted.

>>> import jax.numpy as jnp
>>> energies = jnp.array([[2.0, 0.5, -1.0], [0.1, 0.3, -9.0]])
>>> seen = jnp.array([True, True, False])
>>> predict(energies, seen).tolist()
[1, 0]
"""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike


def predict(energies: ArrayLike, candidates: ArrayLike) -> Array:
  """Returns labels [B] int32: the lowest of energies [B, C] among the candidates.

  Candidates, [C] bool for all rows or [B, C] for each row, are all classes seen so
  far, or for the task-incremental prediction those of the row's task. Without any,
  label 0.
  """
  energies, candidates = jnp.asarray(energies), jnp.asarray(candidates)
  rows = candidates[None, :] if candidates.ndim == 1 else candidates
  _require_candidates(energies, rows)
  return jnp.argmin(jnp.where(rows, energies, jnp.inf), axis=1)


def among(scores: Array, candidates: Array) -> Array:
  """Returns scores [B, C], the lowest finite number where candidates [B, C] are not.

  Minus infinity would make the gradient of a softmax NaN. Candidates may also be
  [1, C], the same for all rows.
  """
  _require_candidates(scores, candidates)
  return jnp.where(candidates, scores, jnp.finfo(scores.dtype).min)


def _require_candidates(scores: Array, rows: Array) -> None:
  """Raises where candidates are no mask of scores [B, C], as [B, C] or [1, C]."""
  fits = scores.ndim == 2 and rows.shape in (scores.shape, (1, *scores.shape[1:]))
  if not fits or rows.dtype != bool:
    raise ValueError(
      f"candidates must be a mask of booleans, [C] or [B, C], of energies [B, C], not "
      f"{rows.dtype}{list(rows.shape)} of energies {list(scores.shape)}."
    )
