"""Tests whether two runs differ by more than chance.

>>> from ebmjax.report import significance
>>> run, other = {0: 51.0, 1: 53.0, 2: 50.0}, {0: 49.0, 1: 50.0, 2: 49.0}
>>> found = significance.compare(run, other)
>>> round(found.mean, 4), found.test, significance.p_text(found.p)
(2.0, 'paired t-test, 3 seeds', 'p = 0.0742')
>>> significance.holm([0.01, 0.04, 0.03])
[0.03, 0.06, 0.06]
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

LEVEL = 0.95  # of the confidence interval


class TestResult(NamedTuple):
  """The mean of a run minus that of another, in points, and how certain it is."""

  mean: float
  low: float | None  # the ends of the confidence interval
  high: float | None
  p: float | None  # of a difference at least as large if there were none
  test: str  # which test, or why there is none


def compare(run: Mapping[int, float], other: Mapping[int, float]) -> TestResult:
  """Returns the difference of two runs, each {seed: accuracy in percent}.

  The same seeds are compared pair by pair, because they share what the seed decides;
  other seeds are independent samples of unequal variance (Welch).
  """
  paired = run.keys() == other.keys()
  a = np.array([run[seed] for seed in sorted(run)], float)
  b = np.array([other[seed] for seed in sorted(other)], float)
  mean = float(a.mean() - b.mean())
  if min(len(a), len(b)) < 2:
    return TestResult(mean, None, None, None, "one seed: no test")
  spread = (a - b).std() if paired else max(a.std(), b.std())
  if spread < 1e-9:
    return TestResult(mean, None, None, None, "the same in every seed: no test")
  from scipy import stats  # slow to import, and a single run does not need it

  found = stats.ttest_rel(a, b) if paired else stats.ttest_ind(a, b, equal_var=False)
  interval = found.confidence_interval(LEVEL)
  name = "paired t-test" if paired else "Welch's t-test"
  seeds = f"{len(a)} seeds" if paired else f"{len(a)} and {len(b)} seeds"
  low, high = float(interval.low), float(interval.high)
  return TestResult(mean, low, high, float(found.pvalue), f"{name}, {seeds}")


def holm(ps: Sequence[float]) -> list[float]:
  """Corrects p-values for their number by Holm's method (1979).

  The k-th smallest of m is multiplied by m - k + 1; the order of the values is kept.
  """
  out, largest = list(ps), 0.0
  for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
    largest = max(largest, min(1.0, (len(ps) - rank) * ps[place]))
    out[place] = largest
  return out


def p_text(p: float) -> str:
  """Formats a p-value with four decimals, such as "p = 0.0493"."""
  return "p < 0.0001" if p < 0.0001 else f"p = {p:.4f}"
