"""The prediction: the label of lowest energy among those that may be predicted.

>>> import jax.numpy as jnp
>>> energies = jnp.array([[2.0, 0.5, -1.0], [0.1, 0.3, -9.0]])
>>> seen = jnp.array([True, True, False])
>>> predict(energies, seen).tolist()
[1, 0]
"""

import jax.numpy as jnp
from jax import Array


def predict(energies: Array, candidates: Array) -> Array:
  """Returns labels [B] int32: the lowest of energies [B, C] among candidates [C] bool.

  Candidates are all classes seen so far, or for the task-incremental prediction those
  of a row's own task. Without any, label 0.
  """
  return jnp.argmin(jnp.where(candidates[None, :], energies, jnp.inf), axis=1)


def among(scores: Array, candidates: Array) -> Array:
  """Returns scores [B, C], as good as minus infinity where candidates [B, C] are not.

  A large finite number in its place keeps the gradient of a softmax free of NaN.
  Candidates may also be [1, C], the same for all rows.
  """
  return jnp.where(candidates, scores, jnp.finfo(scores.dtype).min)
