"""Negatives: the labels that the true one is compared with.

Every function maps a key and labels y [B] to candidate labels [B, K] and valid [B, K];
column 0 is the true label. There is no loop or rejection: if a row has no other class
to choose from, its negatives are marked invalid and the losses ignore them. The slot of
an invalid class holds the true label, so a network need not compute labels that no row
uses.

Three rows, when there are four classes:

>>> import jax, jax.numpy as jnp
>>> from ebmjax import negatives
>>> y = jnp.array([0, 2, 2])
>>> labels, valid = negatives.all_of_batch(jax.random.key(0), y, num_classes=4)
>>> labels.tolist()
[[0, 0, 0, 2, 0], [2, 0, 2, 2, 2], [2, 0, 2, 2, 2]]
>>> valid.astype(int).tolist()
[[1, 0, 0, 1, 0], [1, 1, 0, 0, 0], [1, 1, 0, 0, 0]]

A `Batch`, which knows its classes, may replace y and the arguments after it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from ebmjax.types import Batch, as_labels, make_batch

Labels = Batch | ArrayLike | Sequence[int]  # y [B], or a batch that has it


def one_of_task(
  key: Array, y: Labels, task_classes: ArrayLike | None = None
) -> tuple[Array, Array]:
  """Returns labels [B, 2]: one negative, uniform over the other task_classes [C] bool.

  Deviation: the paper draws from the batch; its released code draws from the task.
  """
  batch = _as_batch(y, task_classes=task_classes)
  return _one_other(key, batch.y, batch.negatives.astype(jnp.int32))


def one_of_batch(
  key: Array, y: Labels, num_classes: int | None = None
) -> tuple[Array, Array]:
  """Returns labels [B, 2]: one negative, uniform over the batch's distinct labels."""
  batch = _as_batch(y, num_classes=num_classes)
  return _one_other(key, batch.y, _present(batch).astype(jnp.int32))


def one_by_frequency(
  key: Array, y: Labels, num_classes: int | None = None
) -> tuple[Array, Array]:
  """Returns labels [B, 2]: the label of a random row of the batch of another class."""
  batch = _as_batch(y, num_classes=num_classes)
  return _one_other(key, batch.y, _counts(batch))


def all_of_batch(
  key: Array, y: Labels, num_classes: int | None = None
) -> tuple[Array, Array]:
  """Returns labels [B, 1 + C]: every other label of the batch ("All Neg Batch")."""
  del key
  batch = _as_batch(y, num_classes=num_classes)
  return _all_others(batch.y, _present(batch))


def all_seen(
  key: Array, y: Labels, seen: ArrayLike | None = None
) -> tuple[Array, Array]:
  """Returns labels [B, 1 + C]: every other class of seen [C] bool ("All Neg Seen")."""
  del key
  batch = _as_batch(y, seen=seen)
  return _all_others(batch.y, batch.seen)


def all_classes(
  key: Array, y: Labels, num_classes: int | None = None
) -> tuple[Array, Array]:
  """Returns labels [B, 1 + C]: every other class, including those to come."""
  del key
  batch = _as_batch(y, num_classes=num_classes)
  return _all_others(batch.y, jnp.ones_like(batch.seen))


def repaired(key: Array, y: Labels) -> tuple[Array, Array]:
  """Returns labels [B, 2]: the batch's labels in random order, for `joint_pairs`.

  A row may get its own class. In a batch of one class every pair is a true one, and
  all are invalid.
  """
  y = y.y if isinstance(y, Batch) else as_labels(y)
  other = jax.random.permutation(key, y)
  several = jnp.any(y != y[0])
  valid = jnp.stack(
    [jnp.ones_like(other, bool), jnp.full_like(other, several, bool)], 1
  )
  return jnp.stack([y, other], axis=1), valid


def label_and_image(
  key: Array, y: Labels, num_classes: int | None = None
) -> tuple[Array, Array]:
  """Returns labels [B, 3]: one of the batch and the next row's, for `joint_triples`.

  The next row's label makes this row's image that row's other image: of another class.
  """
  batch = _as_batch(y, num_classes=num_classes)
  labels, valid = one_of_batch(key, batch)
  following = jnp.roll(batch.y, -1)
  return (
    jnp.concatenate([labels, following[:, None]], axis=1),
    jnp.concatenate([valid, (following != batch.y)[:, None]], axis=1),
  )


NEGATIVES: dict[str, Callable[[Array, Batch], tuple[Array, Array]]] = {
  "one_of_task": one_of_task,
  "one_of_batch": one_of_batch,
  "one_by_frequency": one_by_frequency,
  "all_of_batch": all_of_batch,
  "all_seen": all_seen,
  "all_classes": all_classes,
  "repaired": repaired,
  "label_and_image": label_and_image,
}


def _as_batch(y: Labels, **classes: Any) -> Batch:
  """Returns the batch that y is, or one of labels y [B] and the classes that count."""
  ((name, value),) = classes.items()
  if not isinstance(y, Batch):
    if value is None:
      raise ValueError(f"labels alone do not tell which classes count: give {name}.")
    return make_batch(None, y, **classes)
  if value is not None:
    raise ValueError(f"a Batch has its own classes: give {name} with labels alone.")
  return y


def _counts(batch: Batch) -> Array:
  """Returns [C]: how many rows of the batch each class has."""
  return jnp.bincount(batch.y, length=batch.seen.shape[0])


def _present(batch: Batch) -> Array:
  return _counts(batch) > 0


def _one_other(key: Array, y: Array, weights: Array) -> tuple[Array, Array]:
  """Returns labels [B, 2] and valid: y, and a class drawn by weights [C], except y.

  One draw a row: r counts through the weights with the true class's share cut out.
  """
  upto = jnp.cumsum(weights)
  own = weights[y]
  others = upto[-1] - own
  r = jax.random.randint(key, y.shape, 0, jnp.maximum(others, 1), dtype=jnp.int32)
  r = r + jnp.where(r >= upto[y] - own, own, 0)
  drawn = jnp.searchsorted(upto, r, side="right").astype(y.dtype)
  drawn = jnp.where(others > 0, jnp.minimum(drawn, weights.shape[0] - 1), y)
  valid = jnp.stack([jnp.ones_like(y, bool), others > 0], axis=1)
  return jnp.stack([y, drawn], axis=1), valid


def _all_others(y: Array, candidates: Array) -> tuple[Array, Array]:
  """Returns labels [B, 1 + C] and valid: y, then the candidates [C] other than y."""
  classes = jnp.arange(candidates.shape[0], dtype=y.dtype)
  rows = jnp.broadcast_to(classes[None, :], (y.shape[0], classes.shape[0]))
  others = candidates[None, :] & (rows != y[:, None])
  labels = jnp.concatenate([y[:, None], jnp.where(others, rows, y[:, None])], axis=1)
  return labels, jnp.concatenate([jnp.ones_like(y, bool)[:, None], others], axis=1)
