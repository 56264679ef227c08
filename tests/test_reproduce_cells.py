"""The paper's cells and their commands."""

import ast
import json
import re
import shlex
from typing import Any

import pytest
from ml_collections import ConfigDict

from ebmjax import methods
from ebmjax.config import flat_keys, loading
from ebmjax.config.identity import identity, nested, recorded
from ebmjax.paper import commands, estimates, printed, protocols
from ebmjax.paper.cells import Cell, all_cells, table_cells, tables
from tests.helpers import ROOT

EBM = "boundary_aware_no_replay/ebm/split_mnist"
CELLS = {cell.id: cell for cell in all_cells()}
RUNNABLE = [
  cell for cell in all_cells() if not commands.obstacle(cell.chosen, cell.learner)
]


def changed(chosen: str, **changes: Any) -> dict[str, Any]:
  """Returns the recorded configuration of FILE[:variants] with other values."""
  config = ConfigDict(commands.load(chosen).to_dict())
  config.update_from_flattened_dict(
    {key.replace("__", "."): value for key, value in changes.items()}
  )
  return recorded(config.to_dict())


def test_the_tables_have_115_cells_with_readable_unique_ids():
  assert len(table_cells()) == 115
  assert len(CELLS) == len(all_cells()) == 117
  assert CELLS.keys() >= {
    EBM,
    "number_of_tasks/lwf/cifar100/50_tasks",
    "negative_sampling/ebm/cifar100/all_neg_seen",
    "label_conditioning/ebm/cifar10/end_fix_norm2_v4",
    "capacity/sbc/cifar10_random_labels",
  }
  assert {name: len(cells) for name, cells in tables(table_cells()).items()} == {
    "boundary_aware_no_replay": 29,
    "boundary_aware_replay": 22,
    "cd_objective": 10,
    "negative_sampling": 3,
    "label_conditioning": 9,
    "boundary_free": 20,
    "number_of_tasks": 20,
    "alternative_objective": 2,
  }


def rows_of(file: str) -> list[tuple[str, float]]:
  """Returns what a configuration's own text says: variants, and the paper's figure.

  `:ewc,sbc (and si, lwf)` stands for three; `(none)` for the file alone.
  """
  module = ast.parse((ROOT / "configs" / file).read_text("utf-8"))
  found: list[tuple[str, float]] = []
  for line in (ast.get_docstring(module) or "").splitlines():
    if not line.startswith(("| :", "| (none)")):
      continue
    _, left, figures, *_ = line.split("|")
    named = re.findall(r":([a-z]\w*(?:,\w+)*)", left) or [""]
    also = re.search(r"\(and ([^)]*)\)", left)
    if also:
      (method,) = [name for name in named[0].split(",") if name in methods.METHODS]
      named += [named[0].replace(method, other) for other in also[1].split(", ")]
    numbers = [float(number.split("+-")[0]) for number in figures.split(",")]
    found += zip(named, numbers, strict=True)
  return found


@pytest.mark.parametrize(
  "file", ["splitmnist.py", "permmnist.py", "cifar10.py", "cifar100.py"]
)
def test_a_configuration_s_text_names_the_commands_of_the_cells(file):
  cells: dict[tuple[str, ...], set[float]] = {}
  for cell in all_cells():
    own, _, variants = cell.chosen.partition(":")
    if own.endswith(f"/{file}") and not ("sbc" in variants and "tasks" in variants):
      names = tuple(sorted(variants.split(",")))
      cells.setdefault(names, set()).add(cell.accuracy)
  rows = {tuple(sorted(names.split(","))): figure for names, figure in rows_of(file)}
  assert rows.keys() == cells.keys()
  assert all(figure in cells[names] for names, figure in rows.items())


