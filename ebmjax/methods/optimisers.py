"""The optimisers of gradient methods, by name."""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import optax

from ebmjax.config.components import find_in
from ebmjax.config.schema import Key, Rate, Share, Traced, keys_of

LearningRate = Annotated[Rate, Traced(), "learning rate"]


class OptimiserSpec(NamedTuple):
  """An optimiser: its factory, whose keyword-only parameters are its keys."""

  make: Callable[..., optax.GradientTransformation]
  version: int = 1

  @property
  def keys(self) -> dict[str, Key]:
    """Returns the keys of config.optimiser beside `name`."""
    return keys_of(self.make)


def adam(
  *,
  learning_rate: LearningRate = 1e-4,
  b1: Annotated[Share, "decay of the running mean of gradients"] = 0.9,
  b2: Annotated[Share, "decay of the running mean of squared gradients"] = 0.999,
) -> optax.GradientTransformation:
  """Builds Adam."""
  return optax.adam(learning_rate, b1, b2)


def sgd(*, learning_rate: LearningRate = 1e-4) -> optax.GradientTransformation:
  """Builds plain gradient descent, without moments."""
  return optax.sgd(learning_rate)


def none() -> optax.GradientTransformation:
  """Builds the optimiser of methods that take steps of their own."""
  return optax.identity()


OPTIMISERS: dict[str, OptimiserSpec] = {
  "adam": OptimiserSpec(adam),
  "sgd": OptimiserSpec(sgd),
  "none": OptimiserSpec(none),
}


def find(name: str) -> OptimiserSpec:
  """Returns the spec of an optimiser, by its name or the import path of its spec."""
  return find_in("optimiser", OPTIMISERS, name, OptimiserSpec)


def make(config: Any) -> optax.GradientTransformation:
  """Builds the optimiser of a group config.optimiser."""
  settings = dict(config)
  return find(settings.pop("name")).make(**settings)
