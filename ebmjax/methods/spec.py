"""The facts about a method besides its code, in one record."""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, NamedTuple

from ebmjax.config.schema import Key, Number, Rule, keys_of, no_rules
from ebmjax.types import Learner

ConsolidateEvery = Annotated[
  Number, "steps between consolidations; 0: at task boundaries"
]


class Setting(NamedTuple):
  """Published values of a method's keys, and where they come from."""

  values: Mapping[str, Any]
  source: str
  # Dotted keys outside of the method: the rest of the run that published its figure.
  protocol: Mapping[str, Any]


def setting(
  source: str, protocol: Mapping[str, Any] | None = None, **values: Any
) -> Setting:
  """Makes a `Setting` of keyword arguments."""
  return Setting(values, source, protocol or {})


class MethodSpec(NamedTuple):
  """A method: its factory, whose keyword-only parameters are its keys, and its facts.

  `published` is keyed by benchmark ("splitmnist"), by condition ("boundary_free",
  "contrastive": a classifier on that objective with boundaries, "energy": an energy
  network, "hsu") or by both ("splitmnist/boundary_free"). More specific entries take
  precedence.
  """

  make: Callable[..., Learner]  # (problem, *, keys) -> Learner
  title: str
  boundaries: bool = False  # consolidates where a task ends
  mixes_tasks: bool = False  # batches of several tasks, with one set of candidates
  joins_batch: bool = False  # old rows join the batch, also as negatives
  single_rows: bool = False  # takes gradients of single rows: no others to compare with
  all_outputs: bool = False  # its authors also normalise over classes to come
  positives_alone: bool = False  # a class is learned from its own rows alone
  own_objective: bool = False  # trains a classifier by a loss of its own
  uses_optimiser: bool = True
  even_tasks: bool = False  # needs the same number of classes in each task
  network: str = ""  # the network that its variant chooses; "": the experiment's
  constraints: Callable[[Any], list[Rule]] = no_rules  # (config) -> rules
  published: Mapping[str, Setting] = {}
  small: Mapping[str, Any] = {}  # keys that make a quick trial run
  cost: float = 1.0  # time of a step over fine-tuning's, for estimates
  version: int = 1  # raised when its results change: part of a result's identity
  exempt: Mapping[str, str] = {}  # checks of ebmjax.testing it need not pass, and why

  @property
  def keys(self) -> dict[str, Key]:
    """Returns the keys of config.method beside `name`."""
    return keys_of(self.make)

  @property
  def periodic(self) -> bool:
    """Returns whether it can consolidate every so many steps, without boundaries."""
    return "consolidate_every" in self.keys

  def settings(self, benchmark: str, conditions: Iterable[str] = ()) -> dict[str, Any]:
    """Returns the published values of its keys for a benchmark under conditions."""
    merged: dict[str, Any] = {}
    for place in _places(benchmark, conditions):
      if place in self.published:
        merged |= self.published[place].values
    return merged

  def protocol(self, benchmark: str) -> dict[str, Any]:
    """Returns the dotted keys of the run that published its figure on a benchmark."""
    found = self.published.get(benchmark)
    return dict(found.protocol) if found else {}


def _places(benchmark: str, conditions: Iterable[str]) -> list[str]:
  conditions = list(conditions)
  return [*conditions, benchmark, *(f"{benchmark}/{each}" for each in conditions)]