@pytest.mark.parametrize("cell", RUNNABLE, ids=lambda cell: cell.id)
def test_a_cell_s_command_is_the_run_of_this_very_cell(cell: Cell):
  config = commands.load(cell.chosen)
  rest = cell.id.split("/")[3:]
  if cell.table == "capacity":
    assert (config.data.name, config.data.memorise) == ("cifar10", True)
    assert (config.network.name, config.stream.tasks) == (cell.method, 1)
    return
  if cell.table in ABLATIONS:
    expected = ABLATIONS[cell.table][rest[0]]
    assert {key: flat_keys(config)[key] for key in expected} == expected
  found = printed.lookup(config.to_dict())
  assert found is not None
  assert (found["accuracy"], found["method"], found["dataset"]) == (
    cell.accuracy,
    cell.method,
    cell.dataset,
  )
  assert found["setting"] == config.stream.setting
  assert (cell.seeds == 5) == (config.stream.setting == "boundary_free")
  if rest and cell.table not in ABLATIONS:
    assert rest == [f"{config.stream.tasks}_tasks"]


ABLATIONS: dict[str, dict[str, dict[str, Any]]] = {
  "negative_sampling": {
    "all_neg_seen": {"objective": "likelihood", "negatives": "all_seen"},
    "all_neg_batch": {"objective": "likelihood", "negatives": "all_of_batch"},
    "one_neg_batch": {"objective": "contrastive", "negatives": "one_by_frequency"},
  },
  "label_conditioning": {
    name: {
      "network.position": position,
      "network.gate": gate,
      "network.embedding": embedding,
    }
    for name, position, gate, embedding in (
      ("beginning_v1", "v1", "softmax", "learned"),
      ("middle_v2", "v2", "softmax", "learned"),
      ("middle_v3", "v3", "softmax", "learned"),
      ("end_v4", "v4", "none", "learned"),
      ("end_fix_v4", "v4", "none", "fixed"),
      ("end_fix_norm2_v4", "v4", "l2_scaled", "fixed"),
      ("end_fix_softmax_v4", "v4", "softmax", "fixed"),
      ("end_norm2_v4", "v4", "l2_scaled", "learned"),
      ("end_softmax_v4", "v4", "softmax", "learned"),
    )
  },
}


def test_the_paper_s_other_figures():
  ratios = {
    name: printed.inference_seconds(name)["ebm"]
    / printed.inference_seconds(name)["sbc"]
    for name in ("split_mnist", "cifar10")
  }
  assert ratios == {
    "split_mnist": pytest.approx(1.23, abs=0.005),
    "cifar10": pytest.approx(1.07, abs=0.005),
  }
  known = [cell.accuracy for cell in all_cells() if cell.table == "capacity"]
  assert known == [82.81, 42.19]


def test_figures_of_other_studies_have_those_studies_protocols():
  source = {cell.id for cell in all_cells() if "source" in cell.chosen.split(",")}
  main = "boundary_aware_no_replay"
  assert source >= {f"{main}/ewc/perm_mnist", f"{main}/sbc/split_mnist"}
  assert source >= {f"{main}/bgd/perm_mnist", f"{main}/lwf/cifar100"}
  assert not any(CELLS[name].method.startswith("ebm") for name in source)
  assert not any("_er" in CELLS[name].method for name in source)
  assert not any(name.startswith(("boundary_free", "cd_")) for name in source)
  assert commands.load(CELLS[f"{main}/ewc/perm_mnist"].chosen).stream.iterations == 5000
  on_cifar100 = [cell for cell in RUNNABLE if cell.dataset == "cifar100"]
  convs = {commands.load(cell.chosen).network.conv for cell in on_cifar100}
  assert convs == {"fixed_statistics", "finetune"}
  for cell in on_cifar100:  # brain-inspired replay's authors fix them, too
    told = any("fixed" in words for words in protocols.deviations(cell.id))
    assert told == (cell.method not in ("bir", "dgr"))
    trains = commands.load(cell.chosen).network.conv == "finetune"
    assert trains == (cell.method == "dgr")  # which shows its network images


