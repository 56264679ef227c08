"""The masked energy MLP, computing for each label only the units its masks keep.

A mask keeps 15 % of 2000 units in each of two layers. The first layer's product is
shared by all labels, so it stays dense; of the second, a label needs only the kept rows
and columns, some 2 % of it. Equal to the plain form, which multiplies by the masks.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ebmjax.networks.distinct import of_distinct
from ebmjax.types import Network, PyTree

_PIECE = 5  # labels that are worth a branch


def widest(network: Network, keys: Array) -> int:
  """Returns the largest number of units that any mask of any of `keys` [R] keeps.

  Found on the host, before anything is compiled, because it is a shape.
  """
  masks = jax.jit(lambda key: _masks(network.init(key)[1]))
  return max(int(np.asarray(masks(key)).sum(axis=-1).max()) for key in keys)


def kept_units(dense: Network, *, width: int, max_labels: int) -> Network:
  """Returns the network `dense`, a two-layer EnergyMLP with masks, in the kept form.

  `width` is the largest number of units a mask keeps, `max_labels` the largest number
  of distinct labels in one call with candidates per row. Where either turns out too
  small, energies are NaN, which stops a run: nothing is dropped silently.
  """

  def init(key: Array) -> tuple[PyTree, PyTree]:
    params, state = dense.init(key)
    return params, state | {"kept": find_kept(state, width)}

  def energies(
    params: PyTree, model_state: PyTree, x: Array, labels: Array, train: bool = False
  ) -> tuple[Array, PyTree]:
    del train
    state = dict(model_state)
    kept = state.pop("kept")
    h = dense.features(params, state, x)
    if labels.ndim == 1:
      return _of_labels(params, kept, h, labels), model_state
    of_labels = partial(_of_labels, params, kept, h)
    found = of_distinct(of_labels, labels, dense.num_classes, max_labels, _PIECE)
    return found, model_state

  def features(params: PyTree, model_state: PyTree, x: Array) -> Array:
    state = {name: part for name, part in model_state.items() if name != "kept"}
    return dense.features(params, state, x)

  return Network(init, energies, features, dense.num_classes)


def find_kept(model_state: PyTree, width: int) -> PyTree:
  """Returns the indices of the units that the masks of `model_state` keep."""
  masks = _masks(model_state)
  # Out-of-range entries fill up: they gather zeros, and their gradients are dropped.
  find = jax.vmap(jax.vmap(lambda m: jnp.nonzero(m, size=width, fill_value=m.size)[0]))
  overfull = jnp.any(jnp.sum(masks, axis=-1) > width, axis=0)
  return {"units": find(masks), "poison": jnp.where(overfull, jnp.nan, 0.0)}


def _masks(model_state: PyTree) -> Array:
  return model_state["fixed"]["label_gate"]["masks"]


def _of_labels(params: PyTree, kept: PyTree, h: Array, labels: Array) -> Array:
  """Returns energies [B, L]; h [B, F] is the rectified first layer, ungated."""
  second, head = params["layers_1"], params["head"]

  def one(label: Array) -> Array:
    inputs, outputs = kept["units"][0, label], kept["units"][1, label]
    block = _block(second["kernel"], inputs, outputs)
    a = _at(h, slice(None), inputs) @ block + _at(second["bias"], outputs)[None, :]
    energy = jax.nn.relu(a) @ _at(head["kernel"][:, 0], outputs) + head["bias"][0]
    return energy + kept["poison"][label]

  return jax.vmap(one, out_axes=1)(labels)


def _block(kernel: Array, rows: Array, columns: Array) -> Array:
  """Returns kernel[rows, columns] of all pairs; any number where one is out of range.

  That number is multiplied by the zeros which h and the head have there. XLA
  materialises the index of every entry: one flat number, unchecked, is the cheapest.
  """
  rows = jnp.minimum(rows, kernel.shape[0] - 1)
  columns = jnp.minimum(columns, kernel.shape[1] - 1)
  flat = rows[:, None] * kernel.shape[1] + columns[None, :]
  found = kernel.reshape(-1).at[flat]
  return found.get(mode="promise_in_bounds", wrap_negative_indices=False)


def _at(array: Array, *index: Array | slice) -> Array:
  """Returns array[index], with zeros where the index is out of range."""
  return array.at[index].get(mode="fill", fill_value=0)
