"""The largest directions of each class's scatter, in bounded memory.

A factor A_y [R, F] stands for the scatter of class y: A_y^T A_y is its best
approximation of rank R, up to what earlier batches dropped (incremental principal
components, Ross et al. 2008). Rows r of a batch are stacked below the factor, and the R
largest principal directions of the stack are kept:

    [A_y; r_1; ...; r_n] = U D V^T,   A_y <- (U^T [A_y; r_1; ...; r_n])_1..R

Nothing is lost while a class has no more than R directions. U comes from the small Gram
matrix of the stack, so that no array of F x F numbers is needed for a class.
"""

import jax.numpy as jnp
from jax import Array, lax

_ROWS = 32  # of a class that join its factor at a time; a batch has few of each class


def add_to_factors(
  factors: Array, rows: Array, y: Array, new: Array, between: Array
) -> Array:
  """Returns factors [C, R, F] with rows [B, F] of classes y [B], centred by class.

  new [C] counts the rows of each class; between [C, F] is one more row for each.
  """
  rank = factors.shape[1]
  # Rows sorted by class, padded so that the last slice of a class stays in range.
  grouped = jnp.pad(rows[jnp.argsort(y)], ((0, _ROWS), (0, 0)))
  count = new.astype(jnp.int32)
  parts = (count + _ROWS - 1) // _ROWS
  first, end = jnp.cumsum(count) - count, jnp.cumsum(parts)

  def one(i: Array, factors: Array) -> Array:
    label = jnp.searchsorted(end, i, side="right")
    done = (i - end[label] + parts[label]) * _ROWS
    found = lax.dynamic_slice_in_dim(grouped, first[label] + done, _ROWS)
    is_own = done + jnp.arange(_ROWS) < count[label]
    found = jnp.where(is_own[:, None], found, 0.0)
    last = jnp.where(done == 0, between[label], 0.0)
    stack = jnp.concatenate([factors[label], found, last[None, :]])
    return factors.at[label].set(_compress(stack, rank))

  return lax.fori_loop(0, end[-1], one, factors)


def _compress(stack: Array, rank: int) -> Array:
  """Returns [rank, F]: the largest principal directions of stack [M, F], M > rank."""
  _, vectors = jnp.linalg.eigh(stack @ stack.T)
  kept = vectors[:, : -rank - 1 : -1].T @ stack
  # The sign of an eigenvector is arbitrary; a fixed one makes results reproducible.
  largest = jnp.take_along_axis(
    kept, jnp.argmax(jnp.abs(kept), axis=1, keepdims=True), axis=1
  )
  return jnp.where(largest < 0, -kept, kept)
