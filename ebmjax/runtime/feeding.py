"""Gives compiled calls their images: a whole set on the device, or the rows they need.

A set that is larger than `config.runner.image_memory` stays where it is, in memory or
on the disk, and each call is sent its own rows. Features of a frozen trunk are put on
the device again when more of them are computed. Results are the same to the bit.
"""

import logging
import os

import jax
import numpy as np
from ml_collections import ConfigDict

from ebmjax.runtime.features import Features
from ebmjax.runtime.scan import Images
from ebmjax.runtime.sharding import SeedSharding

_log = logging.getLogger("ebmjax")


class Feed:
  """A set of images; those on the host (NumPy arrays) are sent in parts."""

  def __init__(self, images: Images, sharding: SeedSharding) -> None:
    self._images, self._sharding = images, sharding
    self._features = images.x if isinstance(images.x, Features) else None
    self.in_parts = is_on_host(images)

  def prepare(self, rows: np.ndarray) -> None:
    """Computes the features of `rows`, if it is features that a network is shown."""
    if self._features and self._features.compute(rows):
      shown = self._images._replace(x=self._features.values)
      self._images = Images(*self._sharding.replicate(tuple(shown)))

  def take(self, rows: np.ndarray) -> tuple[Images, np.ndarray]:
    """Returns images that hold all `rows`, and where they hold them; -1 stays -1.

    As many images for each call with as many rows, so that one program serves them.
    """
    self.prepare(rows)
    if not self.in_parts:
      return self._images, rows
    used = np.unique(rows[rows >= 0])
    size = part_size(self._images, rows.size)
    filled = np.pad(used, (0, size - len(used)))
    part = Images(*(np.asarray(array[filled]) for array in self._images))
    places = np.where(rows >= 0, np.searchsorted(used, rows), -1)
    return Images(*self._sharding.replicate(tuple(part))), places.astype(rows.dtype)


def place(
  sets: tuple[Images, ...], config: ConfigDict, sharding: SeedSharding
) -> list[Images]:
  """Puts sets of images on the devices if they are small enough together.

  Features are put there by a `Feed`, or are computed here where they are too large.
  """
  total = sum(array.nbytes for images in sets for array in images)
  limit = config.runner.image_memory or _device_memory() // 2
  if total <= limit:
    return [
      images
      if isinstance(images.x, Features)
      else Images(*sharding.replicate(tuple(images)))
      for images in sets
    ]
  _log.info(
    "The images take %.1f MB, more than the %.1f MB of config.runner.image_memory: "
    "each call is sent its own.",
    *(total / 1e6, limit / 1e6),
  )
  return [whole(images) for images in sets]


def whole(images: Images) -> Images:
  """Returns a set of images, or of their features with none missing."""
  if isinstance(images.x, Features):
    return images._replace(x=images.x.compute_all())
  return images


def is_on_host(images: Images) -> bool:
  """Returns whether images are sent in parts."""
  return isinstance(images.x, np.ndarray)


def part_size(images: Images, rows: int) -> int:
  """Returns how many images a call with so many rows holds on its device."""
  return min(rows, len(images.y)) if is_on_host(images) else len(images.y)


def _device_memory() -> int:
  """Returns the bytes of a device of this process; of a CPU, the machine's."""
  stats = jax.local_devices()[0].memory_stats() or {}
  machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
  return int(stats.get("bytes_limit", machine))
