"""Whether two means agree, from 95 % intervals of both.

>>> from ebmjax.metrics import Summary
>>> from ebmjax.paper import verdicts
>>> found = verdicts.difference(Summary(51.0, 0.5, 10), Summary(53.0, 0.4, 10))
>>> round(found.mean, 2), round(found.low, 2), round(found.high, 2)
(-2.0, -3.45, -0.55)
>>> verdicts.judge(found)
'differs'
"""

import math
from typing import NamedTuple

from ebmjax.metrics import Summary

LEVEL = 0.95
MARGIN = 2.0  # points: a difference known to be smaller does not matter
CRITERION = (
  f"Agrees: the {100 * LEVEL:.0f} % interval of our mean minus the paper's lies within "
  f"{MARGIN:g} points of zero. Differs: it does not, and it excludes zero. Open: "
  "neither, or a single seed. A standard error with a question mark was probably "
  "printed as a fraction: the interval then covers only our own error, and the cell "
  "cannot differ."
)


class Difference(NamedTuple):
  """A mean less another, in points, with its interval; None: one seed, no interval."""

  mean: float
  low: float | None
  high: float | None


def half_width(sem: float, n: int) -> float:
  """Returns half of the t-interval of a mean of `n` values with this standard error."""
  from scipy.special import stdtrit  # a slow import, and most commands do not need it

  return float(stdtrit(n - 1, (1 + LEVEL) / 2)) * sem


def difference(ours: Summary, other: Summary) -> Difference:
  """Returns `ours` less `other`; the half-widths of both intervals add in quadrature.

  A standard error of several seeds that is None is unknown: that side counts as exact.
  """
  mean = ours.mean - other.mean
  if min(ours.n, other.n) < 2:
    return Difference(mean, None, None)
  half = math.hypot(
    *(half_width(side.sem, side.n) for side in (ours, other) if side.sem is not None)
  )
  return Difference(mean, mean - half, mean + half)


def judge(found: Difference, doubtful: bool = False) -> str:
  """Returns agrees, differs or open.

  Where the other side's error is `doubtful` its true interval may be wide: a difference
  then stays open.
  """
  if found.low is None or found.high is None:
    return "open"
  if max(abs(found.low), abs(found.high)) <= MARGIN:
    return "agrees"
  return "open" if doubtful or found.low <= 0 <= found.high else "differs"
