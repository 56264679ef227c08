"""The cells of the paper's tables, each with the command that measures it."""

import functools
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ebmjax.paper import printed, protocols

FILES = {
  "split_mnist": "configs/splitmnist.py",
  "perm_mnist": "configs/permmnist.py",
  "cifar10": "configs/cifar10.py",
  "cifar100": "configs/cifar100.py",
  "cifar10_random_labels": "configs/capacity.py",
}
_EBM = {"ebm": (), "ebm_er": ("er",), "ebm_alt_cd": ("joint_pairs",)}
_NEGATIVES = {  # the paper's name -> variant of configs/cifar100.py
  "all_neg_seen": ("all_seen",),
  "all_neg_batch": ("all_of_batch",),
  "one_neg_batch": (),
}
_ARCHITECTURES = {  # the paper's name -> variant of configs/cifar10.py
  "beginning_v1": ("v1",),
  "middle_v2": ("v2",),
  "middle_v3": ("v3",),
  "end_v4": ("end",),
  "end_fix_v4": ("end_fix",),
  "end_fix_norm2_v4": ("end_fix_norm2",),
  "end_fix_softmax_v4": ("end_fix_softmax",),
  "end_norm2_v4": ("end_norm2",),
  "end_softmax_v4": (),
}


class Cell(NamedTuple):
  """A published figure and what reproduces it."""

  id: str
  table: str
  method: str  # the paper's row
  dataset: str
  accuracy: float  # percent
  sem: float | None
  seeds: int  # the paper's number of them
  learner: str  # the name in ebmjax.methods.METHODS
  chosen: str  # FILE[:variants], to be given as --config


@functools.cache
def table_cells() -> tuple[Cell, ...]:
  """Returns the 115 cells of the paper's tables, in the paper's order."""
  return tuple(map(_make, printed.cells()))


@functools.cache
def all_cells() -> tuple[Cell, ...]:
  """Returns the cells of the tables and the two figures of the capacity study."""
  return table_cells() + tuple(map(_make, printed.capacity_cells()))


def cell_of(config: Mapping[str, Any]) -> Cell | None:
  """Returns the cell that `printed.lookup` finds for a run's `config`, None without."""
  found = printed.lookup(config)
  return None if found is None else _make(found)


def tables(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
  """Returns the cells by table, tables in the order of their first cells."""
  found: dict[str, list[Cell]] = {}
  for cell in cells:
    found.setdefault(cell.table, []).append(cell)
  return found


def _make(published: dict[str, Any]) -> Cell:
  parts = [published[key] for key in ("table", "method", "dataset")]
  if "num_tasks" in published:
    parts.append(f"{published['num_tasks']}_tasks")
  parts += [published[key] for key in printed.ABLATIONS if key in published]
  names = ",".join(_variants(published))
  file = FILES[published["dataset"]]
  return Cell(
    id="/".join(parts),
    table=published["table"],
    method=published["method"],
    dataset=published["dataset"],
    accuracy=published["accuracy"],
    sem=published["sem"],
    seeds={"boundary_aware": 10, "boundary_free": 5, "memorise": 1}[
      published["setting"]
    ],
    learner=_learner(published["method"]),
    chosen=f"{file}:{names}" if names else file,
  )


def _learner(method: str) -> str:
  """Returns the registry's name of the paper's row."""
  if method in ("sbc", "ebm", "sbc_cd", "ebm_alt_cd"):
    return "finetune"
  return "er" if method.endswith("_er") else method.removesuffix("_cd")


def _variants(published: dict[str, Any]) -> list[str]:
  """Returns what follows the colon of a cell's configuration file."""
  method, dataset = published["method"], published["dataset"]
  names = ["cifar10"] if dataset == "cifar10_random_labels" else []
  names += ["boundary_free"] if published["setting"] == "boundary_free" else []
  names += _method_variants(method)
  if published.get("num_tasks", 10) != 10:
    names.append(f"tasks{published['num_tasks']}")
  names += _NEGATIVES.get(published.get("negatives", ""), ())
  names += _ARCHITECTURES.get(published.get("architecture", ""), ())
  names += ["fixed"] if dataset == "cifar100" and method != "dgr" else []
  return names + (["source"] if protocols.has_own(published) else [])


def _method_variants(method: str) -> list[str]:
  if method in _EBM:
    return list(_EBM[method])
  names = ["contrastive"] if method.endswith("_cd") else []
  learner = _learner(method)
  return names + ([] if learner == "finetune" else [learner]) + ["sbc"]
