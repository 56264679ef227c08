"""Experiments: the settings of a file in configs/, and the variants of it."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from ml_collections import ConfigDict

from ebmjax import methods, networks
from ebmjax.config import flat_keys
from ebmjax.config.groups import complete
from ebmjax.config.schema import choices_sentence
from ebmjax.errors import ConfigError
from ebmjax.methods.studies import HSU_DOMAIN

Settings = dict[str, Any]  # by dotted key
# What a variant changes: settings, or a function from the settings so far to new ones.
Change = Mapping[str, Any] | Callable[[Settings], Mapping[str, Any]]


class Experiment:
  """A benchmark's settings and variants, from which configurations are made.

  `settings` is nested or dotted, and may include keys of components that only a variant
  or the command line chooses. Methods list their published settings by `benchmark`.
  `variants` are the names that may follow the file's, in the order in which they are
  applied: shared ones, the file's own, then methods. If the file's own variant has the
  name of a shared one, both apply.
  """

  def __init__(
    self,
    benchmark: str,
    settings: Mapping[str, Any],
    *,
    variants: Mapping[str, Change] | None = None,
    shared: Iterable[str] | None = None,
    with_methods: bool = True,
    exclusive: Iterable[tuple[str, ...]] = (),
  ) -> None:
    self.benchmark, self.settings = benchmark, flat_keys(settings)
    own, shared = dict(variants or {}), tuple(_SHARED if shared is None else shared)
    chosen = tuple(methods.METHODS)[1:] if with_methods else ()
    last: dict[str, Change] = {"source": self._source, "hsu": _hsu} if chosen else {}
    known: dict[str, Change] = {name: _SHARED[name] for name in shared}
    known |= {name: partial(self._method, name) for name in chosen}
    known |= last
    every = dict.fromkeys((*shared, *own, *chosen, *last))
    self.variants = tuple(sorted(every, key=lambda name: _LATE.get(name, 0)))
    self._changes = {
      name: [changes[name] for changes in (known, own) if name in changes]
      for name in self.variants
    }
    self._exclusive = (*exclusive, *_EXCLUSIVE, chosen)

  def config(
    self,
    variants: str | None = None,
    choices: Mapping[str, Any] | None = None,
  ) -> ConfigDict:
    """Returns the configuration of variants such as "sbc,smoke".

    `choices`, such as {"network.name": "sbc"}, replace those of the file. The file's
    settings for the chosen components apply, but a method starts from its defaults.
    """
    asked = [name for name in (variants or "").replace("+", ",").split(",") if name]
    self._check(asked)
    settings = dict(self.settings)
    for name in (name for name in self.variants if name in asked):
      for change in self._changes[name]:
        settings |= change(settings) if callable(change) else change
    if choices and "method.name" in choices:
      settings = {k: v for k, v in settings.items() if not k.startswith("method.")}
    return complete(settings | dict(choices or {}))

  def _check(self, asked: list[str]) -> None:
    for name in asked:
      if name not in self.variants:
        known = choices_sentence(name, self.variants)
        raise ConfigError(f"unknown variant {name!r}; {known}")
    for group in self._exclusive:
      several = [name for name in group if name in asked]
      if len(several) > 1:
        raise ConfigError(
          f"the variants {' and '.join(several)} exclude each other; give one of them."
        )

  def _method(self, name: str, settings: Settings) -> Settings:
    """Returns a method's published settings for this benchmark."""
    spec = methods.find(name)
    values = spec.settings(self.benchmark, _conditions(settings))
    changes = {f"method.{key}": value for key, value in values.items()}
    network = {"network.name": spec.network} if spec.network else {}
    return {"method.name": name} | changes | network

  def _source(self, settings: Settings) -> Settings:
    """Returns the setting that a baseline's published figure comes from."""
    name = settings.get("method.name", "finetune")
    protocol = methods.find(name).protocol(self.benchmark)
    if not protocol:
      raise ConfigError(
        f"the variant source has no published setting of {name} on {self.benchmark}; "
        "leave it out."
      )
    return protocol


