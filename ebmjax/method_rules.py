"""The rules of a method and what it is run with, each told in a sentence."""

from ml_collections import ConfigDict

from ebmjax import data
from ebmjax.errors import ConfigError
from ebmjax.traits import traits

Rule = tuple[bool, str]  # whether it is broken, and what is said then
# Negatives that a row finds among the other rows of its batch.
IN_BATCH = ("one_of_batch", "one_by_frequency", "all_of_batch", "repaired")


def of_setting(config: ConfigDict) -> list[Rule]:
  """Returns the rules of what may be known at each setting."""
  setting, hidden = config.stream.setting, config.stream.setting != "boundary_aware"
  method, every = config.method.name, config.method.consolidate_every
  periodic = traits(method).periodic
  return [
    (
      hidden and config.negatives == "one_of_task",
      "config.negatives='one_of_task' needs task boundaries, and "
      f"config.stream.setting={setting!r} has none; use 'one_of_batch'.",
    ),
    (
      hidden and config.stream.scenario == "task",
      "config.stream.scenario='task' tells the learner its task, and "
      f"config.stream.setting={setting!r} hides it; use 'boundary_aware'.",
    ),
    (
      hidden and traits(method).boundaries and not periodic,
      f"config.method.name={method!r} needs task boundaries, and "
      f"config.stream.setting={setting!r} has none; use 'boundary_aware'.",
    ),
    (
      hidden and periodic and not every,
      f"config.method.name={method!r} would never consolidate with "
      f"config.stream.setting={setting!r}; set config.method.consolidate_every, for "
      "example to 100.",
    ),
  ]


def of_method(config: ConfigDict) -> list[Rule]:
  """Returns the rules of what a method can be run with."""
  method, every = config.method.name, config.method.consolidate_every
  return [
    (
      every > 0 and not traits(method).periodic,
      f"config.method.consolidate_every={every} means nothing to "
      f"config.method.name={method!r}; set it to 0.",
    ),
    (
      traits(method).mixes and config.stream.scenario == "task",
      f"config.method.name={method!r} mixes tasks in a batch, and "
      "config.stream.scenario='task' sets only a task's own classes against each "
      "other; use 'class'.",
    ),
    (
      config.stream.batch_size < 2
      and config.negatives in IN_BATCH
      and not traits(method).joins,
      f"config.negatives={config.negatives!r} looks for another class in a batch of "
      "one row; set config.stream.batch_size to 2 or more.",
    ),
    (
      method == "lwf" and config.stream.scenario == "task",
      "config.method.name='lwf' distils all old classes together, and "
      "config.stream.scenario='task' sets only a task's own against each other; use "
      "'class' or 'domain'.",
    ),
    (
      method == "gss_greedy" and config.negatives in IN_BATCH,
      "config.method.name='gss_greedy' takes the gradients of single rows, and "
      f"config.negatives={config.negatives!r} looks for others in the batch; use "
      "'all_seen', and another objective than 'joint_pairs'.",
    ),
    (
      config.negatives == "all_classes" and config.stream.scenario == "task",
      "config.negatives='all_classes' sets the classes of all tasks against each "
      "other, and config.stream.scenario='task' only a task's own; use 'all_seen'.",
    ),
    *_of_contexts(config),
    *_of_own_objectives(config),
    *_of_stores(config),
    *_of_generators(config),
  ]


def require_negatives(config: ConfigDict, per_task: int) -> None:
  """Refuses tasks of so few classes that no row would stand against another class.

  No rule of a configuration: the data say how many classes a task has.
  """
  if config.stream.setting != "boundary_aware" or per_task != 1:
    return
  method, negatives = config.method.name, config.negatives
  near = negatives in ("one_of_task", *IN_BATCH) and not traits(method).joins
  # CTN normalises over the labels of a row's own task, whatever else was seen.
  if near or config.stream.scenario != "class" or method == "ctn":
    raise ConfigError(
      f"config.stream.tasks={config.stream.tasks} leaves one class in each task, which "
      f"config.method.name={method!r} with config.negatives={negatives!r} sets against "
      "no other; use fewer tasks."
    )


def require_period(config: ConfigDict, steps: int) -> None:
  """Refuses a period of consolidation that would not end within a run of `steps`."""
  every = config.method.consolidate_every
  if every > steps:
    raise ConfigError(
      f"config.method.name={config.method.name!r} would never consolidate: "
      f"config.method.consolidate_every={every}, and the run has {steps} steps; give "
      f"{steps} or less."
    )


def _of_own_objectives(config: ConfigDict) -> list[Rule]:
  """Returns the rules of methods that train a classifier in a way of their own."""
  method = config.method.name
  return [
    (
      method == "icarl" and config.network.name != "sbc",
      "config.method.name='icarl' trains sigmoid outputs of a classifier, not "
      f"config.network.name={config.network.name!r}; use 'sbc'.",
    ),
    (
      method in ("icarl", "ctn") and config.objective != "ce",
      f"config.method.name={method!r} has an objective of its own, in the place of "
      f"config.objective={config.objective!r}; use 'ce'.",
    ),
    (
      method in ("icarl", "ctn") and config.negatives != "all_seen",
      f"config.method.name={method!r} has candidates of its own, in the place of "
      f"config.negatives={config.negatives!r}; use 'auto'.",
    ),
  ]


