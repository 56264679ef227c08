"""The label-gated energy MLP and the softmax classifier's MLP."""

import jax
from flax import linen as nn
from jax import Array, lax

from ebmjax.networks.gates import LabelGate, gated_relu, gated_relu_readout
from ebmjax.networks.heads import EnergyHead, select
from ebmjax.networks.initialisers import dense

_FEW = 8  # measured: two of ten labels are better off in one product, of a hundred not
# Of the features that labels in one call have together.
_NUMBERS = {"cpu": 2**21, "other": 2**26}


class EnergyMLP(nn.Module):
  """E(x, y) = w . h + b with h = relu(s_y * (W x + b)) repeated `gated_layers` times.

  One gated layer where task boundaries are known, two where they are not. Deviation:
  the paper shows the first form alone; the released code has the second without
  boundaries. Over CIFAR-100's features it is two layers of 2000 units gated by masks.
  """

  num_inputs: int
  hidden: int
  num_classes: int
  gated_layers: int = 1
  gate: str = "l2"
  embedding: str = "learned"
  skip: bool = True
  mask_off: float = 0.85
  init_style: str = "pytorch"

  def setup(self) -> None:
    fan_ins = [self.num_inputs] + [self.hidden] * (self.gated_layers - 1)
    self.layers = [dense(self.hidden, fan_in, self.init_style) for fan_in in fan_ins]
    self.label_gate = LabelGate(
      self.num_classes,
      self.hidden,
      self.gate,
      self.embedding,
      self.skip,
      self.gated_layers,
      self.mask_off,
    )
    self.head = EnergyHead(self.hidden, self.init_style)

  def __call__(self, x: Array, labels: Array) -> Array:
    """Returns energies [B, K] for labels [B, K], or [B, L] for labels [L]."""
    factors = self.label_gate()
    # All labels in one product cost less than a few labels one by one, unless they are
    # a few of very many.
    few = labels.ndim == 2 and _FEW * labels.shape[1] < self.num_classes
    if self.gated_layers == 1 and not few:
      return select(self._all_labels(x, factors[0]), labels)
    if labels.ndim == 1:
      return self._in_turn(x, [s[labels] for s in factors])
    return self._layered(x, [s[labels] for s in factors])

  def features(self, x: Array) -> Array:
    """Returns [B, F]: the label-free part, rectified."""
    return jax.nn.relu(self.layers[0](x))

  def _all_labels(self, x: Array, s: Array) -> Array:
    """Returns energies [B, C]; the input's part is computed once for all labels."""
    w, b = self.head()
    a = self.layers[0](x)
    return gated_relu_readout(a, s, w, nonnegative=self.label_gate.nonnegative) + b

  def _layered(self, x: Array, factors: list[Array]) -> Array:
    """Returns energies [B, K]; factors, one a layer, [B, K, F]."""
    first, *rest = factors
    h = gated_relu(self.layers[0](x)[:, None, :], first)
    for layer, s in zip(self.layers[1:], rest, strict=True):
      h = gated_relu(layer(h), s)
    w, b = self.head()
    return h @ w + b

  def _in_turn(self, x: Array, factors: list[Array]) -> Array:
    """Returns energies [B, L]; factors, one a layer, [L, F], hold for all rows.

    Some labels at a time: the features of all of them, [B, L, F], are too many for a
    CPU's caches, and of a thousand labels for an accelerator's memory.
    """
    a, (w, b) = self.layers[0](x), self.head()
    layers = [layer.variables["params"] for layer in self.layers[1:]]

    def of_label(factors: list[Array]) -> Array:
      first, *rest = (s[None, :] for s in factors)
      h = gated_relu(a, first)
      for layer, s in zip(layers, rest, strict=True):
        h = gated_relu(h @ layer["kernel"] + layer["bias"][None, :], s)
      return h @ w + b

    most = _NUMBERS["cpu" if jax.default_backend() == "cpu" else "other"]
    return lax.map(of_label, factors, batch_size=max(1, most // a.size)).T


class ClassifierMLP(nn.Module):
  """A softmax classifier seen as energies: E(x, y) = -logit_y(x)."""

  num_inputs: int
  hidden: int
  num_classes: int
  init_style: str = "pytorch"

  def setup(self) -> None:
    self.layers = [
      dense(self.hidden, self.num_inputs, self.init_style),
      dense(self.hidden, self.hidden, self.init_style),
    ]
    self.head = dense(self.num_classes, self.hidden, self.init_style)

  def __call__(self, x: Array, labels: Array) -> Array:
    """Returns energies [B, K] for labels [B, K], or [B, L] for labels [L]."""
    return select(-self.head(self.features(x)), labels)

  def features(self, x: Array) -> Array:
    """Returns [B, F]: the last hidden layer."""
    for layer in self.layers:
      x = jax.nn.relu(layer(x))
    return x
