"""The speed benchmark runs, and tells a peer that cannot."""

import pytest

from ebmjax import bench
from ebmjax.errors import UserError

TINY = bench.Case("tiny", "split", "", 8, 3)


def test_measures_a_case_and_prints_its_row():
  row = bench.measure(TINY, None, rounds=2)
  rate = row["rate"]["ebmjax"]
  assert 0 < rate["min"] <= rate["median"] <= rate["max"]
  assert bench.table([row]).splitlines()[-1] == f"| tiny | {rate['median']:.0f} |"


def test_ratio_is_ours_over_theirs(monkeypatch):
  """Rounds of 0.5 s against 2 s and 1 s: four and two times as fast."""
  seconds = {"pass_per_label": 2.0, "shared": 1.0}

  class FakePeer:
    def __init__(self, python, case, form):
      self.form = form

    def __call__(self):
      return seconds[self.form]

    def close(self):
      seconds[self.form] = 0.0

  monkeypatch.setattr(bench, "ours", lambda case: lambda: 0.5)
  monkeypatch.setattr(bench, "Peer", FakePeer)
  text = bench.table([bench.measure(TINY, "python", rounds=3)])
  assert (
    "| tiny | 6 | 2 | 3 | **4.00** (4.00 to 4.00) | **2.00** (2.00 to 2.00) |" in text
  )
  assert set(seconds.values()) == {0.0}  # both were closed


def test_a_peer_without_an_answer_is_told():
  """`true` ends at once, as an interpreter without torch does."""
  with pytest.raises(UserError, match="must name a Python that has torch"):
    bench.Peer("true", TINY, "shared")