def _of_contexts(config: ConfigDict) -> list[Rule]:
  """Returns the rules of a network whose features the task transforms."""
  network, scenario, method = config.network, config.stream.scenario, config.method.name
  given = f"config.network.context={network.context}"
  return [
    (
      method == "ctn" and not network.context,
      "config.method.name='ctn' needs a network with contexts of tasks; set "
      "config.network.context, for example to 16.",
    ),
    (
      method == "ctn" and config.stream.batch_size < 2,
      "config.method.name='ctn' parts each batch in two; set config.stream.batch_size "
      "to 2 or more.",
    ),
    (
      network.context > 0 and method in ("icarl", "bir", "pgma"),
      f"config.method.name={method!r} needs features that do not depend on the task, "
      f"and {given} makes them; use 0.",
    ),
    (
      network.context > 0 and (network.name != "sbc" or not _has_rows(network)),
      f"{given} transforms a classifier's features of rows, not config.network.name="
      f"{network.name!r} with config.network.trunk={network.trunk!r}; use 'sbc' on "
      "grey images or on CIFAR-100 with config.network.conv='fixed_statistics'.",
    ),
    (
      network.context > 0 and scenario == "domain",
      f"{given} tells tasks apart by their labels, which they share with "
      "config.stream.scenario='domain'; use 'task' or 'class'.",
    ),
  ]


def _of_stores(config: ConfigDict) -> list[Rule]:
  """Returns the rules of budgets that tasks or classes share."""
  method, owners = config.method.name, _owners(config)
  return [
    (
      method == "ctn" and config.method.budget < 2 * config.stream.tasks,
      f"config.method.budget={config.method.budget} is less than two images for each "
      f"of {config.stream.tasks} tasks; give {2 * config.stream.tasks} or more.",
    ),
    (
      method in ("er", "icarl") and config.method.budget < owners,
      f"config.method.budget={config.method.budget} is less than an image for each of "
      f"{owners} {'classes' if _shares_by_class(config) else 'tasks'}; give {owners} "
      "or more.",
    ),
    (
      _shares_by_class(config) and owners > 1 and config.stream.scenario == "domain",
      f"config.method.name={method!r} keeps images of each class, and with "
      "config.stream.scenario='domain' every task has all of them; use 'class', or "
      "for replay config.method.quota='task'.",
    ),
  ]


def _of_generators(config: ConfigDict) -> list[Rule]:
  """Returns the rules of what can be generated."""
  method = config.method.name
  return [
    (
      method in ("dgr", "pgma") and not _shows_images(config),
      f"config.method.name={method!r} generates images, and config.data.name="
      f"{config.data.name!r} with config.network.conv={config.network.conv!r} shows "
      "the network none; on CIFAR-100 set config.network.conv='finetune'.",
    ),
    (
      method == "bir" and not _has_rows(config.network),
      "config.method.name='bir' generates rows of grey pixels or the features of a "
      f"frozen trunk, not inputs of config.network.trunk={config.network.trunk!r} with "
      f"config.network.conv={config.network.conv!r}; on CIFAR-100 set "
      "config.network.conv='fixed_statistics'.",
    ),
    *(_of_adaptation(config) if method == "pgma" else []),
  ]


def _of_adaptation(config: ConfigDict) -> list[Rule]:
  """Returns the rules of PGMA's codes and generated weights."""
  network, adapted = config.network, config.method.adapted
  features = {"conv4": 1024, "resnet18": 160}.get(network.trunk, network.hidden)
  return [
    (
      adapted > features,
      f"config.method.adapted={adapted} is more than the {features} features of the "
      f"network; give {features} or less.",
    ),
    (
      config.stream.batch_size < 2,
      "config.method.name='pgma' compares the codes of a batch with each other; set "
      "config.stream.batch_size to 2 or more.",
    ),
  ]


def _shows_images(config: ConfigDict) -> bool:
  """Returns whether images reach the network: no features, no numbers of images."""
  cached = (config.network.trunk, config.network.conv) == ("conv5", "fixed_statistics")
  return not (cached or data.DATASETS[config.data.name].generated)


def _has_rows(network: ConfigDict) -> bool:
  """Returns whether the network's inputs are rows of numbers, not colour images."""
  cached = (network.trunk, network.conv) == ("conv5", "fixed_statistics")
  return network.trunk == "none" or cached


def _owners(config: ConfigDict) -> int:
  """Returns how many tasks or classes share the budget of stored images."""
  tasks, classes = config.stream.tasks, data.DATASETS[config.data.name].num_classes
  if config.method.consolidate_every:  # a reservoir, which nothing shares
    return 1
  if not _shares_by_class(config):
    return int(tasks)
  return int(tasks * classes if config.stream.name == "permuted" else classes)


def _shares_by_class(config: ConfigDict) -> bool:
  method = config.method
  return method.name == "icarl" or (method.name == "er" and method.quota == "class")
