"""New classes for a trained network, the old ones' gates untouched."""

import jax
from jax import Array

from ebmjax.networks.kept import find_kept
from ebmjax.types import Network, PyTree


def add_classes(
  network: Network, params: PyTree, model_state: PyTree, key: Array
) -> tuple[PyTree, PyTree]:
  """Returns (params, model_state) of `network`, which has more classes than they do.

  Whatever belongs to a new class (a row of the label's table, a mask, an output of a
  classifier) is drawn from `key` as at the start; everything else is carried over, so
  that the energies of the old labels stay the same:

  >>> import jax, jax.numpy as jnp
  >>> from ebmjax import networks
  >>> from ebmjax.config import default
  >>> spec, x = default().network, jnp.zeros((1, 28, 28), jnp.uint8)
  >>> two, five = (
  ...   networks.make(spec, input_shape=(28, 28), num_classes=n) for n in (2, 5)
  ... )
  >>> old = two.init(jax.random.key(0))
  >>> new = add_classes(five, *old, jax.random.key(1))
  >>> before, _ = two.energies(*old, x, jnp.arange(2))
  >>> after, _ = five.energies(*new, x, jnp.arange(5))
  >>> bool(jnp.allclose(before, after[:, :2])), after.shape
  (True, (1, 5))
  """
  fresh = network.init(key)
  grown, state = jax.tree.map(_carry_over, (params, model_state), fresh)
  if "kept" in state:  # follows from the masks, which are the old ones' now
    state |= {"kept": find_kept(state, state["kept"]["units"].shape[-1])}
  return grown, state


def _carry_over(old: Array, fresh: Array) -> Array:
  """Returns `fresh` with `old` in its leading corner."""
  fits = old.ndim == fresh.ndim and all(
    a <= b for a, b in zip(old.shape, fresh.shape, strict=True)
  )
  if not fits:
    raise ValueError(
      f"a trained array of shape {old.shape} does not fit into {fresh.shape}; the "
      "network must be the same but for more classes."
    )
  return fresh.at[tuple(slice(side) for side in old.shape)].set(old)