def _conditions(settings: Settings) -> list[str]:
  """Returns the conditions of `MethodSpec.published` that `settings` meet."""
  energy = networks.find(settings.get("network.name", "ebm")).energy
  found = ["energy"] if energy else []
  if settings.get("stream.setting") == "boundary_free":
    return [*found, "boundary_free"]
  contrastive = settings.get("objective", "contrastive") == "contrastive"
  return [*found, *(["contrastive"] if contrastive and not energy else [])]


def _hsu(settings: Settings) -> Settings:
  """Returns the protocol of Hsu et al. (2018), the reference for `domain`."""
  found = methods.find(settings.get("method.name", "finetune")).published.get("hsu")
  values = found.values if found else {}
  return dict(HSU_DOMAIN) | {f"method.{key}": value for key, value in values.items()}


def _sbc(settings: Settings) -> Settings:
  """Returns the softmax classifier that serves as baseline for the network."""
  name = networks.find(settings.get("network.name", "ebm")).classifier
  return ({"network.name": name} if name else {}) | {"objective": "ce"}


def _smoke(settings: Settings) -> Settings:
  """Returns sizes that let any experiment finish in seconds."""
  chosen: dict[str, Any] = {
    "method": methods.find(settings.get("method.name", "finetune")),
    "network": networks.find(settings.get("network.name", "ebm")),
  }
  small = {f"{g}.{k}": v for g, spec in chosen.items() for k, v in spec.small.items()}
  if settings.get("method.consolidate_every", 0) > 10:
    small["method.consolidate_every"] = 10  # so that short runs consolidate, too
  return small | {
    "stream.iterations": 30,
    "stream.epochs_per_task": 1,
    "stream.tasks": 2,
    "runner.chunk": 20,
  }


# Deviation: the paper shows one gated layer; the released code has two here.
_BOUNDARY_FREE = {"stream.setting": "boundary_free", "network.gated_layers": 2}
# Variants of all experiments, in the order of application.
_SHARED: dict[str, Change] = {
  "boundary_free": _BOUNDARY_FREE,
  # Every image is seen once; evaluation during training.
  "online": {
    **_BOUNDARY_FREE,
    "stream.epochs_per_task": 1,
    "stream.batch_size": 10,
    "eval.every": 100,
  },
  "joint": {"stream.setting": "joint"},
  "domain": {"stream.scenario": "domain"},
  "sbc": _sbc,
  "joint_pairs": {"objective": "joint_pairs"},
  "joint_triples": {"objective": "joint_triples"},
  "contrastive": {"objective": "contrastive"},
  "all_of_batch": {"objective": "likelihood", "negatives": "all_of_batch"},
  # A softmax over the labels of the batch only, not past ones (Zeno et al. 2018).
  "labels_trick": {"objective": "ce", "negatives": "all_of_batch"},
  # Prabhu et al. (2024): random Fourier features and SLDA.
  "randumb": {"network.name": "fourier", "method.name": "slda"},
  # McDonnell et al. (2023): random ReLU features and ridge regression.
  "ranpac": {"network.name": "relu", "method.name": "ridge"},
  # SQDA, whose boundaries are quadratic, over each kind of random features.
  "fourier_sqda": {"network.name": "fourier", "method.name": "sqda"},
  "patches_sqda": {"network.name": "patches", "method.name": "sqda"},
  "smoke": _smoke,
}
# Variants that come after all others, in this order.
_LATE = {"source": 1, "hsu": 2, "smoke": 3}
# At most one variant of each group may be given.
_EXCLUSIVE = (
  ("boundary_free", "joint"),
  ("online", "joint"),
  (
    *("joint_pairs", "joint_triples", "contrastive"),
    *("all_of_batch", "all_seen", "labels_trick"),
  ),
  ("randumb", "ranpac", "fourier_sqda", "patches_sqda", "sbc"),
  ("source", "hsu"),
)
