"""The figures of Li et al. (2022), and which of them a run's config reproduces."""

import functools
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

DATASETS = {  # (stream, data) -> the paper's data set and its usual number of tasks
  ("split", "mnist"): ("split_mnist", 5),
  ("permuted", "mnist"): ("perm_mnist", 10),
  ("split", "cifar10"): ("cifar10", 5),
  ("split", "cifar100"): ("cifar100", 10),
}
METHODS = {  # (network, method, objective) -> the paper's row
  ("ebm", "finetune", "contrastive"): "ebm",
  ("ebm", "finetune", "joint_pairs"): "ebm_alt_cd",
  ("ebm", "finetune", "likelihood"): "ebm",
  ("ebm", "er", "contrastive"): "ebm_er",
  ("sbc", "finetune", "ce"): "sbc",
  ("sbc", "finetune", "contrastive"): "sbc_cd",
  ("sbc", "er", "ce"): "sbc_er",
  ("sbc", "gss_greedy", "ce"): "gss_greedy",
  ("sbc", "dgr", "ce"): "dgr",
  ("sbc", "bir", "ce"): "bir",
  ("sbc", "pgma", "ce"): "pgma",
}
REGULARISERS = ("ewc", "online_ewc", "si", "lwf", "mas", "bgd")
SUFFIXES = {"ce": "", "contrastive": "_cd"}
# Methods whose loss is their own, whatever `objective` says.
OWN_OBJECTIVE = ("icarl", "ctn")
ABLATIONS = ("negatives", "architecture")  # keys of cells that single out a variant
# (row, data set) -> scenario and tasks of figures that the paper took from other
# streams than its own, which is class-incremental.
_OTHER_STREAMS = {
  ("gss_greedy", "perm_mnist"): ("domain", 10),
  ("ctn", "perm_mnist"): ("task", 20),
}
# Of the EBM on each data set and setting, as its figures were made.
_GATED_LAYERS = {
  **{(data, "boundary_aware"): 1 for data in ("split_mnist", "perm_mnist")},
  **{(data, "boundary_free"): 2 for data in ("split_mnist", "perm_mnist")},
  **{("cifar100", setting): 2 for setting in ("boundary_aware", "boundary_free")},
}
_POSITIONS = {"v1": "beginning_v1", "v2": "middle_v2", "v3": "middle_v3"}
# MNIST's plain l2 is none of the table's: see configs/cifar10.py.
_GATES = {"none": "", "l2": "_plain_l2", "l2_scaled": "_norm2", "softmax": "_softmax"}
_EMBEDDINGS = {"learned": "", "fixed": "_fix"}
_NEGATIVES = {"all_seen": "all_neg_seen", "all_of_batch": "all_neg_batch"}


@functools.cache
def cells() -> tuple[dict[str, Any], ...]:
  """Returns the cells of the paper's tables, in the paper's order.

  Each has table, setting, method, dataset, accuracy and sem (percent; sem may be None),
  and some have num_tasks, negatives, architecture or note.
  """
  return tuple(_content()["cells"])


def capacity_cells() -> tuple[dict[str, Any], ...]:
  """Returns the two training accuracies of the capacity study, as cells."""
  return tuple(_content()["capacity"]["cells"])


def inference_seconds(dataset: str) -> dict[str, float]:
  """Returns the paper's seconds of a forward pass of SBC and EBM, on its GPU."""
  return dict(_content()["inference_seconds"][dataset])


@functools.cache
def _content() -> dict[str, Any]:
  text = resources.files("ebmjax.paper").joinpath("printed.json").read_text("utf-8")
  content: dict[str, Any] = json.loads(text)
  return content


def lookup(config: Mapping[str, Any]) -> dict[str, Any] | None:
  """Returns the cell of the method, data and setting of `config`, None without one.

  Widths, iterations and strengths are not looked at: a run of others has it, too. Where
  two tables repeat a run, the earlier (the main results) is returned.
  """
  stream = config["stream"]
  dataset, usual_tasks = DATASETS.get((stream["name"], config["data"]["name"]), ("", 0))
  method = _row(config) or ""
  scenario, usual_tasks = _OTHER_STREAMS.get((method, dataset), ("class", usual_tasks))
  if stream["scenario"] != scenario or not dataset or not method:
    return None
  if any(config["data"].get(key) for key in ("memorise", "images", "validation")):
    return None  # other labels, fewer images, or other images to score on
  ablation = _ablation(config, dataset)
  for cell in cells():
    same = (cell["setting"], cell["method"], cell["dataset"]) == (
      stream["setting"],
      method,
      dataset,
    )
    tasks = cell.get("num_tasks", usual_tasks)
    own = {key: cell[key] for key in ABLATIONS if key in cell}
    if same and tasks == stream["tasks"] and own == ablation:
      return dict(cell)
  return None


def _ablation(config: Mapping[str, Any], dataset: str) -> dict[str, str] | None:
  """Returns what an EBM's cell has of `ABLATIONS`: nothing in the main tables.

  None where the paper has no such variant.
  """
  network = config["network"]
  if network["name"] != "ebm":
    return {}
  if config["objective"] == "likelihood":
    found = _NEGATIVES.get(config.get("negatives", ""))
    return {"negatives": found} if found and dataset == "cifar100" else None
  if dataset != "cifar10":
    layers = _GATED_LAYERS.get((dataset, config["stream"]["setting"]))
    return {} if network.get("gated_layers", layers) == layers else None
  embedding = _EMBEDDINGS.get(network.get("embedding", "learned"), "?")
  gate = _GATES[network.get("gate", "softmax")]
  end = f"end{embedding}{gate}_v4"
  name = _POSITIONS.get(network.get("position", "v4"), end)
  return {} if name == "end_softmax_v4" else {"architecture": name}


def _row(config: Mapping[str, Any]) -> str | None:
  """Returns the paper's name for a network, method and objective, or None."""
  network, method = config["network"]["name"], config["method"]["name"]
  objective = config["objective"]
  if network == "sbc" and method in OWN_OBJECTIVE:
    return method
  if network == "sbc" and method in REGULARISERS and objective in SUFFIXES:
    return method + SUFFIXES[objective]
  return METHODS.get((network, method, objective))
