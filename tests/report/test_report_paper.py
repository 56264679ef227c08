"""Which of the paper's figures stands beside a run."""

import collections

import pytest

from ebmjax.paper import printed
from ebmjax.paper.printed import lookup

MNIST = [  # network, method, objective, setting, split, permuted
  ("ebm", "finetune", "contrastive", "boundary_aware", 53.12, 87.58),
  ("ebm", "finetune", "joint_pairs", "boundary_aware", 60.14, 89.15),
  ("ebm", "finetune", "contrastive", "boundary_free", 81.78, 92.35),
  ("ebm", "finetune", "joint_pairs", "boundary_free", None, None),
  ("ebm", "finetune", "difference", "boundary_aware", None, None),
  ("ebm", "finetune", "likelihood", "boundary_aware", None, None),
  ("ebm", "er", "contrastive", "boundary_aware", 91.13, 94.59),
  ("ebm", "ewc", "contrastive", "boundary_aware", None, None),
  ("sbc", "finetune", "ce", "boundary_aware", 19.90, 17.26),
  ("sbc", "finetune", "contrastive", "boundary_aware", 44.98, None),
  ("sbc", "finetune", "contrastive", "boundary_free", None, None),
  ("sbc", "finetune", "ce", "boundary_free", 24.03, 21.42),
  ("sbc", "ewc", "ce", "boundary_aware", 20.01, 25.04),
  ("sbc", "ewc", "contrastive", "boundary_aware", 50.68, None),
  ("sbc", "ewc", "ce", "boundary_free", None, None),
  ("sbc", "online_ewc", "ce", "boundary_aware", 19.96, 33.88),
  ("sbc", "online_ewc", "contrastive", "boundary_aware", 50.99, None),
  ("sbc", "online_ewc", "ce", "boundary_free", 39.62, 41.37),
  ("sbc", "si", "ce", "boundary_aware", 19.99, 29.31),
  ("sbc", "si", "contrastive", "boundary_aware", 49.44, None),
  ("sbc", "si", "ce", "boundary_free", 28.79, 35.71),
  ("sbc", "lwf", "ce", "boundary_aware", 23.85, 22.64),
  ("sbc", "lwf", "contrastive", "boundary_aware", None, None),
  ("sbc", "mas", "ce", "boundary_aware", 19.50, None),
  ("sbc", "bgd", "ce", "boundary_aware", 19.64, 84.78),
  ("sbc", "bgd", "ce", "boundary_free", 21.65, 26.15),
  ("sbc", "er", "ce", "boundary_aware", 90.65, 93.70),
  ("sbc", "er", "contrastive", "boundary_aware", None, None),
  ("sbc", "icarl", "ce", "boundary_aware", 94.57, 94.85),
  ("sbc", "joint", "ce", "boundary_aware", None, None),
]


@pytest.mark.parametrize("row", MNIST, ids=lambda row: "-".join(row[:4]))
def test_mnist(row, make_config):
  *run, split, permuted = row
  network, method, objective, setting = run
  for stream, accuracy in (("split", split), ("permuted", permuted)):
    cell = lookup(make_config(network, method, objective, stream, setting=setting))
    assert (cell and cell["accuracy"]) == accuracy


@pytest.mark.parametrize(
  "changes",
  [
    {"data": "fashion_mnist"},
    {"data": "cifar10", "stream": "permuted"},
    {"tasks": 2},
    {"tasks": 10},
    {"stream": "permuted", "tasks": 5},
    {"scenario": "task"},
    {"scenario": "domain"},
    {"setting": "unknown"},
  ],
  ids=str,
)
def test_other_runs_have_no_figure(changes, make_config):
  assert lookup(make_config(**changes)) is None


@pytest.mark.parametrize("setting", ["boundary_aware", "boundary_free"])
def test_an_ebm_of_other_layers_than_the_paper_s_has_no_figure(setting, make_config):
  """As `--config.stream.setting=boundary_free` alone would run it."""
  config, right = make_config(setting=setting), 1 + (setting == "boundary_free")
  found = []
  for layers in (1, 2):
    config["network"]["gated_layers"] = layers
    found.append(lookup(config) is not None)
  assert found == [right == 1, right == 2]


def test_cifar_reads_the_table_of_task_counts(make_config):
  run = {"data": "cifar100"}
  found = {n: lookup(make_config(**run, tasks=n)) for n in (5, 10, 20, 50, 25)}
  accuracy = {n: cell and cell["accuracy"] for n, cell in found.items()}
  assert accuracy == {5: 34.88, 10: 30.28, 20: 25.04, 50: 13.6, 25: None}


def test_main_table_comes_before_its_repetitions(make_config):
  cell = lookup(make_config(data="cifar10"))
  assert cell is not None
  assert (cell["table"], cell["sem"]) == ("boundary_aware_no_replay", 1.08)


def test_result_is_a_copy(make_config):
  first = lookup(make_config())
  assert first is not None
  expected = dict(first)
  first["accuracy"] = 0.0
  assert lookup(make_config()) == expected


def test_all_cells_are_there():
  tables = collections.Counter(cell["table"] for cell in printed.cells())
  assert sum(tables.values()) == 115
  assert tables["boundary_free"] == 20 and tables["number_of_tasks"] == 20
  needed = {"table", "setting", "method", "dataset", "accuracy", "sem"}
  assert all(needed <= cell.keys() for cell in printed.cells())
  assert all(0 < cell["accuracy"] < 100 for cell in printed.cells())
