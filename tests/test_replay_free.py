"""The table of replay-free methods, and the figure of accuracy against cost."""

import json
from pathlib import Path

import numpy as np
import pytest

from ebmjax.config.identity import identity
from ebmjax.paper import commands, replay_free, store
from ebmjax.paper.cells import REPLAY_FREE, all_cells, every_cell
from ebmjax.paper.figures import cost
from ebmjax.paper.figures.missing import runs_of
from ebmjax.paper.ledger import Ledger
from ebmjax.paper.store import Entry
from tests.entries import entry

OWN = [cell for cell in every_cell() if cell.table == REPLAY_FREE]
SLDA = "configs/splitmnist.py:slda,source"
NCM = "configs/splitmnist.py:ncm,source"
BUDGET = {
  "parameters": 622_506,
  "training_flops": 76_363_115_835,
  "bytes_kept": 2_490_024,
  "inference_flops": 17_281,
}
REJECTION = {"auroc_lowest": 86.14, "fpr95_lowest": 55.09}


def stored(command: str, *accuracies: float) -> Entry:
  seeds = dict(enumerate(accuracies))
  return entry(command, seeds, budget=BUDGET, rejection=REJECTION)


def lines_of(*entries: Entry) -> list[list[str]]:
  """Returns the cells of the table's lines, without those of its header."""
  text = replay_free.markdown(Ledger(every_cell(), entries))
  lines = [line for line in text.splitlines() if line.startswith("| ")]
  return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines][1:]


def test_every_method_has_a_cell_on_all_four_benchmarks():
  names = {cell.row for cell in OWN}
  assert {(cell.row, cell.dataset) for cell in OWN} == {
    (name, dataset) for name in names for dataset in replay_free.DATASETS
  }
  assert len({cell.id for cell in every_cell()}) == len(every_cell())


@pytest.mark.parametrize("cell", OWN, ids=lambda cell: cell.id)
def test_a_cell_s_command_runs_on_its_benchmark_and_keeps_no_images(cell):
  config = commands.load(cell.command)
  names = {"split_mnist": "mnist", "perm_mnist": "mnist"}
  assert config.data.name == names.get(cell.dataset, cell.dataset)
  assert not {"budget", "quota", "generator"} & set(config.method)
  assert all(
    identity(config.to_dict()) != commands.identity_of(c.command) for c in all_cells()
  )


def test_a_line_has_accuracy_published_figure_cost_and_rejection():
  (line,) = lines_of(stored(SLDA, 87.0, 88.0))
  assert line[:3] == ["split MNIST", "SLDA", "`splitmnist.py:slda,source`"]
  assert line[3] == "87.50 +- 0.50 (2)"
  assert line[4] == "[81.15, 93.85]"  # 12.706 standard errors each way
  assert line[5].startswith("87.30 +- 0.02") and "van de Ven" in line[6]
  assert line[7:10] == ["623 k", "2.49 MB", "76.4 GFLOP"]
  assert line[10:13] == ["20", "86.1", "55.1"]


def test_the_most_accurate_comes_first_and_one_seed_has_no_interval():
  better, worse = lines_of(stored(NCM, 81.0), stored(SLDA, 87.0))
  assert (better[1], worse[1]) == ("SLDA", "NCM")
  assert worse[4:7] == ["-", "-", "-"]  # one seed, and nothing published


def test_runs_of_an_older_version_state_no_cost():
  (line,) = lines_of(entry(SLDA, {0: 87.0}))
  assert line[7:10] == ["-"] * 3 and line[11:13] == ["-"] * 2


def test_budget_and_rejection_are_stored_with_a_run(tmp_path: Path):
  config = commands.load(SLDA).to_dict()
  results = {
    **{"config": config, "seeds": [0, 1], "per_seed": [87.0, 88.0]},
    **{"average_accuracy": {}, "class_names": []},
    "facts": {
      "data_source": "mnist",
      "data_full": True,
      "finished": "2026-01-01T00:00:00Z",
    },
    "budget": BUDGET,
    **{name: {"mean": value + 0.001} for name, value in REJECTION.items()},
  }
  (tmp_path / "run").mkdir()
  (tmp_path / "run" / "results.json").write_text(json.dumps(results))
  kept = store.collect(tmp_path, every_cell(), tmp_path / "measured.json")
  assert kept == store.read(tmp_path / "measured.json")
  assert (kept[0].budget, kept[0].rejection) == (BUDGET, REJECTION)
  assert kept[0].cell == "replay_free/slda/split_mnist"


def test_the_figure_draws_what_states_its_cost(tmp_path: Path):
  entries = [stored(SLDA, 87.0, 88.0), entry(NCM, {0: 81.0})]
  runs = runs_of("cost", cost.SPEC, tmp_path, entries)
  figure = cost.cost(runs)
  (legend,) = figure.legends
  assert [text.get_text() for text in legend.get_texts()] == ["SLDA"]
  for axes, name in zip(figure.axes[:2], cost.COSTS, strict=True):
    point = np.array(axes.get_lines()[0].get_data())
    assert point.tolist() == [[BUDGET[name]], [87.5]]


def test_every_method_of_a_benchmark_has_one_mark():
  for dataset in cost.SHOWN:
    names = [name for group in cost.groups(dataset) for name in group.names]
    assert len(set(names)) == len(names) > 15
    for group in cost.groups(dataset):
      assert len(group.names) <= len(cost._MARKERS)
