"""The ledger: cells and their commands, runs matched by configuration, verdicts."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from ebmjax.config.identity import identity, recorded
from ebmjax.paper import commands, estimates, ledger, store, wording
from ebmjax.paper import reproduce as reproduce
from ebmjax.paper.cells import all_cells
from ebmjax.paper.figures import FIGURES
from ebmjax.paper.ledger import Ledger
from ebmjax.paper.store import Entry
from ebmjax.runtime import atomic
from tests.test_reproduce_cells import changed

EBM = "boundary_aware_no_replay/ebm/split_mnist"
CELLS = {cell.id: cell for cell in all_cells()}


def entry(chosen: str, accuracies: dict[int, float], **changes: Any) -> Entry:
  """Returns a finished run of FILE[:variants] with these accuracies by seed."""
  config = recorded(commands.load(chosen).to_dict())
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


def row_of(cell_id: str, *entries: Entry) -> ledger.Row:
  return Ledger([CELLS[cell_id]], entries).rows[0]


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
  resumed = row_of(EBM, entry(chosen, {0: 1.0}, commit="b, a"), new).measured
  assert resumed is not None
  assert resumed.commits == ["a", "b", "new"]
  replaced = entry(chosen, {0: 1.0, 1: 2.0}, finished="2025-01-01T00:00:00Z")
  measured = row_of(EBM, old, replaced).measured
  assert measured is not None
  assert measured.accuracies[0] == 10.0
  assert measured.entries == (old,)


def test_runs_from_other_weights_are_not_pooled():
  cell = CELLS["boundary_aware_no_replay/ebm/cifar100"]
  old = entry(cell.chosen, {0: 30.0, 1: 31.0}, weights="a")
  new = entry(cell.chosen, {2: 8.0}, weights="b", finished="2026-01-02T00:00:00Z")
  unknown = entry(cell.chosen, {3: 10.0})
  measured = row_of(cell.id, old, new, unknown).measured
  assert measured is not None
  assert measured.accuracies == {2: 8.0, 3: 10.0}
  assert measured.weights == ["b"]


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
  row = row_of("boundary_aware_replay/pgma/cifar10")
  assert row.verdict == "not comparable"
  assert "neither its network nor its settings were published" in row.reason


# Estimates.


def test_estimates_rest_on_runs_then_on_speeds_then_on_guesses():
  chosen = CELLS[EBM].chosen
  speed = estimates.estimate(chosen, None)
  assert speed == (pytest.approx(10_000 / 949), "speed")
  # 10,000 steps at 100 a second take 100 s; the wall time was of a resumed run.
  run = Ledger(all_cells(), [entry(chosen, {0: 1.0, 1: 2.0})]).measurement(chosen)
  assert estimates.estimate(chosen, run) == (pytest.approx(100.0), "runs")
  slower = entry(chosen, {0: 1.0, 1: 2.0}, wall_time=600.0)
  run = Ledger(all_cells(), [slower]).measurement(chosen)
  assert estimates.estimate(chosen, run) == (pytest.approx(300.0), "runs")
  guess = estimates.estimate("configs/permmnist.py:bgd,sbc", None)
  assert guess == (pytest.approx(20_000 / 94.5 * 16.3), "guess")


# The stored results.


def test_the_stored_results_are_of_full_data_and_name_their_cells():
  entries = store.read()
  owners = store.owners_of(all_cells())
  assert len(entries) > 30
  for found in entries:
    assert found.data_full
    assert len(found.seeds) == len(found.accuracies)
    assert found.cell == owners.get(identity(found.config), [None])[0]
    assert found.command == commands.describe(found.config)
  text = store.MEASURED.read_text()
  assert all(place not in text for place in ("/work", "/tmp", "/home", "/root"))


def results(
  chosen: str, accuracies: dict[int, float], full: bool = True, validation: int = 0
) -> str:
  """Returns a results.json as a run of an older commit leaves it."""
  config = commands.load(chosen).to_dict()
  del config["method"]["strength"]
  if validation:
    config["data"]["validation"] = validation
  return json.dumps(
    {
      "average_accuracy": {},
      "class_names": [],
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
    "tuned": results("configs/splitmnist.py:si,sbc", {0: 20.0}, validation=500),
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
  refused = [line for line in told if line.startswith("Refused")]
  assert len(refused) == 2
  assert "not the full data set: configs/splitmnist.py:sbc" in refused[0]
  assert "held out: configs/splitmnist.py:si,sbc" in refused[1]
  assert sum("is left out" in line for line in told) == 2
  assert not any("remove" in line for line in told)  # what may be anybody's
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
  assert all(name in out for name in FIGURES)
  assert not Path(folder.removeprefix("--runs=")).exists()


def test_a_table_alone_is_listed_with_its_commands(folder, capsys):
  chosen = "--table=alternative_objective,negative_sampling"
  assert reproduce.main([chosen, folder]) == 0
  out = capsys.readouterr().out
  assert out.count("python -m ebmjax.main --config=") == 5
  assert "--config=configs/cifar100.py:all_seen,fixed --config.seeds=10" in out
  assert "--config.network.pretrained=FILE.npz" in out
  assert not Path(folder.removeprefix("--runs=")).exists()


def test_a_figure_without_its_runs_tells_the_command_that_makes_them(folder, capsys):
  Path(folder.removeprefix("--runs=")).mkdir()
  assert reproduce.main(["--figure=confusion", folder]) == 1
  assert "python -m ebmjax.main --config=configs/" in capsys.readouterr().err


def test_a_figure_of_scores_is_drawn_from_the_stored_results(folder, tmp_path, caplog):
  out = tmp_path / "drawn"
  assert reproduce.main(["--figure=number_of_tasks", folder, f"--out={out}"]) == 0
  assert (out / "number_of_tasks.svg").stat().st_size
  assert "Drawn from measured.json." in caplog.text


def test_a_figure_that_cannot_be_drawn_does_not_stop_the_next(folder, tmp_path, capsys):
  out = tmp_path / "drawn"
  names = "--figure=confusion,capacity"
  assert reproduce.main([names, f"--out={out}", folder]) == 1
  assert (out / "capacity.svg").exists()
  assert "confusion" in capsys.readouterr().err


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
    (["--figure=capacity", "--seeds=3"], "but not what; give --table=NAME"),
    (["--figure=capacity", "--table=none"], "there is no table 'none'"),
    (
      ["--figure=capacity", "--table=all"],
      "--table and --cell do not go with --figure",
    ),
    (["--variants", "--collect=x"], "--variants do not go with --collect"),
    (["--collect=/nonesuch"], "/nonesuch is not a folder"),
    (["--check=/nonesuch"], "/nonesuch cannot be read"),
    (["--seeds=abc"], "--seeds: 'abc' is no whole number of 1 or more; see --help."),
    (["--budget=-1"], "--budget: '-1' is no number above 0; see --help."),
  ],
)
def test_mistakes_end_in_a_sentence(arguments, sentence, folder, capsys):
  assert reproduce.main([*arguments, folder]) == 1
  error = capsys.readouterr().err
  assert error.startswith("ebmjax: ")
  assert sentence in error


@pytest.mark.parametrize("flag", ["--write", "--collect"])
def test_a_place_that_cannot_be_written_is_told(flag, tmp_path, monkeypatch, capsys):
  """A read-only place, which a superuser's tests cannot make."""

  def refuse(path, content):
    raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

  monkeypatch.setattr(atomic, "write", refuse)
  file = tmp_path / "tables.md"
  file.write_text("<!-- measured: data -->\n<!-- end -->\n")
  before = store.MEASURED.read_bytes()
  assert reproduce.main([f"{flag}={file if flag == '--write' else tmp_path}"]) == 1
  name = file if flag == "--write" else store.MEASURED
  (line,) = capsys.readouterr().err.splitlines()
  assert f"ebmjax: {name} cannot be written (Read-only file system); make" in line
  assert store.MEASURED.read_bytes() == before
