"""The ledger: cells and their commands, runs matched by configuration, verdicts."""

import errno
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ebmjax import metrics
from ebmjax.config.identity import decisive, differences, identity
from ebmjax.metrics import Summary
from ebmjax.paper import (
  commands,
  estimates,
  ledger,
  store,
  summary,
  verdicts,
  wording,
)
from ebmjax.paper import reproduce as reproduce
from ebmjax.paper.cells import all_cells, claims
from ebmjax.paper.figures import FIGURES
from ebmjax.paper.ledger import Ledger
from ebmjax.paper.store import Entry
from ebmjax.runtime import atomic
from tests.test_reproduce_cells import changed

EBM = "boundary_aware_no_replay/ebm/split_mnist"
CELLS = {cell.id: cell for cell in all_cells()}


def entry(chosen: str, accuracies: dict[int, float], **changes: Any) -> Entry:
  """Returns a finished run of FILE[:variants] with these accuracies by seed."""
  config = decisive(commands.load(chosen).to_dict())
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
  chosen = CELLS[EBM].command
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
    assert [variant.summary.mean for variant in found.variants()] == [50.0]


def test_keys_that_an_older_run_did_not_have_count_as_their_defaults():
  cell = CELLS["boundary_aware_no_replay/ebm/perm_mnist"]
  config = changed(cell.command)
  older = {key: value for key, value in config.items() if "method." not in key}
  older |= {"method.name": "finetune"}
  assert row_of(cell.id, entry(cell.command, {0: 80.0}, config=older)).measured
  replay = CELLS["boundary_aware_replay/ebm_er/perm_mnist"]
  older["method.name"] = "er"  # but its replay_weights are not the default
  assert not row_of(replay.id, entry(cell.command, {0: 80.0}, config=older)).measured


def test_seeds_are_pooled_and_the_newest_of_two_counts():
  chosen = CELLS[EBM].command
  old = entry(chosen, {0: 10.0, 1: 20.0, 2: 40.0})
  new = entry(chosen, {2: 60.0, 3: 30.0}, finished="2026-01-02T00:00:00Z", commit="new")
  for order in ([old, new], [new, old]):
    measured = row_of(EBM, *order).measured
    assert measured is not None
    assert measured.accuracies == {0: 10.0, 1: 20.0, 2: 60.0, 3: 30.0}
    assert measured.summary.mean == pytest.approx(30.0)
    assert measured.summary.sem == pytest.approx(10.801234)
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
  old = entry(cell.command, {0: 30.0, 1: 31.0}, weights="a")
  new = entry(cell.command, {2: 8.0}, weights="b", finished="2026-01-02T00:00:00Z")
  unknown = entry(cell.command, {3: 10.0})
  measured = row_of(cell.id, old, new, unknown).measured
  assert measured is not None
  assert measured.accuracies == {2: 8.0, 3: 10.0}
  assert measured.weights == ["b"]


def test_cells_of_one_command_share_its_runs():
  found = Ledger(all_cells(), [entry(CELLS[EBM].command, {0: 50.0})])
  measured = [row.cell.id for row in found.rows if row.measured]
  assert measured == [EBM, "cd_objective/ebm/split_mnist"]
  assert found.variants() == []


# Verdicts.


def test_the_interval_of_a_difference_is_that_of_both_sides():
  """By hand: t(0.975, 2) = 4.302653 and t(0.975, 9) = 2.262157."""
  ours = metrics.mean_sem(np.array([50.0, 51.0, 52.0]))
  found = verdicts.difference(ours, Summary(50.5, 0.2, 10))
  half = math.hypot(4.302653 / math.sqrt(3), 2.262157 * 0.2)
  assert found == pytest.approx((0.5, 0.5 - half, 0.5 + half), abs=1e-5)
  low, high = stats.t.interval(0.95, df=2, loc=51.0, scale=1 / math.sqrt(3))
  alone = verdicts.difference(ours, Summary(50.5, None, 10))
  assert alone == pytest.approx((0.5, low - 50.5, high - 50.5))
  assert verdicts.difference(ours, Summary(50.5, None, 1)) == (0.5, None, None)


@pytest.mark.parametrize(
  ("interval", "verdict"),
  [
    ((-1.9, 1.9), "agrees"),
    ((0.1, 0.4), "agrees"),  # no difference that matters
    ((-2.1, 1.0), "open"),
    ((1.0, 2.3), "differs"),
    ((-9.0, -3.0), "differs"),
    ((None, None), "open"),
  ],
)
def test_verdicts(interval, verdict):
  found = verdicts.Difference(0.0, *interval)
  assert verdicts.judge(found) == verdict
  doubtful = "open" if verdict == "differs" else verdict
  assert verdicts.judge(found, doubtful=True) == doubtful


