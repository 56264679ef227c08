r"""Random filters of image patches that never learn, rectified and averaged by region.

    phi(x)_{f,c} = mean over positions p of cell c of relu(+-w_f . n(x_p))

x_p are the square patches of an image, n subtracts a patch's mean and divides by its
deviation, and the cells are a grid over the image (Coates, Lee and Ng 2011). Those
authors whiten patches by their covariance in the training images, which a stream shows
one class after another. But the covariance of natural images is well known: it falls
with the distance of two pixels, and colours are correlated. So filters are drawn from
the seed and whitened, without any image, by

    K(p, q) = exp(-|p - q| / 8) * (1 if of the same colour, else 0.9)
"""

from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax import Array

from ebmjax.config.schema import Count, Rule
from ebmjax.networks.cifar10 import WANTS_IMAGES, is_image
from ebmjax.networks.conv import extract_patches
from ebmjax.networks.initialisers import frozen
from ebmjax.networks.module import from_module
from ebmjax.networks.random_features import GatedFeatures
from ebmjax.networks.spec import Gate, Inputs, NetworkSpec, Skip
from ebmjax.types import Network

_REACH = 8.0  # pixels in which the correlation of two pixels falls to 1 / e
_COLOURS = 0.9  # correlation of two colours of a pixel
_NOISE = 0.1  # added to the spectrum: bounds how much fine detail is amplified
_CONTRAST = 0.02  # added to a patch's variance


class Patches(nn.Module):
  """Rectified responses of random filters, averaged over the cells of a grid."""

  filters: int
  size: int
  stride: int
  grid: int

  @nn.compact
  def __call__(self, x: Array) -> Array:
    """Returns [B, 2 * filters * grid * grid] of images x [B, H, W, C]."""

    def draw(key: Array, shape: tuple[int, ...]) -> Array:
      root = jnp.asarray(_whitening(self.size, x.shape[3]), jnp.float32)
      return root @ jax.random.normal(key, shape) / np.sqrt(shape[0])

    numbers = self.size * self.size * x.shape[3]
    kernel = frozen(self, "kernel", draw, numbers, self.filters)
    patches = extract_patches(x, self.size, self.stride)  # [B, H', W', numbers]
    patches -= jnp.mean(patches, axis=3, keepdims=True)
    spread = jnp.mean(jnp.square(patches), axis=3, keepdims=True)
    responses = patches @ kernel / jnp.sqrt(spread + _CONTRAST)
    rows, columns = (_cells(side, self.grid) for side in responses.shape[1:3])
    parts = [
      jnp.einsum("bijf,gi,hj->bghf", jax.nn.relu(each), rows, columns)
      for each in (responses, -responses)
    ]
    return jnp.concatenate(parts, axis=3).reshape(x.shape[0], -1)


def _whitening(size: int, colours: int) -> np.ndarray:
  """Returns (K + noise)^(-1/2) [P, P] of the numbers of a patch, in its order."""
  place = np.stack(np.divmod(np.arange(size * size), size), axis=1)
  apart = np.linalg.norm(place[:, None] - place[None], axis=2)
  among = _COLOURS + (1 - _COLOURS) * np.eye(colours)
  spectrum, basis = np.linalg.eigh(np.kron(np.exp(-apart / _REACH), among))
  found: np.ndarray = (basis / np.sqrt(spectrum + _NOISE)) @ basis.T
  return found


def _cells(side: int, grid: int) -> Array:
  """Returns [grid, side]: the weights of positions in each cell's mean."""
  weights = np.zeros((grid, side), np.float32)
  for i in range(grid):
    first, last = i * side // grid, -(-(i + 1) * side // grid)
    weights[i, first:last] = 1 / (last - first)
  return jnp.asarray(weights)


def patches(
  inputs: Inputs,
  *,
  filters: Annotated[Count, "random filters; each gives two features per cell"] = 200,
  size: Annotated[Count, "side of a patch in pixels, at most 8"] = 6,
  stride: Annotated[Count, "pixels from one patch to the next"] = 2,
  grid: Annotated[
    Count, "cells per side of the grid in which responses are averaged"
  ] = 3,
  gate: Gate = "l2",
  skip: Skip = True,
) -> Network:
  """Builds the network over random filters of patches."""
  classes, width = inputs.num_classes, 2 * filters * grid * grid
  extract = Patches(filters, size, stride, grid)
  module = GatedFeatures(extract, width, classes, gate, skip)
  return from_module(module, inputs.shape, classes, inputs.prepare)


def _width(config: Any) -> int:
  return int(2 * config.filters * config.grid**2)


def _constraints(config: Any) -> list[Rule]:
  size = config.network.size
  return [(size > 8, f"config.network.size={size} must be at most 8.")]


PATCHES = NetworkSpec(
  patches,
  title="energy over random patch filters",
  classifier="sbc_conv4",
  takes_rows=False,
  accepts=is_image,
  wants=WANTS_IMAGES,
  num_features=_width,
  constraints=_constraints,
  small={"filters": 4, "grid": 2},
)
