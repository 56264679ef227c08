"""The configuration: every key with its default."""

import difflib
from collections.abc import Iterable
from typing import Any

from ml_collections import ConfigDict

# Keys that say where things lie, not what they are; each machine may have its own.
PLACES = (
  *("data.dir", "data.source", "data.download", "data.require_full"),
  "network.pretrained",
)

_DATA = {
  "name": "mnist",
  "source": "auto",
  "dir": "",
  "require_full": False,
  "download": True,  # whether the network may be asked for a missing set
  "augment": "none",  # or crop_and_flip: CIFAR-10's, at every draw
  # Of each channel, pixels counting from 0 to 1; (): the set's usual ones.
  "mean": (),
  "std": (),
  "images": 0,  # the first so many training images; 0: all
  # Training images of each class held out, to be scored on in place of the test images.
  "validation": 0,
  "memorise": False,  # random labels; the training images are the test images
}
_STREAM = {
  "name": "split",
  "tasks": 5,
  "setting": "boundary_aware",
  "scenario": "class",
  "class_order": "fixed",
  # Deviation: `released`, as in the authors' code, leaves pixels in place for seed 0
  # alone; the paper tells of no such difference.
  "first_permutation": "released",
  "iterations": 2000,  # per task, boundary-aware
  "epochs_per_task": 10,  # per nominal task, boundary-free
  "batch_size": 128,
}
_NETWORK = {
  "name": "ebm",
  # conv4: CIFAR-10's, conv5: CIFAR-100's, resnet18: GSS's there, flat: capacity study
  "trunk": "none",
  "conv": "batch_statistics",  # what training does to conv5; see networks/trunked
  "conv_form": "auto",  # native on GPU and TPU, blocked on CPU
  "pretrained": "",  # an npz file with the weights of conv5
  "position": "v4",  # where the label enters conv4
  "mask_off": 0.85,  # the share of units a label's mask switches off
  "hidden": 400,
  "label_rows": 0,  # of flat's table of labels, and its outputs; 0: one a class
  "gated_layers": 1,
  "gate": "l2",
  "embedding": "learned",
  "skip": True,
  "context": 0,  # CTN: numbers that stand for a task; 0: tasks are not told apart
  "init": "pytorch",  # pytorch_seed: what PyTorch draws for each seed; flax; xavier...
}
_METHOD = {
  "name": "finetune",
  "consolidate_every": 0,  # steps; 0: at task boundaries
  # EWC, Online EWC, SI, MAS: of the pull to old weights; CTN: to what was said of rows;
  # PGMA: to what dreams meant, for each task there is in all
  "strength": 1.0,
  "decay": 1.0,  # Online EWC: what is left of the old importance
  "fisher": "argmax",  # EWC: whose label's likelihood; see importance.py
  "fisher_samples": 0,  # EWC: images of a task to estimate on; 0: all
  "damping": 0.1,  # SI: added to the squared path
  "path_gradient": "total",  # SI: of the whole loss, or of the task's alone
  "importance": "batch",  # MAS: of the mean output of a batch, or per_row
  "temperature": 2.0,  # LwF, iCaRL, BI-R, CTN: softens the old network's outputs
  "distillation": "sum",  # LwF: over classes, or their mean
  "budget": 1000,  # ER, GSS, iCaRL, CTN: stored images in all
  "quota": "task",  # ER: what shares the budget equally, task or class
  "replay_weights": "by_task",  # ER: 1/t and 1-1/t; or mean, sum
  "repeats": 3,  # GSS, CTN, PGMA (its autoencoder): times a step goes over its batch
  "inner_steps": 2,  # CTN: each time, descents of the base to one of the context
  "context_rate": 0.1,  # CTN: the context's learning rate
  "directions": 10,  # GSS: gradients of stored rows to compare with
  "generator": "dense",  # PGMA: layers of its autoencoder; or conv
  "generator_hidden": 400,  # DGR, BI-R, PGMA: units of the generator's layers
  "generator_channels": 64,  # PGMA: of the first convolution
  "latent": 100,  # DGR, BI-R, PGMA: numbers of a generated image's code
  "dreams": 400,  # PGMA: generated images a step
  "adapted": 80,  # PGMA: features whose weights are generated
  "gate_off": 0.8,  # BI-R: share of the generator's units a class switches off
  "std_init": 0.02,  # BGD: every weight's first deviation
  "step_size": 1.0,  # BGD
  "draws": 10,  # BGD: Monte-Carlo gradients a step
}
_OPTIMISER = {
  "name": "adam",  # or sgd, which has no moments
  "learning_rate": 1e-4,
  "b1": 0.9,
  "b2": 0.999,
}
_EVAL = {
  "at_task_ends": True,  # the last step is always evaluated
  "every": 0,  # and every so many steps; 0: not in between
  "batch_size": 200,
}
_RUNNER = {
  "chunk": 100,
  "driver": "auto",
  "devices": 0,  # that share the seeds, of all processes; 0: all there are
  "batch_devices": 1,  # of these, how many share each batch
}


def default() -> ConfigDict:
  """Returns the whole tree of keys; an experiment's file sets what differs."""
  config = ConfigDict()
  config.seed = 0  # the first seed
  config.seeds = 1  # how many, counting from it; all run in one process
  config.objective = "contrastive"
  config.negatives = "auto"  # one_of_task with boundaries, one_of_batch without
  config.data = ConfigDict(_DATA)
  config.stream = ConfigDict(_STREAM)
  config.network = ConfigDict(_NETWORK)
  config.method = ConfigDict(_METHOD)
  config.optimiser = ConfigDict(_OPTIMISER)
  config.eval = ConfigDict(_EVAL)
  config.checkpoint = ConfigDict({"every": 2000, "keep": 2})
  config.runner = ConfigDict(_RUNNER)
  return config


def lookup(config: ConfigDict, dotted: str) -> Any:
  """Returns the value of a key such as "stream.tasks"."""
  for part in dotted.split("."):
    config = config[part]
  return config


def flat_keys(config: ConfigDict, prefix: str = "") -> dict[str, Any]:
  """Returns {"stream.tasks": 5, ...}: every leaf of the tree under its dotted name."""
  out: dict[str, Any] = {}
  for key, value in config.items():
    if isinstance(value, ConfigDict):
      out |= flat_keys(value, f"{prefix}{key}.")
    else:
      out[prefix + key] = value
  return out


def nearest(name: str, names: Iterable[str]) -> str | None:
  """Returns the name most like `name`; a key also matches by its last part."""
  names = list(names)
  close = difflib.get_close_matches(name, names, 1, cutoff=0.6)
  if close:
    return close[0]
  tails = {full.rsplit(".", 1)[-1]: full for full in names}
  close = difflib.get_close_matches(name.rsplit(".", 1)[-1], tails, 1, cutoff=0.6)
  return tails[close[0]] if close else None


def choices_sentence(value: Any, choices: Iterable[str]) -> str:
  """Returns what an error message says of the valid choices, the nearest first."""
  choices = list(choices)
  hint = nearest(str(value), choices)
  start = f"did you mean {hint!r}? The" if hint else "the"
  return f"{start} choices are {', '.join(choices)}."