def test_one_seed_is_open_and_several_are_judged_with_the_paper_s_error():
  cell = CELLS["boundary_aware_no_replay/sbc/split_mnist"]  # 19.90 +- 0.02
  row = row_of(cell.id, entry(cell.command, {0: 19.9}))
  assert (row.verdict, row.difference) == ("open", (pytest.approx(0.0), None, None))
  assert wording.verdict(row) == "open; floor 20; 1 of 10 seeds"
  row = row_of(cell.id, entry(cell.command, {0: 19.8, 1: 19.9, 2: 20.0}))
  assert row.verdict == "agrees"
  row = row_of(cell.id, entry(cell.command, {0: 29.8, 1: 29.9, 2: 30.0}))
  assert row.verdict == "differs"
  assert row.difference is not None
  assert wording.signed(row.difference) == "+10.00 [+9.75, +10.25]"


def test_a_doubtful_error_decides_nothing():
  """53.12 +- 0.04 is a fraction: five points below may still be within its spread."""
  row = row_of(EBM, entry(CELLS[EBM].command, {0: 48.0, 1: 48.1, 2: 48.2}))
  assert row.verdict == "open"
  assert wording.published(row.cell) == "53.12 +- 0.04?"


def test_what_is_not_comparable_says_why():
  chosen = CELLS[EBM].command
  partial = entry(chosen, {0: 53.0, 1: 53.0}, data_full=False)
  row = row_of(EBM, partial)
  assert (row.verdict, row.reason) == ("not comparable", "not the full data set")
  row = row_of(EBM, partial, entry(chosen, {0: 53.0}))
  assert row.verdict == "open"
  assert row.measured is not None
  assert list(row.measured.accuracies) == [0]
  row = row_of("boundary_aware_replay/pgma/cifar10")
  assert row.verdict == "not comparable"
  assert "neither its network nor its settings were published" in row.reason
  cell = CELLS["capacity/sbc/cifar10_random_labels"]
  row = row_of(cell.id, entry(cell.command, {0: 100.0, 1: 100.0}))
  assert row.verdict == "not comparable"
  assert "27/64" in row.reason


# Estimates.


def test_estimates_rest_on_runs_then_on_speeds_then_on_guesses():
  chosen = CELLS[EBM].command
  assert estimates.estimate(chosen, None) == (pytest.approx(10_000 / 200), "guess")
  # EWC's step takes 1.31 times as long as that of the nearest run, at 100 a second.
  nearest = [entry("configs/splitmnist.py:sbc", {0: 1.0})]
  speed = estimates.estimate("configs/splitmnist.py:ewc,sbc", None, nearest)
  assert speed == (pytest.approx(10_000 / 100 * 1.31), "speed")
  # 10,000 steps at 100 a second take 100 s; the wall time was of a resumed run.
  run = Ledger(all_cells(), [entry(chosen, {0: 1.0, 1: 2.0})]).measurement(chosen)
  assert estimates.estimate(chosen, run) == (pytest.approx(100.0), "runs")
  slower = entry(chosen, {0: 1.0, 1: 2.0}, wall_time=600.0)
  run = Ledger(all_cells(), [slower]).measurement(chosen)
  assert estimates.estimate(chosen, run) == (pytest.approx(300.0), "runs")


def test_runs_on_another_device_do_not_count_for_an_estimate():
  chosen = CELLS[EBM].command
  cpu = entry(chosen, {0: 1.0})
  gpu = entry(
    *(chosen, {1: 2.0}),
    device="NVIDIA A100",
    finished="2026-01-02T00:00:00Z",
    wall_time=1.0,
    steps_per_second=1e5,
  )
  run = Ledger(all_cells(), [cpu, gpu]).measurement(chosen)
  assert estimates.estimate(chosen, run) == (pytest.approx(100.0), "runs")
  assert estimates.estimate(chosen, run, (), "NVIDIA A100") == (1.0, "runs")
  other = estimates.estimate(chosen, run, [cpu, gpu], "TPU v4")
  assert other == (pytest.approx(10_000 / 200), "guess")
  assert estimates.this_device() == "cpu"


# The summary.


def test_the_summary_counts_every_cell_once():
  entries = store.read()
  found = summary.counts(Ledger(all_cells(), entries))
  assert found["all"].total() == 117
  assert set(found["all"]) <= set(summary.WORDS)
  stored = {commands.identity_of(cell.command) for cell in all_cells()}
  stored &= {identity(entry.run) for entry in entries}
  owned = [c for c in all_cells() if commands.identity_of(c.command) in stored]
  assert found["all"]["missing"] == 117 - len(owned) and len(owned) >= 65
  assert found["capacity"] == {"not comparable": 2}


