"""A learner that takes rows as they come, by the compiled functions of the runner.

The number of classes and of tasks is not known beforehand: there is room for some, and
twice as many when it is full, at the cost of one compilation.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict, FrozenConfigDict

from ebmjax.errors import ConfigError, DivergenceError
from ebmjax.models.form import InputForm, learner_of
from ebmjax.models.model import Compiled, compiler_options, filled, power_of_two
from ebmjax.networks.growth import grow
from ebmjax.runtime import environment, scan
from ebmjax.runtime.trainer import batch_view
from ebmjax.types import Learner, Problem, PyTree

_STEPS = 32  # of one compiled call, where a call brings that many batches
_LATE = 8  # steps that are under way when earlier ones are waited for


class OnlineLearner:
  """The state of a learner, which rows are added to. Labels are numbers from 0 on."""

  def __init__(
    self, config: ConfigDict, form: InputForm, *, classes: int, tasks: int
  ) -> None:
    environment.require_usual()
    self.config, self._form = config, form
    self.classes = np.zeros((tasks, classes), bool)  # [T, C] seen, by task
    self.task = self.step = 0
    self._batch = int(config.stream.batch_size)
    self._unchecked: list[Any] = []  # losses, of the earliest call first
    self._compile()
    self.states: PyTree = self._programs.init(self._programs.tables.key)
    # Rows of this task, for methods that look back at it when it ends.
    self.kept: list[tuple[np.ndarray, np.ndarray]] = []

  def _compile(self) -> None:
    config = FrozenConfigDict(self.config)
    self._programs = _programs(config, self._form, self.classes.shape)

  @property
  def problem(self) -> Problem:
    """Returns what the method is built over."""
    return self._programs.problem

  @property
  def compiled(self) -> Compiled:
    """Returns the compiled functions that predict."""
    return self._programs.compiled

  @property
  def looks_back(self) -> bool:
    """Returns whether the end of a task means anything to the method."""
    consolidates = self._programs.learner.consolidates
    return consolidates and not batch_view(self.config).hides_task

  def learn(self, x: np.ndarray, y: np.ndarray) -> None:
    """Takes one pass over x [N, ...], as batches hold inputs, of labels y [N]."""
    self.classes[self.task, y] = True
    x = np.array(x)  # steps under way read it: its owner may write to it again
    if self.looks_back:
      self.kept.append((x, y))
    tables = self._tables()
    for start, steps, size in _pieces(len(y), self._batch):
      rows = slice(start, start + steps * size)
      batches = _images(x[rows], y[rows].reshape(steps, size))
      place = np.array([self.task, self.step], np.int32)
      self.states, metrics = self._programs.train(self.states, tables, batches, place)
      self.step += steps
      self._unchecked.append(metrics["loss"])
      spared = max(1, _LATE // steps)
      if len(self._unchecked) >= 2 * spared:
        self.require_finite(spared)

  def require_finite(self, spared: int = 0) -> None:
    """Raises where a loss was not finite, except in the last calls, `spared` many."""
    losses = self._unchecked[: len(self._unchecked) - spared]
    # From the last one on: once it is there, so are the others.
    if not all(np.isfinite(loss).all() for loss in reversed(losses)):
      raise DivergenceError(
        f"the loss is not finite after step {self.step}: start from a saved model, and "
        "lower the learning rate (settings={'optimiser.learning_rate': ...}) or scale "
        "the inputs."
      )
    del self._unchecked[: len(losses)]

  @property
  def begun(self) -> bool:
    """Returns whether rows were learned since the last task ended."""
    return self.task < len(self.classes) and bool(self.classes[self.task].any())

  def end_task(self) -> None:
    """Consolidates what was learned since the last call, where the method does so."""
    if not self.begun:
      return
    if self.looks_back:
      x, y = (np.concatenate(parts) for parts in zip(*self.kept, strict=True))
      size = power_of_two(len(y))  # one program for tasks of about the same size
      rows: Any = np.full((1, len(self.classes), size), -1, np.int32)
      rows[:, self.task, : len(y)] = np.arange(len(y))
      images = _images(filled(x, size), filled(y, size))
      tables = self._tables()._replace(train_rows=rows)
      task = np.int32(self.task)
      self.states = self._programs.consolidate(self.states, tables, images, task)
      self.kept.clear()
    self.task += 1

  def make_room(self, *, tasks: int, classes: int) -> None:
    """Grows where there is less room; raises ConfigError before anything changes."""
    wanted = (tasks, classes)
    room = tuple(
      have if need <= have else power_of_two(need)
      for need, have in zip(wanted, self.classes.shape, strict=True)
    )
    if room != self.classes.shape:
      self._grow(*room)

  def _grow(self, tasks: int, classes: int) -> None:
    """Takes a learner of more tasks and classes; what was learned stays as it is."""
    old, seen, probe = self.states, self.classes, _probe(self.problem.row)
    before = self._energies(probe)
    more = [(0, tasks - seen.shape[0]), (0, classes - seen.shape[1])]
    self.classes = np.pad(seen, more)
    self._compile()
    fresh = self._programs.init(self._programs.tables.key)
    try:
      first_old, first_fresh = jax.tree.map(lambda leaf: leaf[0], (old, fresh))
      grown = grow(first_old, first_fresh)
      self.states = jax.tree.map(lambda leaf: leaf[None], grown)
      after = self._energies(probe)[:, :, : seen.shape[1]]
      same = np.allclose(before, after, rtol=1e-4, atol=1e-5)
    except ValueError:
      same = False
    if not same:
      self.states, self.classes = old, seen
      self._compile()
      raise ConfigError(
        f"{self.config.method.name} cannot grow beyond {seen.shape[1]} classes and "
        f"{seen.shape[0]} tasks: announce all classes in the first call (classes=...), "
        "and the tasks by settings={'stream.tasks': ...}."
      )

  def _energies(self, x: np.ndarray) -> np.ndarray:
    return self.compiled.energies(self.compiled.prepare(self.states), x)

  def _tables(self) -> scan.SeedTables:
    classes: Any = self.classes[None].copy()  # steps under way read it
    return self._programs.tables._replace(classes=classes)


class _Programs(NamedTuple):
  """A learner with room for some classes and tasks, and its compiled functions."""

  problem: Problem
  learner: Learner
  tables: scan.SeedTables  # on the device; no class is seen yet
  compiled: Compiled
  init: Callable[..., PyTree]
  train: Callable[..., tuple[PyTree, dict[str, jax.Array]]]
  consolidate: Callable[..., PyTree]


# Estimators of the same parameters, as in a cross-validation, share their programs.
@functools.lru_cache(maxsize=16)
def _programs(
  config: FrozenConfigDict, form: InputForm, shape: tuple[int, ...]
) -> _Programs:
  """Builds the learner for [T, C] tasks and classes, any of which may come any time."""
  key = jax.random.key(config.seed)[None]
  problem, learner, shown = learner_of(config, form, np.ones(shape, bool), key)
  labels = jnp.tile(jnp.arange(shape[1]), (1, shape[0], 1))
  none = jnp.zeros((1, shape[0], 0), jnp.int32)
  tables = scan.SeedTables(key, labels, none, jnp.zeros((1, *shape), bool), none, none)
  options, view = compiler_options(config), batch_view(config)
  compiler = scan.Compiler(options=options)
  return _Programs(
    problem,
    learner,
    tables,
    Compiled(learner, shown, options),
    scan.make_init(learner),
    scan.make_train(learner, view, compiler, _of_batches),
    scan.make_consolidate(learner, view, compiler),
  )


def _of_batches(
  states: PyTree, tables: scan.SeedTables, batches: scan.Images, place: jax.Array
) -> tuple[Any, Any]:
  """Returns what a run of steps takes, of batches x [S * B, ...] and y [S, B].

  All are of one task; place [2] is its number and that of the first step.
  """
  (task, first), (steps, size) = place, batches.y.shape
  chunk: tuple[Any, ...] = (
    jnp.arange(steps * size).reshape(1, steps, size),
    jnp.full((1, steps, size), task),
    jnp.full((1, steps), task),
    first + jnp.arange(steps),
    # Always true, but no constant: without a branch XLA copies the states in each step.
    jnp.full(steps, first >= 0),
  )
  images = scan.Images(batches.x, batches.y.reshape(-1))
  return scan.of_chunk(states, tables, images, scan.Chunk(*chunk))


def _images(x: Any, y: Any) -> scan.Images:
  return scan.Images(x, y)  # on the host: the compiled call takes them over


def _probe(row: jax.ShapeDtypeStruct) -> Any:
  """Returns [4, ...]: some inputs, always the same."""
  rng, shape = np.random.default_rng(0), (4, *row.shape)
  values = rng.integers(0, 256, shape) if row.dtype == np.uint8 else rng.random(shape)
  return values.astype(row.dtype)


def _pieces(count: int, batch: int) -> Iterator[tuple[int, int, int]]:
  """Yields (start, steps, rows of a step) that cover `count` rows once, in order.

  Whole batches first, many of them in one call; then what is left, in powers of two:
  few programs serve calls of any size.

  >>> list(_pieces(13, 5))
  [(0, 1, 5), (5, 1, 5), (10, 1, 2), (12, 1, 1)]
  """
  start = 0
  while count - start >= _STEPS * batch:
    yield start, _STEPS, batch
    start += _STEPS * batch
  while start < count:
    left = count - start
    size = batch if left >= batch else 1 << (left.bit_length() - 1)
    yield start, 1, size
    start += size
