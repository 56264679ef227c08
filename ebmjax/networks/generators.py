"""Generators of images as pure functions: of grey rows, and of colour images."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ebmjax.networks.conv_vae import ConvVariationalAutoencoder, squared_losses
from ebmjax.networks.vae import VariationalAutoencoder, elbo_losses
from ebmjax.types import PyTree

# Colours are centred and scaled to about the variance of a normalised image.
_CENTRE, _SCALE = 0.5, 0.25


class Generator(NamedTuple):
  """A variational autoencoder of images as batches hold them, [B, ...] uint8."""

  latent: int  # Z, numbers of a code
  init: Callable[[Array], PyTree]  # (key) -> variables, trained ones in "params"
  # (variables, x, noise [B, Z]) -> losses [B] and variables with moved statistics
  losses: Callable[[PyTree, Array, Array], tuple[Array, PyTree]]
  decode: Callable[[PyTree, Array], Array]  # (variables, codes [B, Z]) -> images


def make_generator(row: jax.ShapeDtypeStruct, hidden: int, latent: int) -> Generator:
  """Returns the generator of images like `row`: a row of pixels, or colours."""
  return (_colours if len(row.shape) == 3 else _greys)(row, hidden, latent)


def _greys(row: jax.ShapeDtypeStruct, hidden: int, latent: int) -> Generator:
  pixels = math.prod(row.shape)
  vae = VariationalAutoencoder(pixels, hidden, latent)

  def init(key: Array) -> PyTree:
    return vae.init(key, jnp.zeros((1, pixels)), jnp.zeros((1, latent)))

  def losses(variables: PyTree, x: Array, noise: Array) -> tuple[Array, PyTree]:
    rows = x.reshape(-1, pixels).astype(jnp.float32) / 255
    found: Any = vae.apply(variables, rows, noise)
    return elbo_losses(rows, *found), variables

  def decode(variables: PyTree, z: Array) -> Array:
    logits: Any = vae.apply(variables, z, method="decode")
    return _stored(jax.nn.sigmoid(logits), row)

  return Generator(latent, init, losses, decode)


def _colours(row: jax.ShapeDtypeStruct, hidden: int, latent: int) -> Generator:
  vae = ConvVariationalAutoencoder(hidden, latent)

  def init(key: Array) -> PyTree:
    return vae.init(key, jnp.zeros((1, *row.shape)), jnp.zeros((1, latent)))

  def losses(variables: PyTree, x: Array, noise: Array) -> tuple[Array, PyTree]:
    images = (x.astype(jnp.float32) / 255 - _CENTRE) / _SCALE
    found, moved = vae.apply(variables, images, noise, True, mutable=["batch_stats"])
    return squared_losses(images, *found), dict(variables) | dict(moved)

  def decode(variables: PyTree, z: Array) -> Array:
    made: Any = vae.apply(variables, z, method="decode")
    return _stored(_SCALE * made + _CENTRE, row)

  return Generator(latent, init, losses, decode)


def _stored(shades: Array, row: jax.ShapeDtypeStruct) -> Array:
  """Returns images like `row` of shades in [0, 1], rounded to bytes."""
  whole = jnp.round(255 * jnp.clip(shades, 0, 1))
  return whole.reshape(-1, *row.shape).astype(row.dtype)
