"""The ledger: runs matched by configuration, verdicts, estimates, the summary."""

import math

import numpy as np
import pytest
from scipy import stats

from ebmjax import metrics
from ebmjax.config.identity import decisive, identity
from ebmjax.metrics import Summary
from ebmjax.paper import commands, estimates, store, summary, verdicts, wording
from ebmjax.paper.cells import PUBLISHED_TRUNK, all_cells, claims
from ebmjax.paper.ledger import Ledger, measure
from tests.entries import CELLS, EBM, changed, entry, row_of

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
  published = old._replace(weights=PUBLISHED_TRUNK)
  found = Ledger([cell], [published, new])
  assert found.rows[0].measured == measure([published])
  assert found.variants() == [measure([new])]  # beside it
  assert wording.note(found.variants()[0]) == "over a trunk with digest b"


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
  assert found.mean == pytest.approx(0.5)
  assert found.interval == pytest.approx((0.5 - half, 0.5 + half), abs=1e-5)
  low, high = stats.t.interval(0.95, df=2, loc=51.0, scale=1 / math.sqrt(3))
  alone = verdicts.difference(ours, Summary(50.5, None, 10))
  assert alone.interval == pytest.approx((low - 50.5, high - 50.5))
  assert verdicts.difference(ours, Summary(50.5, None, 1)) == (0.5, None)


@pytest.mark.parametrize(
  ("interval", "verdict"),
  [
    ((-1.9, 1.9), "agrees"),
    ((0.1, 0.4), "agrees"),  # no difference that matters
    ((-2.1, 1.0), "open"),
    ((1.0, 2.3), "differs"),
    ((-9.0, -3.0), "differs"),
    (None, "open"),
  ],
)
def test_verdicts(interval, verdict):
  found = verdicts.MeanDifference(0.0, interval)
  assert verdicts.judge(found) == verdict
  doubtful = "open" if verdict == "differs" else verdict
  assert verdicts.judge(found, doubtful=True) == doubtful


def test_one_seed_is_open_and_several_are_judged_with_the_paper_s_error():
  cell = CELLS["boundary_aware_no_replay/sbc/split_mnist"]  # 19.90 +- 0.02
  row = row_of(cell.id, entry(cell.command, {0: 19.9}))
  assert (row.verdict, row.difference) == ("open", (pytest.approx(0.0), None))
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


def test_a_run_of_a_package_that_is_not_installed_gives_no_speed():
  known = entry("configs/splitmnist.py:sbc", {0: 1.0})
  method = {"method.name": "nowhere.to_be_found:METHOD"}
  foreign = known._replace(config=known.config | method, steps_per_second=1e4)
  chosen = "configs/splitmnist.py:ewc,sbc"
  assert estimates.estimate(chosen, None, [foreign]).basis == "guess"
  both = estimates.estimate(chosen, None, [foreign, known])
  assert both == estimates.estimate(chosen, None, [known])


def test_what_learns_classes_alone_is_estimated_from_its_own_kind_alone():
  means = entry("configs/cifar10.py:ncm,source", {0: 1.0}, steps_per_second=1e4)
  other = entry("configs/splitmnist.py:generative,source", {0: 1.0})
  chosen = "configs/cifar10.py:generative,source"
  steps = estimates.steps(commands.load(chosen))
  assert estimates.estimate(chosen, None, [means]) == (steps / 200, "guess")
  twice = 2 * steps / 100  # batches are of 256 images, not 128
  assert estimates.estimate(chosen, None, [means, other]) == (twice, "guess")


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


def test_estimates_read_each_configuration_once(monkeypatch):
  """There are as many comparisons as cells that wait times stored runs."""
  read: list[str] = []

  def counted(config):
    read.append(config["method"]["name"])
    return decisive(config)

  monkeypatch.setattr(estimates, "decisive", counted)
  estimates._decisive.cache_clear()
  entries = [entry(f"configs/splitmnist.py:{m},sbc", {0: 1.0}) for m in ("ewc", "si")]
  for _ in range(2):
    estimates.estimate("configs/splitmnist.py:lwf,sbc", None, entries)
  assert sorted(read) == ["ewc", "lwf", "si"]


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
