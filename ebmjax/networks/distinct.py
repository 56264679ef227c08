"""Energies of candidate labels, computed once for each distinct label of the batch.

With many candidates, the rows of a batch share few labels, and most of the C + 1 slots
of a row repeat its true label, because their class does not count. In networks that
cannot compute all labels in one product, each distinct label is computed once for all
rows.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array, lax

from ebmjax.types import Network, PyTree

OfLabels = Callable[[Array], Array]  # labels [L] -> energies [B, L]
_FEWEST, _MOST = 4, 10  # branches: fewer are not worth it


def each_label_once(network: Network, max_labels: int) -> Network:
  """Returns the network with no more than `max_labels` labels computed in one call.

  Candidates [B, K] with K at most that number are left as they are. A batch with more
  distinct labels gives NaN, which stops a run: no label is dropped silently.
  """

  def energies(
    params: PyTree, model_state: PyTree, x: Array, labels: Array, train: bool = False
  ) -> tuple[Array, PyTree]:
    if labels.ndim == 1 or labels.shape[1] <= max_labels:
      return network.energies(params, model_state, x, labels, train=train)

    def of_labels(labels: Array) -> Array:
      return network.energies(params, model_state, x, labels, train=train)[0]

    found = of_distinct(of_labels, labels, network.num_classes, max_labels)
    return found, model_state

  return network._replace(energies=energies)


def of_distinct(
  of_labels: OfLabels, labels: Array, num_classes: int, max_labels: int, piece: int = 1
) -> Array:
  """Returns energies [B, K] of labels [B, K], at most `max_labels` of them distinct.

  `of_labels` computes them, at least `piece` labels at a time.
  """
  present = jnp.bincount(labels.ravel(), length=num_classes) > 0
  slots = jnp.nonzero(present, size=max_labels, fill_value=0)[0]
  place = jnp.clip(jnp.cumsum(present) - 1, 0, max_labels - 1)
  number = jnp.sum(present)
  found = _of_first(of_labels, slots, number, piece)
  found += jnp.where(number > max_labels, jnp.nan, 0.0)
  return jnp.take_along_axis(found, place[labels], axis=1)


def _of_first(of_labels: OfLabels, labels: Array, number: Array, piece: int) -> Array:
  """Returns energies [B, L], of which the first `number` [] are needed.

  The others may be zeros: a CPU computes about as many tenths of L as are needed. An
  accelerator runs its seeds side by side, which would compute all branches.
  """
  most = labels.shape[0]
  pieces = min(_MOST, most // piece)
  if pieces < _FEWEST or jax.default_backend() != "cpu":
    return of_labels(labels)

  def first(size: int) -> Array:
    return jnp.pad(of_labels(labels[:size]), ((0, 0), (0, most - size)))

  sizes = [-(-most * part // pieces) for part in range(1, pieces + 1)]
  branch = jnp.sum(number > jnp.array(sizes[:-1]))
  return lax.switch(branch, [partial(first, size) for size in sizes])