def test_every_cell_of_the_paper_s_tables_is_runnable():
  assert len(RUNNABLE) >= 115


def test_a_new_key_leaves_the_names_of_folders_as_they_are(monkeypatch):
  """A run that was broken off before it is found again."""
  chosen, new = CELLS[EBM].chosen, {"method.brand_new": 1.0}
  before = commands.short_name(chosen)
  own, usual = (
    json.dumps(json.loads(text) | new)
    for text in (commands.identity_of(chosen), identity({}))
  )
  monkeypatch.setattr(commands, "identity_of", lambda _: own)
  monkeypatch.setattr(commands, "identity", lambda _: usual)
  assert commands.short_name(chosen) == before


def test_what_is_runnable_follows_the_registry(monkeypatch):
  cell = CELLS["boundary_aware_no_replay/si/split_mnist"]
  assert commands.obstacle(cell.chosen, cell.learner) is None
  with monkeypatch.context() as patch:
    patch.delitem(methods.METHODS, "si")
    assert "si does not exist" in str(commands.obstacle(cell.chosen, cell.learner))
  unknown = f"{cell.chosen},nonesuch"
  monkeypatch.setitem(methods.METHODS, "nonesuch", methods.METHODS["si"])
  assert "unknown variant 'nonesuch'" in str(commands.obstacle(unknown, "nonesuch"))


CHANGES: list[dict[str, Any]] = [
  {"optimiser__learning_rate": 0.00025},
  {"stream__tasks": 10, "method__strength": 1e8},
  {"data__images": 3000},
]


@pytest.mark.parametrize("changes", [{}, *CHANGES], ids=str)
def test_the_command_of_a_run_makes_the_same_configuration(changes):
  for cell in RUNNABLE[:: 7 if changes else 1]:
    flat = changed(cell.chosen, **changes)
    chosen, *flags = shlex.split(commands.describe(flat))
    if not changes:
      assert not flags
    argv = ["main", f"--config={loading.root() / chosen}", *flags]
    if flat.get("network.pretrained"):
      argv.append("--config.network.pretrained=elsewhere.npz")
    config, _ = loading.parse(argv)
    config.negatives = flat["negatives"]  # resolved in `flat`, perhaps auto here
    assert identity(recorded(config.to_dict())) == identity(flat)


@pytest.mark.parametrize(
  "chosen",
  ["configs/pretrain_cifar10.py", "configs/permmnist.py:gss_greedy,sbc,source"],
)
def test_the_command_of_a_run_is_its_shortest(chosen):
  """Without `sbc`, which the one does not know, and `domain`, which the other has."""
  flat = recorded(commands.load(chosen).to_dict())
  assert not flat["network.pretrained"]
  assert commands.describe(flat) == chosen


def test_a_stored_configuration_is_the_run_s_again():
  flat = recorded(commands.load(CELLS[EBM].chosen).to_dict())
  assert recorded(nested(flat)) == flat


def test_a_key_of_another_method_does_not_make_another_run():
  """A run from before the key was added is the same, whatever its value is now."""
  flat = recorded(commands.load(CELLS[EBM].chosen).to_dict())
  older = {key: value for key, value in flat.items() if key != "method.adapted"}
  assert identity(older) == identity(flat | {"method.adapted": 8})
  pgma = {"method.name": "pgma"}
  assert identity(older | pgma) != identity(flat | pgma | {"method.adapted": 8})


@pytest.mark.parametrize(
  ("chosen", "steps"),
  [
    ("configs/permmnist.py:sbc,source", 50_000),
    ("configs/splitmnist.py:boundary_free", 4_350),
    ("configs/permmnist.py:boundary_free", 46_800),
    ("configs/cifar10.py:boundary_free", 19_500),
    ("configs/cifar100.py:boundary_free,fixed", 19_500),
    ("configs/cifar100.py:tasks50,fixed", 250_000),
  ],
)
def test_steps(chosen, steps):
  assert estimates.steps(commands.load(chosen)) == steps
