"""Several settings in one compiled program: numbers that differ from run to run.

Runs that only differ in keys marked `Traced` can be trained together: each is a block
of seeds, and the number of its setting, kept beside the learner's state, selects its
values.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from ml_collections import ConfigDict

from ebmjax.config import flat_keys
from ebmjax.config.groups import keys_of
from ebmjax.types import Batch, Learner, PyTree

Values = Mapping[str, Any]  # dotted key -> float64 [P], or a `Value`


Operation = Callable[[Any, Any], Any]


def _both_ways(operate: Operation) -> tuple[Operation, Operation]:
  """Returns the methods of `value o other` and of `other o value`."""

  def forward(self: "Value", other: Any) -> Any:
    return self.combine(operate, other)

  def backward(self: "Value", other: Any) -> Any:
    if operate is operator.truediv and isinstance(other, Array):
      return other * self.reciprocal()
    return self.combine(lambda mine, other: operate(other, mine), other)

  return forward, backward


class Value:
  """A number with a value for each of P settings, of which `point` [] chooses one.

  Arithmetic with Python numbers is done on the host in double precision, as with the
  single value of a run alone, so that both round alike.
  """

  __hash__ = None  # type: ignore[assignment]

  def __init__(self, values: np.ndarray, point: Array) -> None:
    self._values, self._point = values, point

  def combine(self, operate: Operation, other: Any) -> Any:
    """Returns operate(self, other), on the host unless `other` is an array."""
    if isinstance(other, int | float):
      return Value(operate(self._values, other), self._point)
    if isinstance(other, Value):  # of the same settings
      return Value(operate(self._values, other._values), self._point)
    return operate(jnp.asarray(self._values, jnp.float32)[self._point], other)

  def reciprocal(self) -> "Value":
    """Returns 1 / value as XLA has it when it divides by a constant."""
    return Value(np.float32(1) / self._values.astype(np.float32), self._point)

  def __eq__(self, *other: object) -> bool:
    raise TypeError("a key that is marked as traced cannot be compared")

  __bool__ = __float__ = __int__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__

  __add__, __radd__ = _both_ways(operator.add)
  __sub__, __rsub__ = _both_ways(operator.sub)
  __mul__, __rmul__ = _both_ways(operator.mul)
  __truediv__, __rtruediv__ = _both_ways(operator.truediv)
  __pow__, __rpow__ = _both_ways(operator.pow)

  def __neg__(self) -> "Value":
    return Value(-self._values, self._point)


class Varied(NamedTuple):
  """The state of one seed of one setting."""

  point: Array  # [] int32, the number of the setting
  state: PyTree


def values_of(configs: Sequence[ConfigDict]) -> dict[str, np.ndarray]:
  """Returns the values [P] of the keys in which the configurations differ.

  Raises ValueError where such a key is not marked as traced.
  """
  flat = [flat_keys(config) for config in configs]
  keys = keys_of({k: v for k, v in flat[0].items() if not k.startswith("version.")})
  found = {}
  for key in flat[0]:
    values = [each[key] for each in flat]
    if any(value != values[0] for value in values):
      if not keys[key].traced:
        raise ValueError(f"config.{key} is not marked as traced: {values}")
      found[key] = np.asarray(values, np.float64)
  return found


def learner_of(make: Callable[[Values], Learner], values: Values) -> Learner:
  """Returns the learner of all settings; `make` builds that of one.

  Its `init` also takes the number of the setting, and its states are `Varied`.
  """

  def at(point: Array) -> Learner:
    return make({key: Value(column, point) for key, column in values.items()})

  def init(key: Array, point: Array) -> Varied:
    return Varied(point, at(point).init(key))

  def step(varied: Varied, key: Array, batch: Batch) -> tuple[Varied, dict[str, Array]]:
    state, metrics = at(varied.point).step(varied.state, key, batch)
    return varied._replace(state=state), metrics

  def energies(varied: Varied, x: Array) -> Array:
    return at(varied.point).energies(varied.state, x)

  def moved(name: str) -> Callable[..., Varied]:
    """Returns the function of that name, which takes and returns a state."""

    def move(varied: Varied, *rest: Any) -> Varied:
      state = getattr(at(varied.point), name)(varied.state, *rest)
      return varied._replace(state=state)

    return move

  one = make({})
  return Learner(
    init,  # type: ignore[arg-type]
    step,
    moved("consolidate") if one.consolidate else None,
    energies,
    moved("prepare") if one.prepare else None,
  )
