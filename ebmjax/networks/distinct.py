"""Candidates of each row, computed once for each distinct label of the batch.

With many candidates, rows of a batch ask for the same few labels over and over, and
most of the C + 1 slots of a row repeat its true label, because their class does not
count. Where a label's energies are no part of one product for all labels, each distinct
label is computed once for all rows.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array, lax

from ebmjax.types import Network, PyTree

OfLabels = Callable[[Array], Array]  # labels [L] -> energies [B, L]
_FEWEST, _MOST = 4, 10  # branches that are worth it, and so many at most


def each_label_once(network: Network, max_labels: int) -> Network:
  """Returns the network with no more than `max_labels` labels computed in one call.

  Candidates [B, K] with K at most that number are left as they are. A batch with more
  distinct labels gives NaN, which stops a run: nothing is ever cut off in silence.
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
  """Returns energies [B, K] of labels [B, K], of which so many at most are distinct.

  `of_labels` computes them, `piece` labels at a time at least.
  """
  present = jnp.bincount(labels.ravel(), length=num_classes) > 0
  slots = jnp.nonzero(present, size=max_labels, fill_value=0)[0]
  place = jnp.clip(jnp.cumsum(present) - 1, 0, max_labels - 1)
  number = jnp.sum(present)
  found = _of_first(of_labels, slots, number, piece)
  found += jnp.where(number > max_labels, jnp.nan, 0.0)
  return jnp.take_along_axis(found, place[labels], axis=1)


def _of_first(of_labels: OfLabels, labels: Array, number: Array, piece: int) -> Array:
  """Returns energies [B, L], of which the first `number` [] are asked for.

  The others may be zeros: labels are computed by tenths of L, or what comes near. On a
  CPU, that is; an accelerator runs its seeds side by side, where all branches would be
  computed.
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
