"""Whether two runs differ by more than their seeds do.

>>> from ebmjax.report import significance
>>> run, other = {0: 51.0, 1: 53.0, 2: 50.0}, {0: 49.0, 1: 50.0, 2: 49.0}
>>> found = significance.compare(run, other)
>>> round(found.mean, 4), found.test, significance.told(found.p)
(2.0, 'paired t-test, 3 seeds', 'p = 0.0742')
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

LEVEL = 0.95  # of the confidence interval


class Difference(NamedTuple):
  """The mean of a run less that of another, in points, and how well it is known."""

  mean: float
  low: float | None  # the ends of the confidence interval
  high: float | None
  p: float | None  # of a difference as large if there were none
  test: str  # which test, or why there is none


def compare(run: Mapping[int, float], other: Mapping[int, float]) -> Difference:
  """Returns the difference of two runs, each {seed: accuracy in percent}.

  The same seeds are compared pair by pair, because they share what the seed decides;
  other seeds as independent samples of unlike variance (Welch).
  """
  paired = run.keys() == other.keys()
  a = np.array([run[seed] for seed in sorted(run)], float)
  b = np.array([other[seed] for seed in sorted(other)], float)
  mean = float(a.mean() - b.mean())
  if min(len(a), len(b)) < 2:
    return Difference(mean, None, None, None, "one seed: no test")
  spread = (a - b).std() if paired else max(a.std(), b.std())
  if spread < 1e-9:
    return Difference(mean, None, None, None, "the same in every seed: no test")
  from scipy import stats  # a second to import, which a single run need not wait for

  found = stats.ttest_rel(a, b) if paired else stats.ttest_ind(a, b, equal_var=False)
  interval = found.confidence_interval(LEVEL)
  name = "paired t-test" if paired else "Welch's t-test"
  seeds = f"{len(a)} seeds" if paired else f"{len(a)} and {len(b)} seeds"
  low, high = float(interval.low), float(interval.high)
  return Difference(mean, low, high, float(found.pvalue), f"{name}, {seeds}")


def told(p: float) -> str:
  """Returns a p-value in words of four decimals."""
  return "p < 0.0001" if p < 0.0001 else f"p = {p:.4f}"
