"""Room for more classes: trained arrays become the leading corners of larger ones."""

import jax
from jax import Array

from ebmjax.networks.kept import find_kept
from ebmjax.types import PyTree


def grow(trained: PyTree, fresh: PyTree) -> PyTree:
  """Returns `fresh`, made for more classes, with `trained` in its leading corners.

  Both are variables of a network, or states of a learner. Whatever belongs to a new
  class (a row of the label's table, a mask, an output of a classifier) stays as it was
  drawn; the energies of the old labels stay the same:

  >>> import jax, jax.numpy as jnp
  >>> from ebmjax import networks
  >>> x = jnp.zeros((1, 28, 28), jnp.uint8)
  >>> two, five = (
  ...   networks.make("ebm", input_shape=(28, 28), num_classes=n) for n in (2, 5)
  ... )
  >>> old = two.init(jax.random.key(0))
  >>> new = grow(old, five.init(jax.random.key(1)))
  >>> before, _ = two.energies(*old, x, jnp.arange(2))
  >>> after, _ = five.energies(*new, x, jnp.arange(5))
  >>> bool(jnp.allclose(before, after[:, :2])), after.shape
  (True, (1, 5))

  Raises ValueError where an array does not fit.
  """
  return jax.tree.map(_merge, trained, fresh, is_leaf=_has_kept)


def _has_kept(node: PyTree) -> bool:
  return isinstance(node, dict) and "kept" in node


def _merge(old: PyTree, fresh: PyTree) -> PyTree:
  if not _has_kept(old):
    return _carry_over(old, fresh)
  old, fresh = dict(old), dict(fresh)
  kept = old.pop("kept"), fresh.pop("kept")
  grown = jax.tree.map(_carry_over, old, fresh)
  # Which units are kept follows from the masks, of which the first are the old ones.
  return grown | {"kept": find_kept(grown, max(k["units"].shape[-1] for k in kept))}


def _carry_over(old: Array, fresh: Array) -> Array:
  """Returns `fresh` with `old` in its leading corner."""
  fits = old.ndim == fresh.ndim and all(
    a <= b for a, b in zip(old.shape, fresh.shape, strict=True)
  )
  if not fits:
    raise ValueError(
      f"a trained array of shape {old.shape} does not fit into {fresh.shape}."
    )
  return fresh.at[tuple(slice(side) for side in old.shape)].set(old)
