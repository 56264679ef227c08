"""The documented contracts between the parts of ebmjax.

Shape letters: S steps, B batch, C classes, T tasks, N examples, R runs (seeds),
K candidate labels of a row, L labels of a shared set, F features.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

if TYPE_CHECKING:
  import optax  # importing it takes longer than the losses and negatives alone may

PyTree = Any


class Dataset(NamedTuple):
  """A labelled data set on the host, complete and verified.

  Images are [N, H, W] or [N, H, W, 3], uint8, or float32 from 0 to 1; rows of features
  are [N, F] float32; of generated images only their numbers are stored, [N, 1] uint32.
  """

  name: str  # "mnist"
  source: str  # where the arrays came from, for every output
  full: bool  # False for a part of the set that `name` stands for
  train_x: np.ndarray  # [N, ...]
  train_y: np.ndarray  # [N] int32
  test_x: np.ndarray  # [M, ...]
  test_y: np.ndarray  # [M] int32
  num_classes: int
  class_names: tuple[str, ...] = ()  # by class; (): its number
  range: tuple[float, float] = (0.0, 255.0)  # of pixel values in the user's data
  labels: tuple[int | str, ...] = ()  # the user's label of each class; (): its number

  @property
  def shape(self) -> tuple[int, ...]:
    """Returns the shape of one image or row."""
    return self.train_x.shape[1:]


class Batch(NamedTuple):
  """What a learner sees at one step."""

  x: Array  # [B, ...] uint8, already permuted; the network normalises it
  y: Array  # [B] int32
  task: Array  # [B] int32; -1 where the setting hides the task
  seen: Array  # [C] bool, classes that training may normalise over
  negatives: Array  # [C] bool, classes that may be negatives
  step: Array  # [] int32, from the scan's inputs, never from the state


def make_batch(
  x: ArrayLike | None,
  y: ArrayLike | Sequence[int],
  seen: ArrayLike | None = None,
  *,
  task_classes: ArrayLike | None = None,
  num_classes: int | None = None,
) -> Batch:
  """Returns a batch without a stream: inputs x [B, ...] and their labels y [B].

  `seen` [C] bool marks the classes that training may normalise over, `task_classes` [C]
  bool those that may be negatives. Each mask defaults to the other; without either, all
  of `num_classes` count. x may be None if nothing reads it. Raises ValueError for
  arguments that do not fit together.
  """
  labels = as_labels(y)
  if x is not None:
    x = jnp.asarray(x)
    if x.shape[:1] != labels.shape:
      raise ValueError(f"x has shape {x.shape}, but y has {len(labels)} labels.")
  seen = task_classes if seen is None else seen
  if seen is None and num_classes is None:
    raise ValueError("labels alone do not tell which classes count: give num_classes.")
  seen = jnp.ones(num_classes or 0, bool) if seen is None else _as_mask("seen", seen)
  others = seen if task_classes is None else _as_mask("task_classes", task_classes)
  if seen.shape != others.shape or num_classes not in (None, len(seen)):
    raise ValueError(
      f"seen {seen.shape}, task_classes {others.shape} and num_classes={num_classes} "
      "differ in the number of classes."
    )
  _require_labels_below(len(seen), y)
  task, step = jnp.zeros_like(labels), jnp.int32(0)
  return Batch(x, labels, task, seen, others, step)  # type: ignore[arg-type]


def as_labels(y: ArrayLike | Sequence[int]) -> Array:
  """Returns y as [B] int32; raises ValueError if it is not a row of integers."""
  y = jnp.asarray(y)
  if y.ndim != 1 or not jnp.issubdtype(y.dtype, jnp.integer):
    raise ValueError(f"labels must be integers [B], not {y.dtype}{list(y.shape)}.")
  return y.astype(jnp.int32)


def _as_mask(name: str, mask: ArrayLike) -> Array:
  mask = jnp.asarray(mask)
  if mask.ndim != 1 or mask.dtype != bool:
    raise ValueError(
      f"{name} must be a mask [C] of booleans, not {mask.dtype}{list(mask.shape)}: of "
      "class numbers, jnp.isin(jnp.arange(C), numbers) makes one."
    )
  return mask


def _require_labels_below(num_classes: int, y: ArrayLike | Sequence[int]) -> None:
  """Raises ValueError if labels are out of range; traced ones cannot be checked."""
  try:
    values = np.asarray(y)  # jnp.asarray would trace it
  except jax.errors.TracerArrayConversionError:
    return
  if len(values) and not 0 <= values.min() <= values.max() < num_classes:
    raise ValueError(
      f"labels from {values.min()} to {values.max()} do not fit {num_classes} classes: "
      f"give 0 to {num_classes - 1}."
    )


class TaskView(NamedTuple):
  """What a learner sees of a finished task at a boundary."""

  x: Array  # [N, ...] uint8, the shared training images
  y: Array  # [N] int32, their labels in this task
  permutation: Array  # [P] int32, the task's order of pixels; empty where unpermuted
  rows: Array  # [M] int32, rows of this task, padded
  valid: Array  # [M] bool, which of them count
  task: Array  # [] int32
  seen: Array  # [C] bool, as in the batches: this task's classes, and those before it


class Network(NamedTuple):
  """An energy network as pure functions.

  `energies` takes labels [B, K], candidates of each row, and returns [B, K]; or labels
  [L], one set for the whole batch, and returns [B, L]. Lower is better.
  """

  init: Callable[[Array], tuple[PyTree, PyTree]]  # (key) -> (params, model_state)
  energies: Callable[
    ..., tuple[Array, PyTree]
  ]  # (params, model_state, x, labels, train)
  features: Callable[[PyTree, PyTree, Array], Array]  # -> [B, F]
  num_classes: int
  # (params, model_state, x, y [B]) -> energies [B, O] of all labels of the task that y
  # belongs to; None for a network without tasks
  task_energies: Callable[[PyTree, PyTree, Array, Array], Array] | None = None


def unchanged(key: Array, x: Array) -> Array:
  """Returns x: no augmentation."""
  del key
  return x


class Problem(NamedTuple):
  """What a method is built over."""

  network: Network
  objective: Any  # an objectives.Objective
  tx: "optax.GradientTransformation"
  row: jax.ShapeDtypeStruct  # one input as batches hold it
  num_tasks: int
  # (key, x [B, ...]) -> x, the augmentation that batches have gone through
  augment: Callable[[Array, Array], Array] = unchanged


class Learner(NamedTuple):
  """A continual learner as pure functions of its state.

  A step's metrics hold its "loss" []. If the state has a field `params`, the numbers in
  it are counted as the network's parameters.
  """

  init: Callable[[Array], PyTree]  # (key) -> state
  step: Callable[[PyTree, Array, Batch], tuple[PyTree, dict[str, Array]]]
  # At a boundary; None for a method that does nothing there.
  consolidate: Callable[[PyTree, Array, TaskView], PyTree] | None
  energies: Callable[[PyTree, Array], Array]  # (state, x) -> [B, C], lower is better
  # (state) -> what `energies` takes in its place, computed once for many blocks of
  # images; None where that would be the state itself.
  prepare: Callable[[PyTree], PyTree] | None = None

  @property
  def consolidates(self) -> bool:
    """Returns whether the end of a task changes the state."""
    return self.consolidate is not None

  def end_task(self, state: PyTree, key: Array, view: TaskView) -> PyTree:
    """Returns the consolidated state, or the state itself without `consolidate`."""
    return state if self.consolidate is None else self.consolidate(state, key, view)

  def ready(self, state: PyTree) -> PyTree:
    """Returns the prepared state, or the state itself without `prepare`."""
    return state if self.prepare is None else self.prepare(state)

  def wrapped(
    self, wrap: Callable[[Callable[..., Any]], Callable[..., Any]], skip: str = ""
  ) -> "Learner":
    """Returns the learner with `wrap` applied to each function but `skip`."""
    functions = self._asdict().items()
    return self._replace(**{n: wrap(f) for n, f in functions if f and n != skip})


def trace_once(learner: Learner) -> Learner:
  """Traces a learner's functions once, for all programs that contain them.

  Tracing takes most of the time before the first step of a small run. The functions
  remain parts of their callers' programs and are not compiled separately.
  """

  return learner.wrapped(partial(jax.jit, inline=True))


class Evaluation(NamedTuple):
  """The result of evaluating R runs on the whole test set.

  Entries of tasks that were not evaluated are NaN (accuracies) or 0 (counts, sums). See
  `metrics` for what is defined when.
  """

  accuracy: np.ndarray  # [R, T] float64, candidates: all classes seen so far
  masked_accuracy: np.ndarray  # [R, T] float64, candidates: the classes of the task
  confusion: np.ndarray  # [R, C, C] int32, row: true class, column: predicted
  # [R, C, C] float32: the energy of a label (column), scaled for each image to [0, 1]
  # over all labels, seen or not; its mean over the images of a class (row)
  energies: np.ndarray
  # [R] float64 each, NaN where undefined: how well an energy separates images of seen
  # tasks from images of later tasks, whose classes may not be predicted
  auroc_lowest: np.ndarray  # by the lowest energy of the classes seen
  auroc_free: np.ndarray  # by their free energy, -logsumexp(-E)
  fpr95_lowest: np.ndarray
  fpr95_free: np.ndarray
  calibration_error: np.ndarray  # [R] float64, of softmax(-E) over the classes seen


# Fields [R]. Added in a later file version; absent from older records.
RANKING = Evaluation._fields[4:]


def num_params(tree: PyTree) -> int:
  """Returns how many numbers a tree of arrays holds."""
  return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(tree))
