"""Whether two means agree, from 95 % intervals of both.

>>> from ebmjax.metrics import Summary
>>> from ebmjax.paper import verdicts
>>> found = verdicts.difference(Summary(51.0, 0.5, 10), Summary(53.0, 0.4, 10))
>>> round(found.mean, 2), *(round(end, 2) for end in found.interval)
(-2.0, -3.45, -0.55)
>>> verdicts.judge(found)
'differs'
"""

import math
from typing import NamedTuple

from ebmjax.metrics import Summary
from ebmjax.report.significance import LEVEL

MARGIN = 2.0  # points: a difference known to be smaller does not matter
CRITERION = (
  f"Agrees: the {100 * LEVEL:.0f} % interval of our mean minus the paper's lies within "
  f"{MARGIN:g} points of zero. Differs: it does not, and it excludes zero. Open: "
  "neither, or a single seed. A standard error with a question mark was probably "
  "printed as a fraction: the interval then covers only our own error, and the cell "
  "cannot differ."
)


class MeanDifference(NamedTuple):
  """The difference of two means, in points."""

  mean: float
  interval: tuple[float, float] | None  # None: a side has a single seed


def half_width(found: Summary) -> float | None:
  """Returns half the width of the t-interval of a mean; None without an error."""
  if found.sem is None or found.n < 2:
    return None
  from scipy.special import stdtrit  # a slow import, and most commands do not need it

  return float(stdtrit(found.n - 1, (1 + LEVEL) / 2)) * found.sem


def difference(ours: Summary, other: Summary) -> MeanDifference:
  """Returns `ours` minus `other`; the half-widths of both intervals add in quadrature.

  A side of several seeds whose standard error is not known counts as exact.
  """
  mean = ours.mean - other.mean
  if min(ours.n, other.n) < 2:
    return MeanDifference(mean, None)
  half = math.hypot(*(half_width(side) or 0.0 for side in (ours, other)))
  return MeanDifference(mean, (mean - half, mean + half))


def judge(found: MeanDifference, doubtful: bool = False) -> str:
  """Returns agrees, differs or open.

  If the other side's error is `doubtful`, its true interval may be wider, so "differs"
  becomes "open".
  """
  if found.interval is None:
    return "open"
  low, high = found.interval
  if max(abs(low), abs(high)) <= MARGIN:
    return "agrees"
  return "open" if doubtful or low <= 0 <= high else "differs"
