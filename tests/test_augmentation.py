"""Random crops and flips: shifts within the margin, black beyond, both ways."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ebmjax.streams.augmentation import AUGMENTATIONS, crop_and_flip

SIDE = 12


def same_image(count: int) -> jax.Array:
  """Returns `count` times the same image of noise without a black pixel."""
  image = np.random.default_rng(0).integers(1, 256, (SIDE, SIDE, 3))
  return jnp.asarray(np.tile(image, (count, 1, 1, 1)), jnp.uint8)


def candidates(image: np.ndarray, mode: Any) -> dict[bytes, tuple[int, int, bool]]:
  """Returns every crop and flip of the padded image, by its bytes."""
  padded = np.pad(image, [(4, 4), (4, 4), (0, 0)], mode=mode)
  out = {}
  for top in range(9):
    for left in range(9):
      cut = padded[top : top + SIDE, left : left + SIDE]
      out[cut.tobytes()] = (top, left, False)
      out[cut[:, ::-1].tobytes()] = (top, left, True)
  return out


@pytest.mark.parametrize(
  ("name", "mode"),
  [("crop_and_flip", "constant"), ("mirror_crop_and_flip", "symmetric")],
)
def test_every_result_is_a_crop_of_the_padded_image_and_all_occur(name, mode):
  x = same_image(3000)
  got = np.asarray(jax.jit(AUGMENTATIONS[name])(jax.random.key(0), x))
  known = candidates(np.asarray(x[0]), mode)
  found = [known[image.tobytes()] for image in got]
  assert len(set(found)) == 9 * 9 * 2
  assert 0.45 < np.mean([flip for *_, flip in found]) < 0.55
  assert got.dtype == np.uint8


def test_draws_differ_by_key_alone():
  x = same_image(20)
  one, again, other = (crop_and_flip(jax.random.key(k), x) for k in (1, 1, 2))
  np.testing.assert_array_equal(one, again)
  assert (np.asarray(one) != np.asarray(other)).any()


def test_none_leaves_images_alone():
  x = same_image(2)
  np.testing.assert_array_equal(AUGMENTATIONS["none"](jax.random.key(0), x), x)
