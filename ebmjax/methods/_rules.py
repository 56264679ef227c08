"""Rules on configurations that several methods share."""

from typing import Any

from ebmjax import data, networks
from ebmjax.config.schema import Rule


def classifier_rules(config: Any) -> list[Rule]:
  """Returns the rule of methods that train the outputs of a classifier."""
  name, network = config.method.name, config.network.name
  return [
    (
      networks.find(network).energy,
      f"config.method.name={name!r} trains the outputs of a classifier, not "
      f"config.network.name={network!r}; use 'sbc'.",
    )
  ]


def plain_feature_rules(config: Any) -> list[Rule]:
  """Returns the rule of methods whose features must not depend on the task."""
  name, network = config.method.name, config.network.name
  return [
    (
      networks.find(network).contexts,
      f"config.method.name={name!r} needs features that do not depend on the task, "
      f"and config.network.name={network!r} makes them; use 'sbc'.",
    )
  ]


# Fields of the specs of methods that learn each class separately, from features.
EACH_CLASS_ALONE: dict[str, Any] = {
  "uses_optimiser": False,
  "positives_alone": True,
  "network": "raw",
  "constraints": plain_feature_rules,
  "exempt": dict.fromkeys(
    ("one_class_keeps_energies", "one_class_keeps_state"),
    "a class is learned from its own rows: no negative is needed",
  ),
}


def image_rules(config: Any) -> list[Rule]:
  """Returns the rule of methods that generate images."""
  cached = networks.find(config.network.name).cached_trunk(config.network) is not None
  return [
    (
      cached or data.find(config.data.name).generated,
      f"config.method.name={config.method.name!r} generates images, and "
      f"config.data.name={config.data.name!r} with config.network.name="
      f"{config.network.name!r} shows the network none; over a frozen trunk set "
      "config.network.backbone_mode='finetune'.",
    )
  ]


def budget_rules(config: Any, *, by_class: bool, remedy: str) -> list[Rule]:
  """Returns the rules of a budget of images that tasks or classes share."""
  budget, tasks = config.method.budget, int(config.stream.tasks)
  classes = data.find(config.data.name).num_classes or 0
  repeated = tasks if config.stream.name == "permuted" else 1
  owners = classes * repeated if by_class else tasks
  return [
    (
      budget < owners,
      f"config.method.budget={budget} is less than an image for each of {owners} "
      f"{'classes' if by_class else 'tasks'}; give {owners} or more.",
    ),
    (
      by_class and owners > 1 and config.stream.scenario == "domain",
      f"config.method.name={config.method.name!r} keeps images of each class, and with "
      f"config.stream.scenario='domain' every task has all of them; {remedy}.",
    ),
  ]
