"""A trained learner that answers for raw inputs: labels, energies, probabilities."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from ml_collections import ConfigDict

from ebmjax import networks
from ebmjax.errors import DataError
from ebmjax.models.form import InputForm, Label, Shown
from ebmjax.models.rejection import is_outside, require_share, without
from ebmjax.runtime import evaluation
from ebmjax.runtime.scan import Compiler, CompilerOptions
from ebmjax.types import Learner, Network, PyTree

_BLOCK = 1024


class Compiled:
  """The functions of a learner that predict, for states [R, ...] and inputs [N, ...].

  N may be any number: inputs are padded to a power of two, at most `_BLOCK`, so that
  few programs serve all sizes.
  """

  def __init__(self, learner: Learner, shown: Shown, options: CompilerOptions) -> None:
    self._learner, self.shown = learner, shown
    self.prepare = evaluation.make_prepare(learner, Compiler(options=options))
    self._energies = jax.jit(self.traced, compiler_options=options)

  def traced(self, ready: PyTree, x: Array) -> Array:
    """Returns [R, N, C] of prepared states and x [N, ...], for programs around it."""
    return lax.map(lambda one: self._learner.energies(one, x), ready)

  def energies(self, ready: PyTree, x: np.ndarray) -> np.ndarray:
    """Returns [R, N, C] of prepared states and x [N, ...]."""
    return in_blocks(lambda block: self._energies(ready, block), x)


def in_blocks(function: Callable[[np.ndarray], Array], x: np.ndarray) -> np.ndarray:
  """Returns function(x), [R, N, ...] of x [N, ...], computed in padded blocks."""
  blocks = [x[start : start + _BLOCK] for start in range(0, len(x), _BLOCK)]
  blocks[-1] = filled(blocks[-1], power_of_two(len(blocks[-1])))
  parts = [function(block) for block in blocks]  # not waited for: blocks overlap
  return np.concatenate(parts, axis=1)[:, : len(x)]


def filled(values: np.ndarray, size: int) -> np.ndarray:
  """Returns values [N, ...] with zeros at their end, [size, ...]."""
  none = np.zeros((size - len(values), *values.shape[1:]), values.dtype)
  return np.concatenate([values, none])


def power_of_two(number: int) -> int:
  """Returns the least power of two that is not below `number`."""
  return 1 << max(number - 1, 0).bit_length()


class Outputs(NamedTuple):
  """What the outputs of R trained networks stand for."""

  classes: np.ndarray  # [K] the labels that may be predicted, sorted
  columns: np.ndarray  # [R, K] int: where each seed's energies hold them
  # [R, T, P] int32: the order of pixels that each task shows; None where they stay
  permutation: np.ndarray | None = None


def make_outputs(
  labels: Sequence[Sequence[Label]], permutation: np.ndarray | None = None
) -> Outputs:
  """Returns the outputs of R networks, whose columns have these labels [R][C]."""
  classes, first = np.unique(np.array(labels[0]), return_index=True)
  if all(list(seed) == list(labels[0]) for seed in labels):
    columns = np.tile(first, (len(labels), 1))
  else:  # a class order drawn for each seed
    columns = np.stack([np.unique(np.array(s), return_index=True)[1] for s in labels])
  return Outputs(classes, columns, permutation)


class Model:
  """A trained energy model, or an ensemble over several seeds.

  Inputs are images or rows in the form of the training data; the range of values and
  the normalisation are part of the model. An ensemble averages the energies of its
  members.
  """

  def __init__(
    self,
    config: ConfigDict,
    form: InputForm,
    parts: tuple[Network, Compiled],
    states: PyTree,
    outputs: Outputs,
    known: Callable[[], np.ndarray],
  ) -> None:
    """`known` returns stored training inputs, to know which energies are usual."""
    self._known = known
    self.config, self.form, self.outputs = config, form, outputs
    self._network, self._compiled = parts
    self._states, self._ready = states, self._compiled.prepare(states)

  @property
  def classes(self) -> np.ndarray:
    """Returns the labels [K] that can be predicted, in the order of all outputs."""
    return self.outputs.classes

  def energies(self, x: Any, *, task: int | None = None) -> np.ndarray:
    """Returns energies [N, K] of inputs x [N, ...] for each of `classes`.

    `task` is only for runs that permute pixels: the task whose order of pixels x has.
    """
    return self._energies(self.form.accept(x), task)

  def _energies(self, stored: np.ndarray, task: int | None) -> np.ndarray:
    """Returns energies [N, K] of inputs [N, ...] in the form they are stored in."""
    found = self._compiled.energies(self._ready, self._shown(stored, task))
    energies = np.asarray(self._mean_over_seeds(found, np))
    if not np.isfinite(energies).all():
      raise DataError(
        "the model's energies are not finite for this x: check its values."
      )
    return energies

  def predict(
    self, x: Any, reject: float | None = None, *, task: int | None = None
  ) -> np.ndarray:
    """Returns the label [N] of lowest energy for each of x [N, ...].

    `reject`, a share such as 0.95, rejects inputs with a higher energy than this share
    of the training inputs: their label is -1, or None if labels are strings.
    """
    energies = self.energies(x, task=task)
    labels = self.classes[np.argmin(energies, axis=1)]
    if reject is None:
      return labels
    require_share(reject)  # before the training inputs are looked for
    usual = self._energies(self._known(), task)
    return without(labels, is_outside(energies, usual, reject))

  def predict_proba(self, x: Any, *, task: int | None = None) -> np.ndarray:
    """Returns [N, K]: the softmax of the negated energies."""
    return probabilities(self.energies(x, task=task))

  def features(self, x: Any, *, task: int | None = None) -> np.ndarray:
    """Returns the features [N, F] of x, of an ensemble those of its first member."""
    params, model_state = network_variables(self._states)
    compute = jax.jit(self._network.features)
    first = jax.tree.map(lambda leaf: leaf[0], (params, model_state))
    shown = self._shown(self.form.accept(x), task)
    return in_blocks(lambda block: compute(*first, block)[None], shown)[0]

  def function(self, *, task: int | None = None) -> Callable[[Array], Array]:
    """Returns f(x [N, ...] float32) -> energies [N, K], for JAX to trace or export."""
    order = self._order(task)

    def energies(x: Array) -> Array:
      shown = self.form.traced(self.config, x)
      shown = shown if order is None else shown[:, order]
      found = self._compiled.traced(self._ready, shown)
      return jnp.asarray(self._mean_over_seeds(found, jnp))

    return energies

  def _mean_over_seeds(self, found: Any, numpy: Any) -> Any:
    """Returns energies [N, K] of those of all outputs, [R, N, C]."""
    pairs = zip(found, self.outputs.columns, strict=True)
    return numpy.stack([seed[:, columns] for seed, columns in pairs]).mean(axis=0)

  def _shown(self, stored: np.ndarray, task: int | None) -> np.ndarray:
    """Returns inputs as batches held them, of those in the form they are stored in."""
    order = self._order(task)
    shown = self._compiled.shown(stored)
    return shown if order is None else shown[:, order]

  def _order(self, task: int | None) -> np.ndarray | None:
    """Returns the order [P] in which a task shows pixels; None where they stay."""
    orders = self.outputs.permutation
    if orders is None:
      if task is not None:
        raise DataError("task is for runs that permute pixels: leave it out.")
      return None
    if task is None or not 0 <= task < len(orders[0]):
      raise DataError(
        f"this run permutes pixels: give task, from 0 to {len(orders[0]) - 1}, to say "
        "in which task's order x is to be shown."
      )
    if len({order[task].tobytes() for order in orders}) > 1:
      raise DataError(
        "the seeds of this run permute pixels differently: load one of them."
      )
    found: np.ndarray = orders[0, task]
    return found


def probabilities(energies: np.ndarray) -> np.ndarray:
  """Returns the softmax [N, K] of the negated energies [N, K].

  >>> probabilities(np.array([[1.0, 1.0]])).tolist()
  [[0.5, 0.5]]
  """
  return np.asarray(jax.nn.softmax(-jnp.asarray(energies), axis=1))


def network_variables(state: PyTree) -> tuple[PyTree, PyTree]:
  """Returns a state's parameters of the network, and its other variables."""
  solver: Any = getattr(state, "solver", state)
  if hasattr(solver, "frozen"):
    params, model_state = solver.frozen
    return params, model_state
  return solver.params, solver.model_state


def compiler_options(config: ConfigDict) -> CompilerOptions:
  """Returns the options with which the network of a configuration is compiled."""
  return networks.find(config.network.name).compiler_options(config.network)
