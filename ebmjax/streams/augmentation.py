"""Random changes of images on the device, drawn for every batch."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array, lax

from ebmjax.types import unchanged

_MARGIN = 4


def crop_and_flip(key: Array, x: Array, *, padding: str = "constant") -> Array:
  """Returns x [B, H, W, C], each image cropped at random and flipped half the time.

  Images are padded by 4 pixels on each side, black or mirrored (`symmetric`), and cut
  back to their size. Deviation: the released code does this on CIFAR-10, the paper does
  not mention it.
  """
  crop_key, flip_key = jax.random.split(key)
  corners = jax.random.randint(crop_key, (x.shape[0], 2), 0, 2 * _MARGIN + 1)
  margins = [(0, 0), (_MARGIN, _MARGIN), (_MARGIN, _MARGIN), (0, 0)]
  padded = jnp.pad(x, margins, mode=padding)

  def cut(image: Array, corner: Array) -> Array:
    return lax.dynamic_slice(image, (corner[0], corner[1], 0), x.shape[1:])

  cropped = jax.vmap(cut)(padded, corners)
  flip = jax.random.bernoulli(flip_key, shape=(x.shape[0], 1, 1, 1))
  return jnp.where(flip, cropped[:, :, ::-1], cropped)


AUGMENTATIONS: dict[str, Callable[[Array, Array], Array]] = {
  "none": unchanged,
  "crop_and_flip": crop_and_flip,
  "mirror_crop_and_flip": partial(crop_and_flip, padding="symmetric"),
}
