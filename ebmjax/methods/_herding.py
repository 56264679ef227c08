"""Herding: picks whose running mean stays as close to a class's mean as it can."""

import jax.numpy as jnp
from jax import Array, lax


def herd(phi: Array, members: Array, number: Array | int, most: int) -> Array:
  """Returns picks [L, most]: row numbers of phi [N, F] for each class, by herding.

  members [L, N] marks the rows of each class. Only the first `number` picks are made;
  what follows them, or exceeds the rows of a class, has no meaning. A step takes one
  product for all classes:

  || (k + 1) mu - S - phi_i ||^2 is least where phi_i . ((k + 1) mu - S) - |phi_i|^2 / 2
  is greatest, S being the sum of the picks before.
  """
  mean = unit(members.astype(phi.dtype) @ phi)  # the scale of a mean does not matter
  half_square = jnp.sum(jnp.square(phi), axis=1) / 2  # 1/2, except for zeros
  classes = jnp.arange(members.shape[0])

  def pick(k: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
    total, free, picks = carry
    scores = ((k + 1) * mean - total) @ phi.T - half_square[None, :]
    best = jnp.argmax(jnp.where(free, scores, -jnp.inf), axis=1)
    free = free.at[classes, best].set(False)
    return total + phi[best], free, picks.at[:, k].set(best.astype(picks.dtype))

  picks = jnp.zeros((members.shape[0], most), jnp.int32)
  start = (jnp.zeros_like(mean), members, picks)
  return lax.fori_loop(0, number, pick, start)[2]


def unit(vectors: Array) -> Array:
  """Returns vectors [..., F] scaled to length 1; zeros stay zeros."""
  length = jnp.linalg.norm(vectors, axis=-1, keepdims=True)
  return vectors / jnp.maximum(length, 1e-12)
