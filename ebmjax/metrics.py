"""Continual-learning metrics of a matrix of accuracies, in NumPy alone.

A matrix [R, T, T] holds, for each run, the accuracy on task j (column) after finishing
task i (row), as a fraction, and NaN where nothing was evaluated. A metric that needs an
entry that is missing is NaN for that run, not a mean over the rest.

One run of two tasks; the first dropped from 90 to 60 % while the second was learned:

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
  """Returns [R], how far tasks dropped from their best earlier accuracy.

  Equal to 1/(T-1) sum_{j<T} (max_{i<T} R[i, j] - R[T, j]); NaN for a single task.
  A task need not have been evaluated before it was learned.
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
  """Returns [R], by how much earlier tasks raise the accuracy on the next one.

  Equal to 1/(T-1) sum_{j>1} (R[j-1, j] - b[j]), with b = `untrained` [R, T], the
  accuracy before any training; NaN for a single task. It takes the matrix whose
  candidates are the task's own classes: an unseen task always scores 0 in the other.
  """
  if masked_matrix.shape[-1] < 2:
    return _undefined(masked_matrix)
  ahead = np.diagonal(masked_matrix, offset=1, axis1=1, axis2=2)
  return (ahead - untrained[:, 1:]).mean(axis=-1)


def min_accuracy(accuracy: np.ndarray, learned: np.ndarray) -> np.ndarray:
  """Returns [R], the mean over all tasks but the last of their worst accuracy.

  Equal to 1/(T-1) sum_{j<T} min_{e: learned[e, j]} A[e, j] (min-ACC, De Lange et al.
  2023), with A = `accuracy` [E, R, T] of E evaluations, of which those in
  `learned` [E, T] were made after the end of a task. NaN for a single task.
  """
  if accuracy.shape[-1] < 2:
    return np.full(accuracy.shape[1], np.nan)
  lowest = np.where(learned[:, None, :], accuracy, np.inf).min(axis=0)
  return lowest[:, :-1].mean(axis=-1)


def worst_case_accuracy(accuracy: np.ndarray, learned: np.ndarray) -> np.ndarray:
  """Returns [R], how well a run does at its worst (WC-ACC, De Lange et al. 2023).

  Equal to 1/T A[E, T] + (1 - 1/T) min-ACC, of the arguments of `min_accuracy`: the last
  task as it ends, the others at their lowest since they were learned.
  """
  share = 1 / accuracy.shape[-1]
  worst = min_accuracy(accuracy, learned)
  return share * accuracy[-1, :, -1] + (1 - share) * worst


def acceptance_limit(inside: np.ndarray, share: float = 0.95) -> float:
  """Returns the lowest of energies [N] that at least `share` of them do not exceed.

  >>> acceptance_limit(np.arange(1, 101), 0.95)
  95.0
  """
  return float(np.quantile(inside, share, method="inverted_cdf"))


def auroc(inside: np.ndarray, outside: np.ndarray) -> float:
  """Returns the probability that an outside energy is higher than an inside one.

  Equal to 1/(N M) sum_{n,m} ([o_m > i_n] + [o_m = i_n] / 2), the area under the ROC
  curve, of inside energies i [N] and outside ones o [M].
  """
  inside = np.sort(inside)
  below = np.searchsorted(inside, outside, side="left")
  upto = np.searchsorted(inside, outside, side="right")
  return float((below + upto).mean() / (2 * len(inside)))


def fpr95(inside: np.ndarray, outside: np.ndarray) -> float:
  """Returns the share of outside energies [M] that are accepted as inside ones.

  Equal to 1/M sum_m [o_m <= l], where l is the lowest limit that accepts at least 95 %
  of the inside energies [N].
  """
  return float(np.mean(outside <= acceptance_limit(inside)))


def calibration_error(
  confidence: np.ndarray, correct: np.ndarray, bins: int = 15
) -> float:
  """Returns the expected calibration error (Guo et al. 2017) of N predictions.

  Equal to sum_b n_b / N abs(acc_b - conf_b), over bins ((b-1)/bins, b/bins] of the
  confidence [N], with n_b predictions in bin b, a share acc_b of them `correct` [N],
  and a mean confidence conf_b.
  """
  place = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
  gaps = np.bincount(place, weights=correct - confidence, minlength=bins)
  return float(np.abs(gaps).sum() / len(confidence))


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
