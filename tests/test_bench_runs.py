"""Whole processes are measured: compiling, start-up, memory, a whole run's shares."""

import pytest

from ebmjax.errors import UserError
from ebmjax.tools.bench import cases, runs, tables
from ebmjax.tools.bench.measuring import Options
from ebmjax.tools.bench.probe import covered

TINY = cases.Training(
  "tiny", "splitmnist.py", 1, (("network.hidden", 8), ("stream.tasks", 2))
)


@pytest.fixture(scope="module")
def row():
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    return runs.measure(TINY, Options(quick=True))


def test_the_second_process_finds_the_first_one_s_programs(row):
  cold, warm = row["cold"], row["warm"]
  assert 0 < warm["seconds_compiling"] < cold["seconds_compiling"]
  assert cold["seconds_compiling"] < cold["seconds_to_first_chunk"] + sum(
    cold["seconds"].values()
  )
  assert 50 < warm["peak_memory_mb"] < 20_000
  assert 0 < warm["seconds_to_first_step"] < warm["seconds_to_first_chunk"]


def test_every_activity_took_its_time(row):
  spent = row["cold"]["seconds"]
  activities = [
    *("preparing", "training", "consolidating"),
    *("evaluating", "recording", "saving"),
  ]
  assert sorted(spent) == sorted(activities)
  assert all(spent[name] > 0 for name in activities)


def test_shares_are_those_of_a_whole_run(row):
  assert sum(row["shares"].values()) == pytest.approx(1)
  whole = row["whole_run_seconds"]
  assert whole["training"] == pytest.approx(4000 / row["warm"]["steps_per_second"])
  # A whole run evaluates and saves as often as this one: at the ends of its tasks.
  for name in ("evaluating", "saving"):
    assert whole[name] == pytest.approx(row["warm"]["seconds"][name])
  assert whole["recording"] == pytest.approx(10 * row["warm"]["seconds"]["recording"])
  assert tables.markdown([row], *runs.TABLES).splitlines()[-1].count("%") == 5


def test_a_run_that_ends_badly_is_told_with_its_last_line():
  broken = TINY._replace(changes=(("network.hidden", -1),))
  with pytest.raises(UserError, match=r"ended with code 1: ebmjax: .*hidden"):
    runs.measure(broken, Options(quick=True))


def test_time_inside_another_span_counts_once():
  assert covered([(3.0, 4.0), (0.0, 2.0), (0.5, 1.0), (1.5, 2.5)]) == 3.5
  assert covered([]) == 0
