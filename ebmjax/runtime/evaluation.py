"""Evaluates R learners on the test sets of tasks, one task at a time."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ebmjax import metrics
from ebmjax.prediction import predict
from ebmjax.runtime.scan import IN_TURN, Compiler, permuted
from ebmjax.types import Evaluation, Learner, PyTree

Counts = dict[str, Array]


def make_prepare(
  learner: Learner, compiler: Compiler = IN_TURN
) -> Callable[[PyTree], PyTree]:
  """Returns prepare(states) -> what `evaluate` takes in their place, for all tasks."""
  if learner.prepare is None:
    return lambda states: states

  def one(state: PyTree, shared: None) -> PyTree:
    del shared
    return learner.ready(state)

  return compiler.compile(one, lambda states: (states, None))


def make_evaluate(
  learner: Learner, block: int, compiler: Compiler = IN_TURN
) -> Callable[..., Counts]:
  """Compiles evaluate(states, tables, images, task, candidates [C]) -> counts [R, ...].

  The test rows of a task are evaluated in blocks of `block`; the energies of all labels
  of a block are one batched call. States from `make_prepare` save time. Besides the
  counts, the result has the values of `each_image`, [R, M'] in the order of the rows.
  """

  def one(seed: Any, shared: Any) -> Counts:
    state, tables = seed
    images, task, candidates = shared
    own = tables.classes[task]

    def body(total: Counts, rows: Array) -> tuple[Counts, Counts]:
      valid, rows = rows >= 0, jnp.maximum(rows, 0)
      tasks = jnp.full_like(rows, task)
      x = compiler.sharding.split(permuted(images.x[rows], tables.permutation, tasks))
      y = tables.labels[tasks, images.y[rows]]
      energies = learner.energies(state, x)
      found = count(energies, y, valid, candidates=candidates, own=own)
      return jax.tree.map(jnp.add, total, found), each_image(energies, y, candidates)

    blocks = tables.test_rows[task].reshape(-1, block)
    total, images_found = lax.scan(body, empty_counts(own.shape[0]), blocks)
    return total | {name: values.ravel() for name, values in images_found.items()}

  return compiler.compile(
    one, lambda states, tables, *shared: ((states, tables), shared)
  )


def count(
  energies: Array, y: Array, valid: Array, *, candidates: Array, own: Array
) -> Counts:
  """Returns what a block adds to the counts.

  energies [B, C], y [B], valid [B], candidates [C] (classes that may be predicted),
  own [C] (the task's classes, for the task-incremental prediction).
  """
  predicted = predict(energies, candidates)
  predicted_own = predict(energies, own)
  true = jax.nn.one_hot(y, energies.shape[1]) * valid[:, None]
  guess = jax.nn.one_hot(predicted, energies.shape[1])
  return {
    "images": jnp.sum(valid, dtype=jnp.int32),
    "correct": jnp.sum(valid & (predicted == y), dtype=jnp.int32),
    "correct_own": jnp.sum(valid & (predicted_own == y), dtype=jnp.int32),
    "confusion": (true.T @ guess).astype(jnp.int32),
    "energy_sum": true.T @ unit_range(energies),
  }


def each_image(energies: Array, y: Array, candidates: Array) -> Counts:
  """Returns, for each image [B], what ranking and calibration need.

  `lowest` is the lowest energy of the candidates [C]. `excess` is `lowest` minus their
  free energy -logsumexp(-E), so that exp(-excess) is the probability of the predicted
  label: a difference that keeps its digits if energies are large. `hit` says whether
  the prediction is y.
  """
  lowest = jnp.min(jnp.where(candidates[None, :], energies, jnp.inf), axis=1)
  above = jnp.where(candidates[None, :], energies - lowest[:, None], jnp.inf)
  excess = jnp.log(jnp.sum(jnp.exp(-above), axis=1))
  hit = predict(energies, candidates) == y
  return {"lowest": lowest, "excess": excess, "hit": hit}


def empty_counts(num_classes: int) -> Counts:
  """Returns the counts of no images."""
  square = (num_classes, num_classes)
  scalars = {name: jnp.int32(0) for name in ("images", "correct", "correct_own")}
  return scalars | {
    "confusion": jnp.zeros(square, jnp.int32),
    "energy_sum": jnp.zeros(square, jnp.float32),
  }


def unit_range(energies: Array) -> Array:
  """Returns energies [B, C] scaled to [0, 1] per image over all labels.

  >>> unit_range(jnp.array([[1.0, 3.0, 2.0]])).tolist()
  [[0.0, 1.0, 0.5]]
  """
  low = jnp.min(energies, axis=1, keepdims=True)
  spread = jnp.max(energies, axis=1, keepdims=True) - low
  return (energies - low) / jnp.where(spread > 0, spread, 1.0)


def collect(
  per_task: dict[int, Counts],
  num_tasks: int,
  scored: Collection[int],
  outside: Collection[int] = (),
) -> Evaluation:
  """Returns the evaluation from the counts of tasks, of which `scored` have been seen.

  The others, evaluated before their training, only have a task-incremental accuracy.
  Images of the tasks `outside` are those that energies should separate from seen ones.
  """
  host = {task: jax.device_get(counts) for task, counts in per_task.items()}
  first = next(iter(host.values()))
  runs, classes = first["confusion"].shape[:2]
  accuracy = np.full((runs, num_tasks), np.nan)
  masked = np.full((runs, num_tasks), np.nan)
  confusion = np.zeros((runs, classes, classes), np.int32)
  energy_sum = np.zeros((runs, classes, classes), np.float64)
  for task, counts in host.items():
    masked[:, task] = counts["correct_own"] / counts["images"]
    if task in scored:
      accuracy[:, task] = counts["correct"] / counts["images"]
      confusion += counts["confusion"]
      energy_sum += counts["energy_sum"]
  images = np.maximum(confusion.sum(axis=2, keepdims=True), 1)
  ranked = [_ranked(host, run, scored, outside) for run in range(runs)]
  return Evaluation(
    accuracy,
    masked,
    confusion,
    (energy_sum / images).astype(np.float32),
    *np.array(ranked, np.float64).T,
  )


def _ranked(
  host: Mapping[int, Any], run: int, scored: Collection[int], outside: Collection[int]
) -> list[float]:
  """Returns a run's AUROC and FPR95, by lowest and by free energy, and calibration."""

  def of_images(name: str, tasks: Collection[int]) -> np.ndarray:
    """Returns a value of each image [N] of tasks; padding follows the images."""
    parts = [host[task][name][run, : host[task]["images"][run]] for task in tasks]
    return np.concatenate(parts).astype(np.float64)

  def energies(tasks: Collection[int]) -> tuple[np.ndarray, np.ndarray]:
    lowest = of_images("lowest", tasks)
    return lowest, lowest - of_images("excess", tasks)

  if not scored:
    return [np.nan] * 5
  sure, hit = np.exp(-of_images("excess", scored)), of_images("hit", scored)
  calibration = metrics.calibration_error(sure, hit)
  if not outside:
    return [*[np.nan] * 4, calibration]
  pairs = list(zip(energies(scored), energies(outside), strict=True))
  found = [rule(*pair) for rule in (metrics.auroc, metrics.fpr95) for pair in pairs]
  return [*found, calibration]