def test_a_claim_holds_if_every_pair_does():
  (claim,) = [c for c in claims() if c.claim.startswith("One negative")]
  best, batch, seen = (
    CELLS[f"negative_sampling/ebm/cifar100/{name}"]
    for name in ("one_neg_batch", "all_neg_batch", "all_neg_seen")
  )
  assert claim.pairs == ((best.id, batch.id), (best.id, seen.id))

  def verdict(*scores: tuple[float, ...]) -> str:
    entries = [
      entry(cell.command, dict(enumerate(found)))
      for cell, found in zip((best, batch, seen), scores, strict=False)
    ]
    found = summary.findings(Ledger([best, batch, seen], entries))
    (finding,) = found
    assert (finding.claim, len(finding.evidence)) == (claim.claim, 2)
    return finding.verdict

  assert verdict((30.0, 30.1), (20.0, 20.1), (8.0, 8.1)) == "holds"
  assert verdict((30.0, 30.1), (40.0, 40.1), (8.0, 8.1)) == "does not hold"
  assert verdict((30.0, 30.1), (20.0, 20.1), (8.0,)) == "open"  # one seed
  assert verdict((30.0, 30.1), (20.0, 40.0), (8.0, 8.1)) == "open"
  assert verdict((30.0, 30.1), (20.0, 20.1)) == "open"  # one is missing


# The stored results.


def test_the_stored_results_are_of_full_data_and_name_their_cells():
  entries = store.read()
  owners = store.owners_of(all_cells())
  assert len(entries) > 30
  for found in entries:
    assert found.data_full
    assert len(found.seeds) == len(found.accuracies)
    cell = owners.get(identity(found.run))
    assert found.cell == (cell.id if cell else None)
    if cell:
      assert commands.identity_of(found.command) == identity(found.run)
  text = store.MEASURED.read_text()
  assert all(place not in text for place in ("/work", "/tmp", "/home", "/root"))


def test_versions_of_results_part_runs_and_none_is_1():
  chosen = CELLS[EBM].command
  first = entry(chosen, {0: 50.0})
  older = {k: v for k, v in first.config.items() if not k.startswith("version.")}
  plain = first._replace(config=older)
  second = first._replace(config=first.config | {"version.method": 2})
  assert identity(plain.run) == identity(first.run)
  assert row_of(EBM, first).measured
  assert not row_of(EBM, second).measured
  (found,) = differences(second.run, plain.run)
  assert found == ("version.method", 2, 1)


def results(
  chosen: str,
  accuracies: dict[int, float],
  full: bool = True,
  validation: int = 0,
  finished: str = "2026-01-01T00:00:00Z",
) -> str:
  """Returns a results.json as a run of an older commit leaves it."""
  config = commands.load(chosen).to_dict()
  del config["data"]["augment"], config["version"]
  if validation:
    config["data"]["validation"] = validation
  return json.dumps(
    {
      "average_accuracy": {},
      "class_names": [],
      "per_seed": list(accuracies.values()),
      "seeds": list(accuracies),
      "config": config,
      "facts": {
        **{"data_source": "mnist", "data_full": full, "data_digest": "abc"},
        "command": f"python -m ebmjax.main --config=/x/{chosen} --config.seeds=2",
        "finished": finished,
      },
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
  for day, expected in (("2025-06-01", [50.0, 51.0]), ("2026-02-01", [40.0, 41.0])):
    # By the recorded time: this file is the newest in either case.
    at = f"{day}T00:00:00Z"
    again = results("configs/splitmnist.py", {0: 40.0, 1: 41.0}, finished=at)
    (root / "b/one/results.json").write_text(again)
    kept = store.collect(root, all_cells(), stored)
    assert [found.accuracies for found in kept] == [expected, [90.0]]
  assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [
    "measured.json"
  ]


def test_a_copied_run_is_as_old_as_its_start(tmp_path: Path):
  """One that recorded no end: the copy's files are new, their names are not."""
  config = json.loads(results("configs/splitmnist.py", {0: 50.0}))
  del config["facts"]["finished"]
  (tmp_path / "results.json").write_text(json.dumps(config))
  (found,) = store.find(tmp_path)
  assert found.finished == ""
  (tmp_path / "tensorboard").mkdir()
  (tmp_path / "tensorboard" / "events.out.tfevents.1700000000.host.000").touch()
  (found,) = store.find(tmp_path)
  assert found.finished == "2023-11-14T22:13:20Z"


def test_an_entry_whose_cell_has_changed_keeps_a_command_that_makes_it(tmp_path: Path):
  path = tmp_path / "measured.json"
  config = changed("configs/splitmnist.py", stream__iterations=7)
  old = entry("configs/splitmnist.py", {0: 1.0}, config=config, cell=EBM)
  store._write(path, [old], store.owners_of(all_cells()))
  (found,) = store.read(path)
  assert found.cell is None
  assert found.command == "configs/splitmnist.py --config.stream.iterations=7"


# The command line.


@pytest.fixture
def folder(tmp_path: Path) -> str:
  return f"--runs={tmp_path / 'runs'}"


def test_without_a_choice_everything_is_listed_and_nothing_runs(folder, capsys):
  assert reproduce.main([folder]) == 0
  out = capsys.readouterr().out
  for cell in all_cells():
    assert f"  {cell.short_id} " in out
  assert "117 cells: " in out
  assert "within 2 points of zero" in out
  assert "The EBM is above the softmax classifier on every benchmark: " in out
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
  usage = sentence.endswith("see --help.")  # what the flags' parser refuses
  assert reproduce.main([*arguments, folder]) == (2 if usage else 1)
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
