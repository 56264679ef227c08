"""The networks of the capacity study: the label gates the image's hidden units."""

from typing import Annotated, Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from ebmjax import data
from ebmjax.config.schema import Number, Rule
from ebmjax.networks.gates import gated_relu_readout
from ebmjax.networks.heads import EnergyHead, select
from ebmjax.networks.initialisers import dense
from ebmjax.networks.mlp import ClassifierMLP, num_inputs
from ebmjax.networks.module import from_module
from ebmjax.networks.spec import (
  Hidden,
  Init,
  Inputs,
  NetworkSpec,
  hidden_units,
)
from ebmjax.types import Network


class CapacityEnergy(nn.Module):
  """E(x, y) = w . relu(relu(W x + a) * s_y) + b with s_y = V e_y + c.

  Deviation: the paper's text does not show the layer V on the label's embedding e_y,
  nor that the table of embeddings has 1000 rows while ten labels are in use. Both are
  inferred from the published numbers of parameters, which this form meets exactly. So
  does a form with e_y in place of s_y and an unused layer of that size: with
  boundaries, the released code's MNIST network has such a layer.
  """

  num_inputs: int
  hidden: int
  num_classes: int
  init_style: str = "pytorch"
  label_rows: int = 0  # of the table of embeddings; 0: as many as classes

  def setup(self) -> None:
    rows = self.label_rows or self.num_classes
    self.layer = dense(self.hidden, self.num_inputs, self.init_style)
    normal = nn.initializers.normal(1.0)
    self.embedding = self.param("embedding", normal, (rows, self.hidden))
    self.label_layer = dense(self.hidden, self.hidden, self.init_style)
    self.head = EnergyHead(self.hidden, self.init_style)

  def __call__(self, x: Array, labels: Array) -> Array:
    """Returns energies [B, K] for labels [B, K], or [B, L] for labels [L]."""
    if labels.ndim == 1:
      return self._shared(x, labels)
    # The rows of a batch share few classes: the label's layer computes each class once,
    # not once per row.
    return select(self._shared(x, jnp.arange(self.num_classes)), labels)

  def features(self, x: Array) -> Array:
    """Returns [B, F]: the label-free part, rectified."""
    return jax.nn.relu(self.layer(x))

  def _shared(self, x: Array, labels: Array) -> Array:
    """Returns energies [B, L] for labels [L], as one matrix product.

    relu(relu(a) s) = relu(a) relu(s), so the [B, L, F] products never exist.
    """
    s = jax.nn.relu(self.label_layer(self.embedding[labels]))
    w, b = self.head()
    return gated_relu_readout(self.layer(x), s, w, nonnegative=True) + b


LabelRows = Annotated[Number, "rows of the label table, or outputs; 0: one per class"]


def energy_capacity(
  inputs: Inputs,
  *,
  hidden: Hidden = 512,
  label_rows: LabelRows = 0,
  init: Init = "pytorch",
) -> Network:
  """Builds the capacity study's energy network over flat images."""
  size, classes = num_inputs(inputs), inputs.num_classes
  module = CapacityEnergy(size, hidden, classes, init, label_rows)
  return from_module(module, (size,), classes, inputs.prepare)


def classifier_capacity(
  inputs: Inputs,
  *,
  hidden: Hidden = 512,
  label_rows: LabelRows = 0,
  init: Init = "pytorch",
) -> Network:
  """Builds the capacity study's classifier over flat images."""
  size = num_inputs(inputs)
  outputs = label_rows or inputs.num_classes
  module = ClassifierMLP(size, hidden, outputs, init_style=init)
  return from_module(module, (size,), inputs.num_classes, inputs.prepare)


def _constraints(config: Any) -> list[Rule]:
  rows, classes = config.network.label_rows, data.find(config.data.name).num_classes
  return [
    (
      0 < rows < (classes or 0),
      f"config.network.label_rows={rows} is too small for the {classes} classes of "
      f"config.data.name={config.data.name!r}; use 0 or at least {classes}.",
    )
  ]


EBM_CAPACITY = NetworkSpec(
  energy_capacity,
  title="energy-based model",
  classifier="sbc_capacity",
  num_features=hidden_units,
  constraints=_constraints,
  small={"hidden": 32},
)
SBC_CAPACITY = NetworkSpec(
  classifier_capacity,
  title="softmax classifier",
  energy=False,
  num_features=hidden_units,
  constraints=_constraints,
  small={"hidden": 32},
)
