"""Rules that span several components; each violation is explained in a sentence.

Rules of a single component are in its spec.
"""

import math
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from ebmjax import data, methods, networks
from ebmjax.config.schema import Rule
from ebmjax.errors import ConfigError
from ebmjax.streams.spec import hides_tasks

# Objectives with negatives that no other objective uses.
PAIRED = {"joint_pairs": "repaired", "joint_triples": "label_and_image"}
# Negatives that are labels of the other rows of the batch.
IN_BATCH = ("one_of_batch", "one_by_frequency", "all_of_batch", *PAIRED.values())


def rules(config: ConfigDict) -> list[Rule]:
  """Returns every rule, with whether `config` breaks it."""
  return [
    *_of_setting(config),
    *methods.find(config.method.name).constraints(config),
    *_of_method(config),
    *_of_objective(config),
    *_of_inputs(config),
    *networks.find(config.network.name).constraints(config),
    *_of_data(config),
    *(_of_generated(config) if data.find(config.data.name).generated else []),
  ]


def default_negatives(config: ConfigDict) -> str:
  """Returns the negatives that `auto` stands for."""
  spec = methods.find(config.method.name)
  hidden, task_known = hides_tasks(config.stream), config.stream.scenario == "task"
  if config.objective == "ce":
    # If the task is known at test time, it is also known in training.
    return "all_classes" if spec.all_outputs and not task_known else "all_seen"
  if config.objective in PAIRED:
    return PAIRED[config.objective]
  if spec.single_rows and (hidden or config.objective == "likelihood"):
    return "all_seen"
  if config.objective == "likelihood":
    return "all_of_batch"
  return "one_of_batch" if hidden else "one_of_task"


def _of_setting(config: ConfigDict) -> list[Rule]:
  """Returns the rules on what a learner may know in each setting."""
  setting, hidden = config.stream.setting, hides_tasks(config.stream)
  name, spec = config.method.name, methods.find(config.method.name)
  every = config.method.get("consolidate_every", 0)
  return [
    (
      hidden and config.negatives == "one_of_task",
      "config.negatives='one_of_task' needs task boundaries, and "
      f"config.stream.setting={setting!r} has none; use 'one_of_batch'.",
    ),
    (
      hidden and config.stream.scenario == "task",
      "config.stream.scenario='task' shows the task to the learner, and "
      f"config.stream.setting={setting!r} hides it; use 'boundary_aware'.",
    ),
    (
      hidden and spec.boundaries and not spec.periodic,
      f"config.method.name={name!r} needs task boundaries, and "
      f"config.stream.setting={setting!r} has none; use 'boundary_aware'.",
    ),
    (
      hidden and spec.periodic and not every,
      f"config.method.name={name!r} would never consolidate with "
      f"config.stream.setting={setting!r}; set config.method.consolidate_every, for "
      "example to 100.",
    ),
  ]


def _of_method(config: ConfigDict) -> list[Rule]:
  """Returns the rules that follow from the spec of the method."""
  name, spec = config.method.name, methods.find(config.method.name)
  negatives, scenario = config.negatives, config.stream.scenario
  return [
    (
      spec.mixes_tasks and scenario == "task",
      f"config.method.name={name!r} mixes tasks in a batch, and "
      "config.stream.scenario='task' only compares the classes of one task; use "
      "'class'.",
    ),
    (
      config.stream.batch_size < 2 and negatives in IN_BATCH and not spec.joins_batch,
      f"config.negatives={negatives!r} needs another class in the batch, which has one "
      "row; set config.stream.batch_size to 2 or more.",
    ),
    (
      spec.single_rows and negatives in IN_BATCH,
      f"config.method.name={name!r} takes the gradients of single rows, and "
      f"config.negatives={negatives!r} needs the other rows of the batch; use "
      f"'all_seen', and an objective other than {' or '.join(map(repr, PAIRED))}.",
    ),
    (
      spec.own_objective and config.objective != "ce",
      f"config.method.name={name!r} has its own objective and ignores "
      f"config.objective={config.objective!r}; use 'ce'.",
    ),
    (
      spec.own_objective and negatives != "all_seen",
      f"config.method.name={name!r} has its own candidates and ignores "
      f"config.negatives={negatives!r}; use 'auto'.",
    ),
  ]


def _of_objective(config: ConfigDict) -> list[Rule]:
  """Returns the rules on objectives and their negatives."""
  negatives = config.negatives
  return [
    *(
      (
        (config.objective == pairs) != (negatives == own),
        f"config.objective={pairs!r} and config.negatives={own!r} go together; set "
        "both, or leave config.negatives='auto'.",
      )
      for pairs, own in PAIRED.items()
    ),
    (
      config.objective == "ce" and not negatives.startswith("all_"),
      f"config.objective='ce' normalises over many classes, not over {negatives!r}; "
      "use config.negatives='all_seen' or 'all_of_batch'.",
    ),
    (
      negatives == "all_classes" and config.stream.scenario == "task",
      "config.negatives='all_classes' compares the classes of all tasks, and "
      "config.stream.scenario='task' only those of one task; use 'all_seen'.",
    ),
  ]


def _of_inputs(config: ConfigDict) -> list[Rule]:
  """Returns the rule on the network and the shape of its inputs, if that is known."""
  shape = data.find(config.data.name).image_shape
  name, spec = config.network.name, networks.find(config.network.name)
  fitting = [n for n, other in networks.NETWORKS.items() if fits(other, shape)]
  return [
    (
      not fits(spec, shape),
      f"config.network.name={name!r} takes {spec.wants}, unlike the inputs of "
      f"config.data.name={config.data.name!r}; use {' or '.join(fitting)}.",
    )
  ]


