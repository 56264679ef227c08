"""The studies that published the baselines' figures, and how they ran them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ebmjax.methods.spec import Setting


class Study(NamedTuple):
  """A study, and how it ran the benchmarks that it published figures for."""

  source: str
  # By benchmark: dotted keys outside of the method, which the variant `source` sets.
  protocols: Mapping[str, Mapping[str, Any]] = {}

  def setting(self, benchmark: str = "", **values: Any) -> Setting:
    """Returns values of a method's keys, under the protocol of `benchmark` if given."""
    return Setting(values, self.source, self.protocols[benchmark] if benchmark else {})


# The seeds of the study start at 1, where every permuted task is permuted.
_SCENARIOS = {
  "splitmnist": {"optimiser.learning_rate": 1e-3, "stream.class_order": "random"},
  "permmnist": {"stream.iterations": 5000, "stream.first_permutation": "random"},
}
SCENARIOS_2019 = Study("van de Ven and Tolias, Three scenarios (2019)", _SCENARIOS)
TYPES_2022 = Study("van de Ven et al., Three types (2022)", _SCENARIOS)
REPLAY_2020 = Study(
  "van de Ven et al., Brain-inspired replay (2020)",
  {"cifar100": {"stream.batch_size": 256, "stream.class_order": "random"}},
)
PAPER = Study("Li et al. (2022)")
GENERATIVE_2021 = Study("van de Ven et al., Generative classifiers (2021)")
NOT_PUBLISHED = Study("not published; taken from another benchmark or study")

# Four and ten epochs a task.
HSU_2018 = Study(
  "Hsu et al. (2018)",
  {
    "splitmnist": {"optimiser.learning_rate": 1e-3, "stream.iterations": 370},
    "permmnist": {"stream.iterations": 4690},
  },
)

# How BGD starts and is shown MNIST: its figures rest on both. Normalised, no pixel is
# 0: every weight of the first layer takes part in every image.
_NORMALISED = {
  "data.mean": (0.1,),
  "data.std": (0.2752,),
  "network.init": "xavier_normal",
}
ZENO_2018 = Study(
  "Zeno et al. (2018)",
  {
    "splitmnist": {**_NORMALISED, "stream.iterations": 370},
    "permmnist": {
      **_NORMALISED,
      "stream.iterations": 4690,
      "stream.first_permutation": "identity",
    },
  },
)

# 1,000 images a task (10,000 on CIFAR-10), each once.
_ONE_PASS = {
  "stream.iterations": 100,
  "stream.batch_size": 10,
  "stream.epochs_per_task": 1,
  "network.hidden": 100,
  "network.init": "xavier",
  "optimiser.name": "sgd",
  "optimiser.learning_rate": 0.05,
}
ALJUNDI_2019 = Study(
  "Aljundi et al. (2019)",
  {
    "splitmnist": _ONE_PASS,
    "permmnist": {
      **_ONE_PASS,
      "stream.scenario": "domain",
      "stream.first_permutation": "identity",
    },
    "cifar10": {
      "stream.iterations": 1000,
      "stream.batch_size": 10,
      "stream.epochs_per_task": 1,
      "network.name": "sbc_resnet18",
      "optimiser.name": "sgd",
      "optimiser.learning_rate": 0.01,
      "data.augment": "none",
      "data.mean": (0.0,) * 3,
      "data.std": (1.0,) * 3,
    },
  },
)
PHAM_2021 = Study(
  "Pham et al. (2021)",
  {
    "permmnist": {
      **_ONE_PASS,
      "stream.scenario": "task",
      "stream.tasks": 20,
      "stream.first_permutation": "random",
      "network.hidden": 256,
      "optimiser.learning_rate": 0.03,
      "method.budget": 1000,  # fifty a task
    },
  },
)
# Five epochs. Deviation: theirs are twenty for the last task.
HU_2019 = Study(
  "Hu et al. (2019)",
  {
    "splitmnist": {
      "optimiser.learning_rate": 1e-3,
      "optimiser.b1": 0.5,
      "stream.iterations": 600,
      "stream.batch_size": 100,
      "network.hidden": 600,
      "network.init": "small",
      "method.generator": "conv",
    },
  },
)
# The domain-incremental setting of Hsu et al. (2018), the variant `hsu`.
HSU_DOMAIN: Mapping[str, Any] = {
  "optimiser.learning_rate": 1e-3,
  "stream.iterations": 370,
  "stream.class_order": "fixed",
  "data.mean": (0.1,),
  "data.std": (0.2752,),
}
# About one pass over the images, which is enough for methods that count them. The tasks
# of split MNIST have 88 to 99 full batches.
ONE_PASS: Mapping[str, Mapping[str, Any]] = {
  "splitmnist": {"stream.iterations": 94, "stream.epochs_per_task": 1},
  "permmnist": {"stream.iterations": 468, "stream.epochs_per_task": 1},
  "cifar10": {
    "stream.iterations": 78,
    "stream.epochs_per_task": 1,
    "data.augment": "none",
  },
  "cifar100": {"stream.iterations": 39, "stream.epochs_per_task": 1},
}
