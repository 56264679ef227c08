"""Which of several runs a figure takes, and how its caption says they differ."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ebmjax.errors import UserError
from ebmjax.paper import commands, store
from ebmjax.paper.cells import all_cells
from ebmjax.paper.figures import FIGURES
from ebmjax.paper.figures.missing import caption, runs_of
from ebmjax.paper.figures.pooling import choose
from ebmjax.paper.figures.spec import Runs, mnist
from ebmjax.paper.figures.tasks import METHODS, ours
from ebmjax.paper.ledger import Ledger
from ebmjax.paper.store import Entry

UNCHANGED: dict[str, Any] = {}
FEWER = {"stream.iterations": 20}
NETWORK = {"network.hidden": 4, "network.gate": "none", "optimiser.name": "sgd"}
SMALLER = FEWER | NETWORK
TASKS = FIGURES["number_of_tasks"]


def finished(
  chosen: str,
  keys: Mapping[str, Any] = UNCHANGED,
  *,
  seeds: int = 1,
  name: str = "run",
  full: bool = True,
  **facts: Any,
) -> Entry:
  """Returns what is read of a run of FILE[:variants] with other values of `keys`."""
  config = commands.load(chosen).copy_and_resolve_references()
  config.update_from_flattened_dict(keys)
  results = {
    "config": config.to_dict(),
    "seeds": list(range(seeds)),
    "per_seed": [50.0] * seeds,
    "facts": {"data_source": "files", "data_digest": "x", "data_full": full} | facts,
  }
  return store.make_entry(results, Path(name), {})


def drawn_by_cell(runs: Runs) -> dict[str, tuple[float, float]]:
  """Returns {id of a cell: (mean, SEM)} of the points of number_of_tasks."""
  return {
    f"number_of_tasks/{name.lower()}/cifar100/{tasks}_tasks": (mean, sem)
    for name in METHODS
    for tasks, mean, sem in ours(runs[name])
  }


def test_the_number_of_tasks_is_drawn_from_the_ledger_s_rows(tmp_path: Path):
  rows = Ledger(all_cells(), store.read()).rows
  expected = {
    row.cell.id: (row.measured.summary.mean, row.measured.summary.sem or 0.0)
    for row in rows
    if row.cell.table == "number_of_tasks" and row.measured
  }
  assert expected
  runs = runs_of("number_of_tasks", TASKS, tmp_path, store.read())
  assert drawn_by_cell(runs) == {key: pytest.approx(v) for key, v in expected.items()}
  for name, found in runs.items():
    assert not any(run.differences for run in found), name


def test_every_cell_of_the_number_of_tasks_has_its_point():
  """More seeds of the paper's other protocol do not come before a cell's own run."""
  cells = [cell for cell in all_cells() if cell.table == "number_of_tasks"]
  own = [finished(cell.command, name=cell.id) for cell in cells]
  others = [
    finished(f"configs/cifar100.py{variants}", seeds=3, name="other")
    for variants in ("", ":sbc", ":sbc,fixed", ":tasks5", ":lwf,sbc,fixed")
  ]
  runs = choose([*others, *own], TASKS)
  assert set(drawn_by_cell(runs)) == {cell.id for cell in cells}
  taken = {str(run.paths[0]) for found in runs.values() for run in found}
  assert taken == {cell.id for cell in cells}
  assert "with" not in caption(TASKS, runs).removeprefix(TASKS.caption)


def test_without_a_cell_s_run_its_point_is_left_out():
  others = [finished("configs/cifar100.py"), finished("configs/cifar100.py:sbc,fixed")]
  with pytest.raises(
    UserError, match=r"the table's EBM .*configs/cifar100\.py:tasks5,fixed "
  ):
    runs_of("number_of_tasks", TASKS, Path("runs"), others)
  # A run on part of the data is no cell's at all: the title and the caption say so.
  part = finished("configs/cifar100.py", full=False)
  found = runs_of("number_of_tasks", TASKS, Path("runs"), [part], allow_partial=True)
  assert "EBM with network.backbone_mode=batch_statistics." in caption(TASKS, found)


def split_ebm(*runs: Entry) -> tuple[Runs, str]:
  """Returns the runs that a figure of EBM on split MNIST takes, and their caption."""
  roles = (mnist("EBM", "split"),)
  spec = FIGURES["forgetting"]._replace(roles=roles, needs="final")
  found = choose(runs, spec)
  return found, caption(spec, found)


def test_figures_and_tables_pool_seeds_alike():
  """Ten seeds at 50 %, of which the first three were run again and reached 60 %."""
  file = "configs/splitmnist.py"
  cell = next(cell for cell in all_cells() if cell.command == file)
  old = finished(file, seeds=10, finished="2026-01-01T00:00:00Z", name="old")
  new = finished(file, seeds=3, finished="2026-01-02T00:00:00Z", name="new")
  new = new._replace(accuracies=[60.0] * 3)
  for runs in ([old, new], [new, old]):
    ((run,),) = split_ebm(*runs)[0].values()
    (row,) = Ledger([cell], runs).rows
    assert row.measured is not None
    assert run.per_seed.mean() == row.measured.summary.mean == 53.0
    assert run.history.seeds == tuple(range(10))
    assert run.paths == (Path("new"), Path("old"))


def test_a_run_that_did_not_record_its_data_counts_as_partial():
  """Of an older version: there was a KeyError with allow_partial."""
  old = finished("configs/cifar100.py:fixed")
  results = {
    **{"config": old.run, "seeds": [0], "per_seed": [50.0]},
    "facts": {},
  }
  entry = store.make_entry(results, Path("old"), {})
  with pytest.raises(UserError, match="old: part of the data alone"):
    runs_of("number_of_tasks", TASKS, Path("runs"), [entry])
  found = runs_of("number_of_tasks", TASKS, Path("runs"), [entry], allow_partial=True)
  assert "On part of the data: data that were not recorded." in caption(TASKS, found)


def test_another_network_or_optimiser_is_a_difference():
  """It comes last although it has more seeds, and the caption tells all of it."""
  file = "configs/splitmnist.py"
  plain = finished(file, FEWER, name="plain")
  small = finished(file, SMALLER, seeds=2, name="small")
  found, text = split_ebm(plain, small)
  assert found["EBM, split"][0].paths == (Path("plain"),)
  assert text.endswith("EBM, split with stream.iterations=20.")
  found, text = split_ebm(small)
  assert text.endswith(
    "EBM, split with network.gate=none, network.hidden=4, optimiser.name=sgd, "
    "stream.iterations=20."
  )
  found, text = split_ebm(small, finished(file, name="usual"))
  assert found["EBM, split"][0].paths == (Path("usual"),)
  assert "EBM, split with" not in text


def test_of_many_differences_the_first_are_listed_and_the_rest_counted():
  many = SMALLER | {"stream.batch_size": 16, "optimiser.learning_rate": 0.5}
  _, text = split_ebm(finished("configs/splitmnist.py", many))
  assert text.endswith("optimiser.learning_rate=0.5, optimiser.name=sgd and 2 others.")


def test_differences_of_some_points_are_told_with_their_values():
  file = "configs/capacity.py"
  runs = [finished(file, name="usual")]
  runs += [finished(file, FEWER | {"data.images": n}) for n in (500, 2000)]
  spec = FIGURES["capacity"]
  text = caption(spec, choose(runs, spec))
  assert "EBM small at data.images 500, 2000 with stream.iterations=20." in text
  assert text.count("EBM small at") == 1
