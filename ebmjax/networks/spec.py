"""What a network is built for, and what is known about it besides its code."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from jax import Array

from ebmjax.config.schema import Count, Free, Key, Rule, Share, keys_of, no_rules
from ebmjax.networks.conv import ConvForm as _ConvForm
from ebmjax.networks.gates import Embedding as _Embedding
from ebmjax.networks.gates import Normalisation
from ebmjax.networks.initialisers import Init as _Init
from ebmjax.networks.normalisation import Normalise, Preparation
from ebmjax.types import Network

# Types of keys that networks share.
Hidden = Annotated[Count, "units of each hidden layer"]
Init = Annotated[_Init, "initial weights"]
ConvForm = Annotated[
  _ConvForm, Free(), "form of the convolutions; auto: blocked on CPU, else native"
]
Gate = Annotated[Normalisation, "how a label's embedding is normalised"]
Embedding = Annotated[_Embedding, "a label's vector: learned, fixed, or a binary mask"]
Skip = Annotated[bool, "multiply by 1 + the label's gate, not by the gate"]
MaskDropRate = Annotated[Share, "share of units that a label's mask switches off"]


# (what prepares images) -> f(images [B, ...]) -> features [B, F]
MakeTrunk = Callable[[Preparation], Callable[[Array], Array]]


class Inputs(NamedTuple):
  """What a network is built for."""

  shape: tuple[int, ...]  # of one input, as batches hold it
  num_classes: int
  num_tasks: int = 1
  prepare: Preparation = Normalise()  # from stored inputs to those of the first layer
  # The keys [R] that `init` will be called with: shapes may depend on what they draw.
  init_keys: Array | None = None
  seeds: Sequence[int] = ()  # [R]
  max_labels: int | None = None  # distinct labels of one batch's candidates


def _any_shape(shape: tuple[int, ...]) -> bool:
  del shape
  return True


def _none(config: Any) -> None:
  del config


def hidden_units(config: Any) -> int:
  """Returns the number of features of a network whose last layer is a hidden one."""
  return int(config.hidden)


class NetworkSpec(NamedTuple):
  """A network: its factory, whose keyword-only parameters are its keys, and its facts.

  Functions of `config` take config.network, except `constraints`, which take all of it.
  """

  make: Callable[..., Network]  # (inputs, *, keys) -> Network
  title: str
  energy: bool = True  # False: a softmax classifier, its energies are minus its logits
  classifier: str = ""  # the classifier to compare an energy network with
  takes_rows: bool = True  # images reach it as rows of numbers
  contexts: bool = False  # its energies depend on the task of a label
  accepts: Callable[[tuple[int, ...]], bool] = _any_shape  # shape of an image or row
  wants: str = "any input"  # what `accepts`, in words
  num_features: Callable[[Any], int | None] = _none  # None: not known in advance
  # Where a frozen trunk's features are computed once: what builds the trunk.
  cached_trunk: Callable[[Any], MakeTrunk | None] = _none
  compiler_options: Callable[[Any], dict[str, str] | None] = _none  # of XLA
  constraints: Callable[[Any], list[Rule]] = no_rules
  small: Mapping[str, Any] = {}  # keys that make a quick trial run
  version: int = 1  # raised when its results change: part of a result's identity

  @property
  def keys(self) -> dict[str, Key]:
    """Returns the keys of config.network beside `name`."""
    return keys_of(self.make)
