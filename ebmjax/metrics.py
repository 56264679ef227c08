"""Continual-learning metrics of a matrix of accuracies, in NumPy alone.

A matrix [R, T, T] holds, for each run, the accuracy on task j (column) after finishing
task i (row), as a fraction, and NaN where nothing was evaluated. A metric that needs an
entry which is missing is NaN for that run: never a mean over whatever is left.

Two tasks, one run; the first task fell from 90 to 60 % while the second was learned:

>>> import numpy as np
>>> from ebmjax import metrics
>>> matrix = np.array([[[0.9, np.nan], [0.6, 0.8]]])
>>> metrics.average_accuracy(matrix).round(4), metrics.forgetting(matrix).round(4)
(array([0.7]), array([0.3]))
>>> metrics.mean_sem(np.array([0.25, 0.75]))
Summary(mean=0.5, sem=0.25, n=2)
"""

from typing import NamedTuple

import numpy as np


class Summary(NamedTuple):
  """A mean over runs and how well it is known."""

  mean: float
  sem: float | None  # None where a single run leaves it undefined
  n: int


def average_accuracy(matrix: np.ndarray) -> np.ndarray:
  """Returns [R], the unweighted mean over tasks of the last row of `matrix` [R, T, T].

  Equal to A_T = 1/T sum_j R[T, j].
  """
  return matrix[:, -1].mean(axis=-1)


def average_incremental_accuracy(matrix: np.ndarray) -> np.ndarray:
  """Returns [R], the mean over tasks i of the mean accuracy on the tasks up to i.

  Equal to 1/T sum_i 1/i sum_{j<=i} R[i, j].
  """
  tasks = matrix.shape[-1]
  so_far = np.where(np.tri(tasks, dtype=bool), matrix, 0).sum(axis=-1)
  return (so_far / np.arange(1, tasks + 1)).mean(axis=-1)


def learning_accuracy(matrix: np.ndarray) -> np.ndarray:
  """Returns [R], the mean accuracy on a task right after it was learned.

  Equal to 1/T sum_j R[j, j].
  """
  return np.diagonal(matrix, axis1=1, axis2=2).mean(axis=-1)


def forgetting(matrix: np.ndarray) -> np.ndarray:
  """Returns [R], how far tasks fell from their best earlier accuracy.

  Equal to 1/(T-1) sum_{j<T} (max_{i<T} R[i, j] - R[T, j]); NaN for a single task.
  Before a task was learned it need not have been evaluated.
  """
  if matrix.shape[-1] < 2:
    return _undefined(matrix)
  earlier = matrix[:, :-1, :-1]
  ahead = np.triu(np.ones(earlier.shape[1:], bool), k=1)
  best = np.where(ahead & np.isnan(earlier), -np.inf, earlier).max(axis=1)
  return (best - matrix[:, -1, :-1]).mean(axis=-1)


def backward_transfer(matrix: np.ndarray) -> np.ndarray:
  """Returns [R], the change of each task since it was learned.

  Equal to 1/(T-1) sum_{j<T} (R[T, j] - R[j, j]); NaN for a single task.
  """
  if matrix.shape[-1] < 2:
    return _undefined(matrix)
  learned = np.diagonal(matrix, axis1=1, axis2=2)
  return (matrix[:, -1] - learned)[:, :-1].mean(axis=-1)


def forward_transfer(masked_matrix: np.ndarray, untrained: np.ndarray) -> np.ndarray:
  """Returns [R], what the tasks before it gave a task that is yet to be learned.

  Equal to 1/(T-1) sum_{j>1} (R[j-1, j] - b[j]), with b = `untrained` [R, T], the
  accuracy before any training; NaN for a single task. It takes the matrix whose
  candidates are the task's own classes: an unseen task always scores 0 in the other.
  """
  if masked_matrix.shape[-1] < 2:
    return _undefined(masked_matrix)
  ahead = np.diagonal(masked_matrix, offset=1, axis1=1, axis2=2)
  return (ahead - untrained[:, 1:]).mean(axis=-1)


def standard_error(values: np.ndarray, axis: int = -1) -> np.ndarray | None:
  """Returns s / sqrt(R) of values along the axis of R runs, None for a single one.

  s is the sample standard deviation (R - 1 in the denominator).
  """
  count = values.shape[axis]
  return values.std(axis=axis, ddof=1) / np.sqrt(count) if count > 1 else None


def mean_sem(values: np.ndarray) -> Summary:
  """Returns the mean of `values` [R] and its standard error."""
  values = np.asarray(values, dtype=np.float64)
  count = values.size
  if count == 0:
    raise ValueError("mean_sem needs at least one value; received none")
  sem = standard_error(values)
  return Summary(float(values.mean()), None if sem is None else float(sem), count)


def predicted_label_share(confusion: np.ndarray) -> np.ndarray:
  """Returns [..., C], the share of all predictions that fell on each label.

  `confusion` [..., C, C] counts true classes (rows) by predicted labels (columns);
  where it counts nothing the shares are 0.
  """
  predicted = confusion.sum(axis=-2)
  total = predicted.sum(axis=-1, keepdims=True)
  return predicted / np.maximum(total, 1)


def normalise_rows(confusion: np.ndarray) -> np.ndarray:
  """Returns [..., C, C], each row of `confusion` [..., C, C] over its sum.

  A row that counts nothing stays 0.
  """
  total = confusion.sum(axis=-1, keepdims=True)
  return confusion / np.maximum(total, 1)


def _undefined(matrix: np.ndarray) -> np.ndarray:
  return np.full(matrix.shape[0], np.nan)
