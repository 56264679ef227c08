"""The paper's cells and their commands."""

import ast
import copy
import json
import re
from collections import Counter
from typing import Any

import pytest

from ebmjax import methods
from ebmjax.config import flat_keys, loading, nested
from ebmjax.config.identity import decisive, differences, identity
from ebmjax.errors import ConfigError
from ebmjax.paper import commands, estimates
from ebmjax.paper.cells import Cell, all_cells, claims, every_cell
from ebmjax.paper.ledger import published
from tests.entries import CELLS, EBM, changed
from tests.helpers import ROOT

TABLES = [cell for cell in all_cells() if cell.table != "capacity"]


def test_the_tables_have_115_cells_with_readable_unique_ids():
  assert len(TABLES) == 115
  assert len(CELLS) == len(all_cells()) == 117
  assert CELLS.keys() >= {
    EBM,
    "number_of_tasks/lwf/cifar100/50_tasks",
    "negative_sampling/ebm/cifar100/all_neg_seen",
    "label_conditioning/ebm/cifar10/end_fix_norm2_v4",
    "capacity/sbc/cifar10_random_labels",
  }
  assert Counter(cell.table for cell in TABLES) == {
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
    own, _, variants = cell.command.partition(":")
    if own.endswith(f"/{file}") and not ("sbc" in variants and "tasks" in variants):
      names = tuple(sorted(variants.split(",")))
      cells.setdefault(names, set()).add(published(cell).mean)
  rows = {tuple(sorted(names.split(","))): figure for names, figure in rows_of(file)}
  assert rows.keys() == cells.keys()
  assert all(figure in cells[names] for names, figure in rows.items())


@pytest.mark.parametrize("cell", all_cells(), ids=lambda cell: cell.id)
def test_a_cell_s_command_is_the_run_of_this_very_cell(cell: Cell):
  config = commands.load(cell.command)
  rest = cell.id.split("/")[3:]
  if cell.table == "capacity":
    assert (config.data.name, config.data.memorise) == ("cifar10", True)
    assert (config.network.name, config.stream.tasks) == (f"{cell.row}_capacity", 1)
    return
  found = commands.cell_for(config.to_dict())
  assert found is not None and found.command == cell.command  # tables may share it
  if cell.table in ABLATIONS:
    expected = ABLATIONS[cell.table][rest[0]]
    assert {key: flat_keys(config)[key] for key in expected} == expected
  setting = "boundary_free" if cell.table == "boundary_free" else "boundary_aware"
  assert config.stream.setting == setting
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


def test_figures_of_other_studies_have_those_studies_protocols():
  source = {cell.id for cell in all_cells() if "source" in cell.command.split(",")}
  main = "boundary_aware_no_replay"
  assert source >= {f"{main}/ewc/perm_mnist", f"{main}/sbc/split_mnist"}
  assert source >= {f"{main}/bgd/perm_mnist", f"{main}/lwf/cifar100"}
  assert not any(CELLS[name].row.startswith("ebm") for name in source)
  assert not any("_er" in CELLS[name].row for name in source)
  assert not any(name.startswith(("boundary_free", "cd_")) for name in source)
  ewc = CELLS[f"{main}/ewc/perm_mnist"].command
  assert commands.load(ewc).stream.iterations == 5000
  on_cifar100 = [cell for cell in TABLES if cell.dataset == "cifar100"]
  convs = {commands.load(cell.command).network.backbone_mode for cell in on_cifar100}
  assert convs == {"fixed_statistics", "finetune"}
  for cell in on_cifar100:  # brain-inspired replay's authors fix them, too
    told = any("(fixed)" in words for words in cell.deviations)
    assert told == (cell.row not in ("bir", "dgr"))
    trains = commands.load(cell.command).network.backbone_mode == "finetune"
    assert trains == (cell.row == "dgr")  # which shows its network images


def test_every_cell_is_runnable_by_its_command_which_is_what_it_was():
  fixture = json.loads((ROOT / "tests" / "paper_commands.json").read_text())
  assert {cell.id: cell.command for cell in all_cells()} == fixture
  for cell in every_cell():
    commands.load(cell.command)


def test_what_is_known_of_the_published_figures():
  main = "boundary_aware_no_replay"
  assert CELLS[f"{main}/online_ewc/cifar100"].origin == "unknown"
  assert CELLS[f"{main}/ebm/cifar100"].origin == "the paper's authors"
  doubtful = {cell.accuracy for cell in all_cells() if cell.sem_doubtful}
  assert doubtful >= {53.12, 44.98, 50.68, 50.99, 49.44, 38.84}
  assert not CELLS[f"{main}/ebm/cifar10"].sem_doubtful  # +- 1.08 there
  assert {cell.id for cell in all_cells() if cell.reason} == {
    *("boundary_aware_replay/dgr/cifar10", "boundary_aware_replay/pgma/cifar10"),
    *(f"capacity/{row}/cifar10_random_labels" for row in ("ebm", "sbc")),
  }
  for cell in all_cells():
    if cell.floor is not None:
      assert cell.floor == 100 / commands.load(cell.command).stream.tasks
      assert published(cell).mean < 1.05 * cell.floor


def test_claims_are_about_cells():
  assert len(claims()) == 6
  for claim in claims():
    for first, second in claim.pairs:
      # The paper's own figures say what it claims.
      assert published(CELLS[first]).mean > published(CELLS[second]).mean


def test_an_unpermuted_first_task_is_a_deviation_where_there_is_one():
  for cell in all_cells():
    if "Three scenarios" in cell.origin and cell.dataset == "perm_mnist":
      released = commands.load(cell.command).stream.first_permutation == "released"
      assert released == any("unpermuted" in text for text in cell.deviations)


def test_a_new_key_leaves_the_names_of_folders_as_they_are(monkeypatch):
  """A run that was broken off before it is found again."""
  chosen, new = CELLS[EBM].command, {"method.brand_new": 1.0}
  before = commands.short_name(chosen)
  own, usual = (
    json.dumps(json.loads(text) | new)
    for text in (commands.identity_of(chosen), identity({}))
  )
  monkeypatch.setattr(commands, "identity_of", lambda _: own)
  monkeypatch.setattr(commands, "identity", lambda _: usual)
  assert commands.short_name(chosen) == before


def test_a_command_that_cannot_be_read_is_a_sentence():
  with pytest.raises(ConfigError, match="nonesuch"):
    commands.load(f"{CELLS[EBM].command}:nonesuch")
  restated = commands.restated("configs/splitmnist.py:nonesuch", {})
  assert restated == commands.UNKNOWN


@pytest.mark.parametrize(
  ("line", "expected"),
  [
    ("python -m ebmjax.main --config=configs/splitmnist.py", "configs/splitmnist.py"),
    (
      "python -m ebmjax.main --config=/far/configs/cifar100.py:fixed --config.seeds=3 "
      "--config.stream.tasks=5 --config.network.pretrained=x.npz --config.data.dir=/d "
      "--config.eval.every=5 --config.method.strength=2.0",
      "configs/cifar100.py:fixed --config.method.strength=2.0 --config.stream.tasks=5",
    ),
    (
      "python -m ebmjax.main --config configs/splitmnist.py:sbc --config.seeds 3 "
      "-config.negatives all_seen",
      "configs/splitmnist.py:sbc --config.negatives=all_seen",
    ),
    ("python -m ebmjax.main --config=elsewhere/own.py", commands.UNKNOWN),
    ("python -m ebmjax.main --config=configs/mine.py", commands.UNKNOWN),
    (None, commands.UNKNOWN),
  ],
)
def test_a_command_is_kept_without_seeds_and_places(line, expected):
  assert commands.shortened(line) == expected


def near(chosen: str, **changes: Any) -> str | None:
  """Returns the id of the cell for a run of FILE[:variants] with other values."""
  cell = commands.cell_for(nested(changed(chosen, **changes)))
  return cell and cell.id


def test_a_run_near_to_a_cell_s_gets_it():
  split = "configs/splitmnist.py"
  assert near(split, stream__iterations=7, network__hidden=3) == EBM
  assert near(f"{split}:sbc") == "boundary_aware_no_replay/sbc/split_mnist"
  assert near(f"{split}:ewc,sbc") == "boundary_aware_no_replay/ewc/split_mnist"
  contrastive = near(f"{split}:contrastive,si,sbc", optimiser__learning_rate=0.1)
  assert contrastive == "cd_objective/si_cd/split_mnist"
  assert near("configs/cifar10.py:v2", stream__iterations=1) == (
    "label_conditioning/ebm/cifar10/middle_v2"
  )


def test_a_file_that_cannot_be_read_loses_no_run(monkeypatch, tmp_path):
  """Somebody is editing it: the figures of the other files are still found."""
  config = commands.load("configs/splitmnist.py").to_dict()
  cached = (commands.load, commands.identity_of, commands.problem_of)
  (tmp_path / "configs").mkdir()
  (tmp_path / "configs" / "splitmnist.py").write_text("def get_config(")
  monkeypatch.setattr(loading, "root", lambda: tmp_path)
  for function in cached:
    function.cache_clear()
  try:
    assert commands.cell_for(config) is None
  finally:
    for function in cached:
      function.cache_clear()


@pytest.mark.parametrize(
  "changes",
  [
    {"data__name": "fashion_mnist"},
    {"data__images": 100},
    {"data__validation": 5},
    {"data__memorise": True},
    {"stream__name": "permuted"},
    {"stream__tasks": 2},
    {"stream__scenario": "domain"},
    {"method__name": "package.module:OUTSIDE"},
    {"network__name": "other"},
  ],
  ids=str,
)
def test_another_problem_method_or_network_has_no_cell(changes):
  config = nested(changed("configs/splitmnist.py"))
  for key, value in changes.items():
    group, name = key.split("__")
    config[group][name] = value
  assert commands.cell_for(config) is None


def test_a_component_that_is_not_installed_is_compared_as_it_is():
  """Somebody else's run: its keys are not known, except that seeds decide nothing."""
  config = commands.load(CELLS[EBM].command).to_dict()
  config["method"] = {"name": "package.module:OUTSIDE", "strength": 2.0}
  again, other = copy.deepcopy(config), copy.deepcopy(config)
  again["seed"], other["method"]["strength"] = 7, 3.0
  assert identity(config) == identity(again)
  assert differences(config, other) == (("method.strength", 2.0, 3.0),)


def test_a_stored_configuration_is_the_run_s_again():
  flat = decisive(commands.load(CELLS[EBM].command).to_dict())
  assert decisive(nested(flat)) == flat


def test_a_key_of_another_method_does_not_make_another_run():
  """A run from before the key was added is the same, whatever its value is now."""
  flat = decisive(commands.load(CELLS[EBM].command).to_dict())
  units = "method.num_generated_units"
  older = {key: value for key, value in flat.items() if key != units}
  assert identity(older) == identity(flat | {units: 8})
  pgma = {"method.name": "pgma"}
  assert identity(older | pgma) != identity(flat | pgma | {units: 8})


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
