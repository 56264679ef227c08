"""The speed benchmark runs, and tells a peer that cannot."""

import pytest

from ebmjax import bench
from ebmjax.errors import UserError

TINY = bench.Case("tiny", "split", "", 8, 3)


def test_measures_a_case_and_prints_its_row():
  row = bench.measure(TINY, None, rounds=2)
  assert row["ebmjax"]["min"] > 0
  assert row["ebmjax"]["min"] <= row["ebmjax"]["median"] <= row["ebmjax"]["max"]
  assert bench.table([row]).splitlines()[-1].startswith("| tiny | ")


def test_ratio_is_ours_over_theirs():
  spread = {"median": 2.5, "min": 2.0, "max": 3.0}
  row = {"case": "x", "ebmjax": spread, "torch": spread, "ratio": spread}
  assert "**2.50** (2.00 to 3.00)" in bench.table([row])


def test_a_peer_without_an_answer_is_told():
  """`true` ends at once, as an interpreter without torch does."""
  with pytest.raises(UserError, match="must name a Python that has torch"):
    bench.Peer("true", TINY)
