"""Variants: what may follow an experiment's file name, and what each changes."""

from collections.abc import Callable, Iterable
from typing import Any

from ml_collections import ConfigDict

from ebmjax.config import choices_sentence
from ebmjax.errors import ConfigError

Variant = Callable[[ConfigDict], None]
Settings = dict[str, dict[str, Any]]  # method -> values of config.method

# Without boundaries, how often a method consolidates. The paper does not say its own;
# van de Ven et al. (2022) have 100.
_PERIODIC: Settings = {
  "online_ewc": {"consolidate_every": 100},
  "si": {"consolidate_every": 100},
  "mas": {"consolidate_every": 100},
  "lwf": {"consolidate_every": 100},
  "er": {"consolidate_every": 1},
}


class UnknownVariantError(ConfigError):
  """A name that is none of an experiment's `variants`."""

  def __init__(self, name: str, variants: Iterable[str]) -> None:
    self.variants = tuple(variants)
    super().__init__(f"unknown variant {name!r}; {choices_sentence(name, variants)}")


def method_variants(
  settings: Settings,
  periodic: Settings | None = None,
  contrastive: Settings | None = None,
) -> dict[str, Variant]:
  """Returns a variant for each method of an experiment, named like it.

  `periodic` are the settings that differ without boundaries, beside the periods, which
  all experiments share; `contrastive` those of a classifier on that objective, with
  boundaries. They come after the variants of setting, network and objective.
  """

  def variant(name: str) -> Variant:
    def change(config: ConfigDict) -> None:
      config.method.update({"name": name, **settings[name]})
      if name == "ctn":
        config.network.context = 16  # as its authors
      if config.stream.setting == "boundary_free":
        config.method.update(_PERIODIC.get(name, {}))
        config.method.update((periodic or {}).get(name, {}))
      elif (config.network.name, config.objective) == ("sbc", "contrastive"):
        config.method.update((contrastive or {}).get(name, {}))

    return change

  return {name: variant(name) for name in settings}


def _joint(config: ConfigDict) -> None:
  config.stream.setting = "joint"


def _domain(config: ConfigDict) -> None:
  config.stream.scenario = "domain"


def _boundary_free(config: ConfigDict) -> None:
  config.stream.setting = "boundary_free"
  # Deviation: the paper shows one gated layer; the released code has two here.
  config.network.gated_layers = 2


def _sbc(config: ConfigDict) -> None:
  config.network.name = "sbc"
  config.objective = "ce"


def _joint_pairs(config: ConfigDict) -> None:
  config.objective = "joint_pairs"


def _contrastive(config: ConfigDict) -> None:
  config.objective = "contrastive"


def one_pass(config: ConfigDict) -> None:
  """The protocol of Aljundi et al. (2019) on MNIST: 1,000 images a task, each once."""
  config.stream.update({"iterations": 100, "batch_size": 10, "epochs_per_task": 1})
  config.network.update({"hidden": 100, "init": "xavier"})
  config.optimiser.update({"name": "sgd", "learning_rate": 0.05})


def zeno(config: ConfigDict) -> None:
  """How Zeno et al. (2018) start BGD and show it MNIST: its figures rest on both.

  Normalised, no pixel is 0: every weight of the first layer has a say in every image.
  """
  config.data.update({"mean": (0.1,), "std": (0.2752,)})
  config.network.init = "xavier_normal"


def _smoke(config: ConfigDict) -> None:
  config.stream.update({"iterations": 30, "epochs_per_task": 1, "tasks": 2})
  config.network.hidden = config.method.generator_hidden = 32
  config.method.update({"generator_channels": 4, "dreams": 16, "adapted": 8})
  config.runner.chunk = 20


# What may follow an experiment's file name, in the order of application.
VARIANTS: dict[str, Variant] = {
  "boundary_free": _boundary_free,
  "joint": _joint,
  "domain": _domain,
  "sbc": _sbc,
  "joint_pairs": _joint_pairs,
  "contrastive": _contrastive,
  "smoke": _smoke,
}


# Of each of these one at the most makes sense.
_ONE_OF = (
  ("boundary_free", "joint"),
  ("joint_pairs", "contrastive", "all_of_batch", "all_seen"),
  ("source", "hsu"),
  ("medium", "large", "cifar10"),
  ("tasks5", "tasks20", "tasks50"),
  (
    *("ewc", "online_ewc", "si", "lwf", "mas", "bgd"),
    *("er", "gss_greedy", "icarl", "ctn", "dgr", "bir", "pgma"),
  ),
  ("v1", "v2", "v3", "end", "end_norm2", "end_fix", "end_fix_norm2", "end_fix_softmax"),
)


def with_variants(own: dict[str, Variant]) -> dict[str, Variant]:
  """Returns the variants of all experiments and an experiment's `own`, smoke last."""
  shared = {name: change for name, change in VARIANTS.items() if name != "smoke"}
  return shared | own | {"smoke": VARIANTS["smoke"]}


def apply_variants(
  config: ConfigDict, names: str | None, variants: dict[str, Variant]
) -> ConfigDict:
  """Returns config after the variants of a config string such as "sbc,smoke".

  They are applied in the order of the table, whatever the order they are named in.
  """
  asked = [name for name in (names or "").replace("+", ",").split(",") if name]
  for name in asked:
    if name not in variants:
      raise UnknownVariantError(name, variants)
  for group in _ONE_OF:
    several = [name for name in group if name in asked]
    if len(several) > 1:
      raise ConfigError(
        f"the variants {' and '.join(several)} exclude each other; give one of them."
      )
  for name, change in variants.items():
    if name in asked:
      change(config)
  return config