def fits(network: networks.NetworkSpec, shape: tuple[int, ...] | None) -> bool:
  """Returns whether a network takes inputs of `shape`: (H, W), (H, W, C) or (F,)."""
  if shape is None:
    return True
  return network.accepts((*shape, 1) if len(shape) == 2 else shape)


def _of_data(config: ConfigDict) -> list[Rule]:
  """Returns the rules on images and on held-out images."""
  spec = data.find(config.data.name)
  colour = spec.image_shape is None or len(spec.image_shape) == 3
  return [
    (
      config.data.augment != "none" and not colour,
      f"config.data.augment={config.data.augment!r} is for colour images, not for "
      f"{config.data.name!r}; use 'none'.",
    ),
    (
      config.data.validation > 0 and config.data.memorise,
      f"config.data.validation={config.data.validation} holds images out of training, "
      "and config.data.memorise=True scores on the training images; set one of them to "
      "0 or False.",
    ),
    *(_of_channels(config, key) for key in ("mean", "std")),
    (
      any(isinstance(std, float | int) and not std > 0 for std in config.data.std),
      f"config.data.std={config.data.std!r} divides the pixels; give positive numbers.",
    ),
  ]


def _of_channels(config: ConfigDict, key: str) -> Rule:
  """Returns the rule on a key of `data` that has a number for each channel."""
  shape, values = data.find(config.data.name).image_shape, config.data[key]
  channels = shape[2] if shape is not None and len(shape) == 3 else 1
  numbers = all(isinstance(v, float | int) and math.isfinite(v) for v in values)
  unfit = shape is not None and len(values) not in (0, channels)
  return (
    not numbers or unfit,
    f"config.data.{key}={values!r} does not fit the images of config.data.name="
    f"{config.data.name!r}; give {channels} number{'s' * (channels > 1)}, one for "
    "each channel, or () for the default.",
  )


def _of_generated(config: ConfigDict) -> list[Rule]:
  """Returns the rules on generated images, which are not stored."""
  name = f"config.data.name={config.data.name!r}"
  return [
    (
      not config.data.memorise,
      f"{name} has only random labels, which can only be memorised; set "
      "config.data.memorise=True.",
    ),
    (
      config.data.images == 0,
      f"{name} needs the number of images to generate; set config.data.images.",
    ),
    (
      config.data.source != "auto",
      f"{name} is generated, not read from config.data.source="
      f"{config.data.source!r}; use 'auto'.",
    ),
    (
      config.data.augment != "none",
      f"config.data.augment={config.data.augment!r} is for stored images, not for "
      f"{name}; use 'none'.",
    ),
    (
      not networks.find(config.network.name).takes_rows,
      f"{name} consists of rows of numbers, which config.network.name="
      f"{config.network.name!r} does not take; use 'ebm_capacity'.",
    ),
    (
      config.stream.name == "permuted",
      f"config.stream.name='permuted' is for stored images, not for {name}; use "
      "'split'.",
    ),
    (
      len(config.data.mean) + len(config.data.std) > 0,
      f"{name} is not normalised; leave config.data.mean and config.data.std at ().",
    ),
  ]


def require_classes(config: ConfigDict, sizes: np.ndarray) -> None:
  """Refuses tasks whose numbers of classes, `sizes` [T], a method cannot learn.

  This is not a rule on a configuration, because the sizes depend on the data. Some
  methods compare each row with another class of its task; some methods and networks
  need tasks of equal size.
  """
  spec, negatives = methods.find(config.method.name), config.negatives
  network = networks.find(config.network.name)
  if len(set(sizes.tolist())) > 1 and (spec.even_tasks or network.contexts):
    raise ConfigError(
      f"config.method.name={config.method.name!r} needs the same number of classes in "
      f"each task, and they have {', '.join(map(str, sizes))}; choose another "
      "config.stream.tasks."
    )
  alone = config.stream.setting == "boundary_aware" and min(sizes) == 1
  if spec.positives_alone or not alone:
    return
  near = negatives in ("one_of_task", *IN_BATCH) and not spec.joins_batch
  # A network with contexts normalises over the classes of the row's task only.
  if near or config.stream.scenario != "class" or network.contexts:
    raise ConfigError(
      f"config.stream.tasks={config.stream.tasks} leaves one class in a task, which "
      f"config.method.name={config.method.name!r} with config.negatives={negatives!r} "
      "cannot compare with another; use fewer tasks."
    )


def require_period(config: ConfigDict, steps: int) -> None:
  """Refuses a consolidation period that is longer than a run of `steps`."""
  every = config.method.get("consolidate_every", 0)
  if every > steps:
    raise ConfigError(
      f"config.method.name={config.method.name!r} would never consolidate: "
      f"config.method.consolidate_every={every}, and the run has {steps} steps; give "
      f"{steps} or less."
    )


def require_shape(config: ConfigDict, shape: tuple[int, ...]) -> None:
  """Refuses loaded data of a shape that the network cannot take."""
  spec: Any = networks.find(config.network.name)
  if not fits(spec, shape):
    raise ConfigError(
      f"config.network.name={config.network.name!r} takes {spec.wants}, and the inputs "
      f"have the shape {shape}; use 'ebm' or 'sbc'."
    )
  if config.stream.name == "permuted" and not spec.takes_rows:
    raise ConfigError(
      "config.stream.name='permuted' permutes rows of pixels, which config.network.name"
      f"={config.network.name!r} does not take; use 'ebm' or 'sbc'."
    )
