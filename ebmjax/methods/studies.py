"""The studies that published the baselines' figures, and how they ran them.

A protocol is what the variant `source` changes outside of the method: dotted keys of a
configuration, by benchmark.
"""

from collections.abc import Mapping
from typing import Any

Protocols = Mapping[str, Mapping[str, Any]]

SCENARIOS_2019 = "van de Ven and Tolias, Three scenarios (2019)"
TYPES_2022 = "van de Ven et al., Three types (2022)"
REPLAY_2020 = "van de Ven et al., Brain-inspired replay (2020)"
HSU_2018 = "Hsu et al. (2018)"
ZENO_2018 = "Zeno et al. (2018)"
ALJUNDI_2019 = "Aljundi et al. (2019)"
PHAM_2021 = "Pham et al. (2021)"
HU_2019 = "Hu et al. (2019)"
GENERATIVE_2021 = "van de Ven et al., Generative classifiers (2021)"
PAPER = "Li et al. (2022)"
NOT_PUBLISHED = "not published; taken from another benchmark or study"

# Of van de Ven and Tolias on MNIST and of van de Ven et al. (2020) on CIFAR-100. The
# seeds of the MNIST study start at 1, where every permuted task is permuted.
SCENARIOS: Protocols = {
  "splitmnist": {"optimiser.learning_rate": 1e-3, "stream.class_order": "random"},
  "permmnist": {"stream.iterations": 5000, "stream.first_permutation": "random"},
  "cifar100": {"stream.batch_size": 256, "stream.class_order": "random"},
}

# Four and ten epochs a task.
HSU: Protocols = {
  "splitmnist": {"optimiser.learning_rate": 1e-3, "stream.iterations": 370},
  "permmnist": {"stream.iterations": 4690},
}

# How BGD starts and is shown MNIST: its figures rest on both. Normalised, no pixel is
# 0: every weight of the first layer takes part in every image.
_NORMALISED = {
  "data.mean": (0.1,),
  "data.std": (0.2752,),
  "network.init": "xavier_normal",
}
ZENO: Protocols = {
  "splitmnist": {**_NORMALISED, "stream.iterations": 370},
  "permmnist": {
    **_NORMALISED,
    "stream.iterations": 4690,
    "stream.first_permutation": "identity",
  },
}

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
ALJUNDI: Protocols = {
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
}
PHAM: Protocols = {
  "permmnist": {
    **_ONE_PASS,
    "stream.scenario": "task",
    "stream.tasks": 20,
    "stream.first_permutation": "random",
    "network.hidden": 256,
    "optimiser.learning_rate": 0.03,
    "method.budget": 1000,  # fifty a task
  },
}
# Five epochs. Deviation: theirs are twenty for the last task.
HU: Protocols = {
  "splitmnist": {
    "optimiser.learning_rate": 1e-3,
    "optimiser.b1": 0.5,
    "stream.iterations": 600,
    "stream.batch_size": 100,
    "network.hidden": 600,
    "network.init": "small",
    "method.generator": "conv",
  },
}
# The domain-incremental setting of Hsu et al. (2018), the variant `hsu`.
HSU_DOMAIN: Mapping[str, Any] = {
  "optimiser.learning_rate": 1e-3,
  "stream.iterations": 370,
  "stream.class_order": "fixed",
  "data.mean": (0.1,),
  "data.std": (0.2752,),
}
# Every image about once: what is counted needs no more. The tasks of split MNIST have
# 88 to 99 full batches.
ONE_PASS: Protocols = {
  "splitmnist": {"stream.iterations": 94, "stream.epochs_per_task": 1},
  "permmnist": {"stream.iterations": 468, "stream.epochs_per_task": 1},
  "cifar10": {
    "stream.iterations": 78,
    "stream.epochs_per_task": 1,
    "data.augment": "none",
  },
  "cifar100": {"stream.iterations": 39, "stream.epochs_per_task": 1},
}
