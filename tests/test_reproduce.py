"""The ledger: cells and their commands, runs matched by configuration, verdicts."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from ml_collections import ConfigDict

from ebmjax import cli, methods
from ebmjax.config import flat_keys
from ebmjax.report import paper
from ebmjax.reproduce import __main__ as reproduce
from ebmjax.reproduce import commands, estimates, ledger, protocols, store, wording
from ebmjax.reproduce.cells import Cell, all_cells, table_cells, tables
from ebmjax.reproduce.ledger import Ledger
from ebmjax.reproduce.store import Entry

EBM = "boundary_aware_no_replay/ebm/split_mnist"
CELLS = {cell.id: cell for cell in all_cells()}
RUNNABLE = [
  cell for cell in all_cells() if not commands.obstacle(cell.chosen, cell.learner)
]


def entry(chosen: str, accuracies: dict[int, float], **changes: Any) -> Entry:
  """Returns a finished run of FILE[:variants] with these accuracies by seed."""
  config = commands.recorded(commands.load(chosen).to_dict())
  made = Entry(
    cell=None,
    command=chosen,
    seeds=list(accuracies),
    accuracies=list(accuracies.values()),
    data_source="mnist, full",
    data_digest="abc",
    data_full=True,
    commit="0123456789ab",
    jax="0.10.2",
    device="cpu",
    steps=10_000,
    steps_per_second=100.0,
    wall_time=20.0 * len(accuracies),
    finished="2026-01-01T00:00:00Z",
    config=config,
  )
  return made._replace(**changes)


def changed(chosen: str, **changes: Any) -> dict[str, Any]:
  """Returns the recorded configuration of FILE[:variants] with other values."""
  config = ConfigDict(commands.load(chosen).to_dict())
  config.update_from_flattened_dict(
    {key.replace("__", "."): value for key, value in changes.items()}
  )
  return commands.recorded(config.to_dict())


def row_of(cell_id: str, *entries: Entry) -> ledger.Row:
  return Ledger([CELLS[cell_id]], entries).rows[0]


# Cells and commands.


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
    assert paper.DATASETS[(config.stream.name, config.data.name)][0] == cell.dataset
    assert config.network.name == "ebm"
    return
  found = paper.lookup(config.to_dict())
  assert found is not None
  assert (found["accuracy"], found["method"], found["dataset"]) == (
    cell.accuracy,
    cell.method,
    cell.dataset,
  )
  assert found["setting"] == config.stream.setting
  assert (cell.seeds == 5) == (config.stream.setting == "boundary_free")
  if rest:
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
      ("end_fix_norm2_v4", "v4", "l2", "fixed"),
      ("end_fix_softmax_v4", "v4", "softmax", "fixed"),
      ("end_norm2_v4", "v4", "l2", "learned"),
      ("end_softmax_v4", "v4", "softmax", "learned"),
    )
  },
}


def test_the_paper_s_other_figures():
  ratios = {
    name: paper.inference_seconds(name)["ebm"] / paper.inference_seconds(name)["sbc"]
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
  assert convs == {"fixed_statistics"}
  assert all("fixed" in protocols.deviations(cell.id)[0] for cell in on_cifar100)


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
    argv = ["main", f"--config={commands.root() / chosen}", *flags]
    if flat.get("network.pretrained"):
      argv.append("--config.network.pretrained=elsewhere.npz")
    config, _ = cli.parse(argv)
    config.negatives = flat["negatives"]  # resolved in `flat`, perhaps auto here
    assert commands.identity(commands.recorded(config.to_dict())) == commands.identity(
      flat
    )


# Which runs measure a cell.


def test_only_a_run_of_the_whole_configuration_measures_a_cell():
  chosen = CELLS[EBM].chosen
  same = changed(
    chosen,
    seed=3,
    seeds=7,
    data__dir="/somewhere",
    data__source="files",
    eval__at_task_ends=False,
    runner__chunk=7,
    checkpoint__every=11,
    network__conv_form="native",
  )
  assert not any("somewhere" in str(value) for value in same.values())
  assert row_of(EBM, entry(chosen, {0: 50.0}, config=same)).measured
  for key, value in {
    "optimiser__learning_rate": 1e-3,
    "negatives": "one_by_frequency",
    "stream__class_order": "random",
    "network__hidden": 401,
    "data__images": 3000,
  }.items():
    other = entry(chosen, {0: 50.0}, config=changed(chosen, **{key: value}))
    found = Ledger([CELLS[EBM]], [other])
    assert found.rows[0].measured is None, key
    assert [variant.mean for variant in found.variants()] == [50.0]


def test_keys_that_an_older_run_did_not_have_count_as_their_defaults():
  cell = CELLS["boundary_aware_no_replay/ebm/perm_mnist"]
  config = changed(cell.chosen)
  older = {key: value for key, value in config.items() if "method." not in key}
  older |= {"method.name": "finetune"}
  assert row_of(cell.id, entry(cell.chosen, {0: 80.0}, config=older)).measured
  replay = CELLS["boundary_aware_replay/ebm_er/perm_mnist"]
  older["method.name"] = "er"  # but its replay_weights are not the default
  assert not row_of(replay.id, entry(cell.chosen, {0: 80.0}, config=older)).measured


def test_seeds_are_pooled_and_the_newest_of_two_counts():
  chosen = CELLS[EBM].chosen
  old = entry(chosen, {0: 10.0, 1: 20.0, 2: 40.0})
  new = entry(chosen, {2: 60.0, 3: 30.0}, finished="2026-01-02T00:00:00Z", commit="new")
  for order in ([old, new], [new, old]):
    measured = row_of(EBM, *order).measured
    assert measured is not None
    assert measured.accuracies == {0: 10.0, 1: 20.0, 2: 60.0, 3: 30.0}
    assert measured.mean == pytest.approx(30.0)
    assert measured.sem == pytest.approx(10.801234)
    assert measured.commits == ["0123456789ab", "new"]
  replaced = entry(chosen, {0: 1.0, 1: 2.0}, finished="2025-01-01T00:00:00Z")
  measured = row_of(EBM, old, replaced).measured
  assert measured is not None
  assert measured.accuracies[0] == 10.0
  assert measured.entries == (old,)


def test_cells_of_one_command_share_its_runs():
  found = Ledger(all_cells(), [entry(CELLS[EBM].chosen, {0: 50.0})])
  measured = [row.cell.id for row in found.rows if row.measured]
  assert measured == [EBM, "cd_objective/ebm/split_mnist"]
  assert found.variants() == []


@pytest.mark.parametrize(
  ("accuracy", "verdict"),
  [(51.12, "within"), (55.12, "within"), (51.11, "below"), (55.13, "above")],
)
def test_verdicts(accuracy, verdict):
  row = row_of(EBM, entry(CELLS[EBM].chosen, {0: accuracy}))
  assert row.verdict == verdict
  assert row.difference == pytest.approx(accuracy - 53.12)
  assert wording.verdict(row).endswith("1 of 10 seeds")


def test_what_is_not_comparable_says_why():
  chosen = CELLS[EBM].chosen
  partial = entry(chosen, {0: 53.0, 1: 53.0}, data_full=False)
  row = row_of(EBM, partial)
  assert (row.verdict, row.reason) == ("not comparable", "not the full data set")
  row = row_of(EBM, partial, entry(chosen, {0: 53.0}))
  assert row.verdict == "within"
  assert row.measured is not None
  assert list(row.measured.accuracies) == [0]
  row = row_of("boundary_aware_replay/ctn/perm_mnist")
  assert row.verdict == "not comparable"
  assert "the task is told at test" in row.reason


# Estimates.


def test_estimates_rest_on_runs_then_on_speeds_then_on_guesses():
  chosen = CELLS[EBM].chosen
  speed = estimates.estimate(chosen, None)
  assert speed == (pytest.approx(10_000 / 956), "speed")
  # 10,000 steps at 100 a second take 100 s; the wall time was of a resumed run.
  run = Ledger(all_cells(), [entry(chosen, {0: 1.0, 1: 2.0})]).measurement(chosen)
  assert estimates.estimate(chosen, run) == (pytest.approx(100.0), "runs")
  slower = entry(chosen, {0: 1.0, 1: 2.0}, wall_time=600.0)
  run = Ledger(all_cells(), [slower]).measurement(chosen)
  assert estimates.estimate(chosen, run) == (pytest.approx(300.0), "runs")
  guess = estimates.estimate("configs/permmnist.py:bgd,sbc", None)
  assert guess == (pytest.approx(20_000 / 127 * 10), "guess")


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


# The stored results.


def test_the_stored_results_are_of_full_data_and_name_their_cells():
  entries = store.read()
  owners = store.owners_of(all_cells())
  assert len(entries) > 30
  for found in entries:
    assert found.data_full
    assert len(found.seeds) == len(found.accuracies)
    assert found.cell == owners.get(commands.identity(found.config), [None])[0]
    assert found.command == commands.describe(found.config)
  text = store.MEASURED.read_text()
  assert all(place not in text for place in ("/work", "/tmp", "/home", "/root"))


def results(chosen: str, accuracies: dict[int, float], full: bool = True) -> str:
  """Returns a results.json as a run of an older commit leaves it."""
  config = commands.load(chosen).to_dict()
  del config["method"]["strength"]
  return json.dumps(
    {
      "per_seed": list(accuracies.values()),
      "seeds": list(accuracies),
      "config": config,
      "facts": {"data_source": "mnist", "data_full": full, "data_digest": "abc"},
    }
  )


def test_collecting_is_idempotent_replaces_and_refuses(tmp_path: Path, caplog):
  stored = tmp_path / "measured.json"
  root = tmp_path / "runs"
  contents = {
    "b/one": results("configs/splitmnist.py", {0: 50.0, 1: 51.0}),
    "a": results("configs/splitmnist.py:joint", {0: 90.0}),
    "partial": results("configs/splitmnist.py:sbc", {0: 20.0}, full=False),
    "damaged": "{",
    "foreign": "{}",
  }
  for name, content in contents.items():
    (root / name).mkdir(parents=True)
    (root / name / "results.json").write_text(content)
  kept = store.collect(root, all_cells(), stored)
  assert [(found.cell, found.command) for found in kept] == [
    (EBM, "configs/splitmnist.py"),
    (None, "configs/splitmnist.py:joint"),
  ]
  assert store.read(stored) == kept
  told = [record.getMessage() for record in caplog.records]
  assert any(
    "Refused, not the full data set: configs/splitmnist.py:sbc" in line for line in told
  )
  assert sum("is left out" in line for line in told) == 2
  before = stored.read_bytes()
  store.collect(root, all_cells(), stored)
  assert stored.read_bytes() == before
  again = results("configs/splitmnist.py", {0: 40.0, 1: 41.0})
  (root / "b/one/results.json").write_text(again)
  kept = store.collect(root, all_cells(), stored)
  assert [found.accuracies for found in kept] == [[40.0, 41.0], [90.0]]
  assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [
    "measured.json"
  ]


# The command line.


@pytest.fixture
def folder(tmp_path: Path) -> str:
  return f"--runs={tmp_path / 'runs'}"


def test_without_a_choice_everything_is_listed_and_nothing_runs(folder, capsys):
  assert reproduce.main([folder]) == 0
  out = capsys.readouterr().out
  for cell in all_cells():
    assert f"  {wording.short_id(cell)} " in out
  assert "117 cells: " in out
  assert "differ by at most 2 points" in out
  assert all(name in out for name in paper.figures())
  assert not Path(folder.removeprefix("--runs=")).exists()


def test_a_table_alone_is_listed_with_its_commands(folder, capsys):
  chosen = "--table=alternative_objective,negative_sampling"
  assert reproduce.main([chosen, folder]) == 0
  out = capsys.readouterr().out
  assert out.count("python -m ebmjax.main --config=") == 5
  assert "--config=configs/cifar100.py:all_seen,fixed --config.seeds=10" in out
  assert "--config.network.pretrained=FILE.npz" in out
  assert not Path(folder.removeprefix("--runs=")).exists()


def test_variants_are_listed_apart(folder, capsys):
  assert reproduce.main(["--variants", folder]) == 0
  out = capsys.readouterr().out
  assert "configs/permmnist.py:sbc\n" in out
  assert "17.26 +- 0.19 (other configuration)" in out


@pytest.mark.parametrize(
  ("arguments", "sentence"),
  [
    (["--table=boundary_fre"], "did you mean 'boundary_free'?"),
    (["--cell=boundary_free/ebm/splitmnist"], "'boundary_free/ebm/split_mnist'?"),
    (["--seeds=3"], "but not what; give --table=NAME"),
    (["--collect=/nonesuch"], "/nonesuch is not a folder"),
    (["--check=/nonesuch"], "/nonesuch cannot be read"),
  ],
)
def test_mistakes_end_in_a_sentence(arguments, sentence, folder, capsys):
  assert reproduce.main([*arguments, folder]) == 1
  error = capsys.readouterr().err
  assert error.startswith("ebmjax: ")
  assert sentence in error
