"""The classifier of contextual transformation networks: the task transforms features.

Two tasks of two labels each; a label's energy is its output in its own task's context:

>>> import jax, jax.numpy as jnp
>>> from ebmjax.networks.context import ContextMLP
>>> network = ContextMLP(num_inputs=3, hidden=4, num_classes=4, num_tasks=2, size=5)
>>> x, labels = jnp.ones((1, 3)), jnp.arange(4)
>>> energies, variables = network.init_with_output(jax.random.key(0), x, labels)
>>> own = network.apply(variables, x, jnp.array([3]), method="task_energies")
>>> energies.shape, bool(jnp.allclose(own, energies[:, 2:]))
((1, 4), True)
"""

from typing import Annotated, Any

import jax
from flax import linen as nn
from jax import Array

from ebmjax.config.schema import Count, Rule
from ebmjax.networks.gates import normalise
from ebmjax.networks.heads import select
from ebmjax.networks.initialisers import dense
from ebmjax.networks.mlp import num_inputs
from ebmjax.networks.module import from_module
from ebmjax.networks.spec import Hidden, Init, Inputs, NetworkSpec, hidden_units
from ebmjax.types import Network

_LAYERS = 2


class Context(nn.Module):
  """For each hidden layer, a scale and a shift of its units, learned for each task.

  Both are linear maps of the task's embedding, divided by their length.
  """

  num_tasks: int
  size: int  # numbers of a task's embedding
  hidden: int
  init_style: str = "pytorch"

  def setup(self) -> None:
    shape, normal = (self.num_tasks, self.size), nn.initializers.normal(1.0)
    self.embedding = self.param("embedding", normal, shape)
    self.films = [
      dense(2 * self.hidden, self.size, self.init_style) for _ in range(_LAYERS)
    ]

  def __call__(self) -> list[tuple[Array, Array]]:
    """Returns scales and shifts, [T, F] each, one pair a layer."""
    both = [film(self.embedding) for film in self.films]
    halves = ((made[:, : self.hidden], made[:, self.hidden :]) for made in both)
    return [(normalise(one, "l2"), normalise(two, "l2")) for one, two in halves]


class ContextMLP(nn.Module):
  """E(x, y) = -output_o(x; t), y being the o-th label of task t.

  A hidden layer of pre-activations a is h = relu(a) + relu(scale_t a + shift_t). All
  tasks share the layers and the outputs.
  """

  num_inputs: int
  hidden: int
  num_classes: int
  num_tasks: int
  size: int  # numbers of a task's embedding
  init_style: str = "pytorch"

  def setup(self) -> None:
    fan_ins = (self.num_inputs, *[self.hidden] * (_LAYERS - 1))
    self.layers = [dense(self.hidden, fan_in, self.init_style) for fan_in in fan_ins]
    self.outputs = self.num_classes // self.num_tasks
    self.head = dense(self.outputs, self.hidden, self.init_style)
    self.context = Context(self.num_tasks, self.size, self.hidden, self.init_style)

  def __call__(self, x: Array, labels: Array) -> Array:
    """Returns energies [B, K] for labels [B, K], or [B, L] for labels [L]."""
    contexts = [(one[None], two[None]) for one, two in self.context()]
    energies = self._energies(self.layers[0](x)[:, None, :], contexts)
    return select(energies.reshape(len(x), self.num_classes), labels)

  def task_energies(self, x: Array, y: Array) -> Array:
    """Returns energies [B, O] of all labels of the task that y [B] belongs to."""
    task = y // self.outputs
    contexts = [(one[task], two[task]) for one, two in self.context()]
    return self._energies(self.layers[0](x), contexts)

  def features(self, x: Array) -> Array:
    """Returns [B, F]: the last hidden layer, without any context."""
    for layer in self.layers:
      x = jax.nn.relu(layer(x))
    return x

  def _energies(self, first: Array, contexts: list[tuple[Array, Array]]) -> Array:
    """Returns [..., O] from the first layer's pre-activations and the contexts."""
    h = _transformed(first, *contexts[0])
    for layer, context in zip(self.layers[1:], contexts[1:], strict=True):
      h = _transformed(layer(h), *context)
    return -self.head(h)


def _transformed(a: Array, scale: Array, shift: Array) -> Array:
  return jax.nn.relu(a) + jax.nn.relu(scale * a + shift)


def context_mlp(
  inputs: Inputs,
  *,
  hidden: Hidden = 256,
  context: Annotated[Count, "size of a task's embedding"] = 16,
  init: Init = "pytorch",
) -> Network:
  """Builds CTN's classifier over rows of numbers."""
  size, classes = num_inputs(inputs), inputs.num_classes
  module = ContextMLP(size, hidden, classes, inputs.num_tasks, context, init)
  return from_module(module, (size,), classes, inputs.prepare)


def _constraints(config: Any) -> list[Rule]:
  return [
    (
      config.stream.scenario == "domain",
      "config.network.name='context_mlp' tells tasks apart by their labels, which they "
      "share with config.stream.scenario='domain'; use 'task' or 'class'.",
    )
  ]


CONTEXT_MLP = NetworkSpec(
  context_mlp,
  title="context network",
  energy=False,
  contexts=True,
  num_features=hidden_units,
  constraints=_constraints,
  small={"hidden": 32},
)
