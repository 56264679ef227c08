"""The paper's cells set against what was measured."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ebmjax import metrics
from ebmjax.config.identity import identity
from ebmjax.paper import commands, protocols
from ebmjax.paper.cells import Cell
from ebmjax.paper.store import Entry

WITHIN = 2.0  # points between our mean and the paper's
CRITERION = (
  f"Within: our mean and the paper's differ by at most {WITHIN:g} points; above and "
  "below: by more."
)


class Measurement(NamedTuple):
  """Runs of one configuration, pooled: every seed once, the newest run's."""

  command: str
  accuracies: dict[int, float]  # by seed, percent
  mean: float
  sem: float | None
  entries: tuple[Entry, ...]  # those that a seed was taken from

  @property
  def commits(self) -> list[str]:
    """Returns the commits of the runs, sorted."""
    return sorted({commit for entry in self.entries for commit in entry.commits})

  @property
  def sources(self) -> list[str]:
    """Returns the data sources of the runs with their digests, sorted."""
    return sorted({f"{e.data_source} ({e.data_digest})" for e in self.entries})

  @property
  def weights(self) -> list[str]:
    """Returns the digests of the pre-trained weights that are known, sorted."""
    return sorted({entry.weights for entry in self.entries if entry.weights})


class Row(NamedTuple):
  """A cell of the ledger."""

  cell: Cell
  obstacle: str | None  # why it cannot run yet
  measured: Measurement | None
  difference: float | None  # points, ours less the paper's
  verdict: str  # within, above, below or not comparable; empty: not measured
  reason: str  # why not comparable


class Ledger:
  """Rows of cells, and the measurements that belong to none of them."""

  def __init__(self, cells: Iterable[Cell], entries: Iterable[Entry]) -> None:
    pools: dict[str, list[Entry]] = {}
    for entry in entries:
      pools.setdefault(identity(entry.config), []).append(entry)
    self._measured = {key: pool(found) for key, found in pools.items()}
    self.rows = [self._row(cell) for cell in cells]

  def measurement(self, chosen: str) -> Measurement | None:
    """Returns what was measured with FILE[:variants], None without a run."""
    return self._measured.get(commands.identity_of(chosen))

  def variants(self) -> list[Measurement]:
    """Returns the measurements of no cell, by command."""
    runnable = [row.cell for row in self.rows if row.obstacle is None]
    owned = {commands.identity_of(cell.chosen) for cell in runnable}
    others = [found for key, found in self._measured.items() if key not in owned]
    return sorted(others, key=lambda found: found.command)

  def _row(self, cell: Cell) -> Row:
    obstacle = commands.obstacle(cell.chosen, cell.learner)
    measured = None if obstacle else self.measurement(cell.chosen)
    reason = protocols.OTHER_PROTOCOL.get((cell.method, cell.dataset), "")
    if measured is None:
      verdict = "not comparable" if reason else ""
      return Row(cell, obstacle, None, None, verdict, reason)
    difference = measured.mean - cell.accuracy
    if not all(entry.data_full for entry in measured.entries):
      reason = "not the full data set"
    verdict = "not comparable" if reason else judge(difference)
    return Row(cell, None, measured, difference, verdict, reason)


def judge(difference: float) -> str:
  """Returns within, above or below, by the unrounded difference in points."""
  if abs(difference) <= WITHIN:
    return "within"
  return "above" if difference > 0 else "below"


def pool(entries: Iterable[Entry]) -> Measurement:
  """Returns runs of one configuration as one measurement.

  Where there are runs on the full data set, only they count; where they start from
  different pre-trained weights, those of the newest. A seed that was run twice counts
  once, from the newer run.
  """
  found = sorted(entries, key=lambda entry: entry.finished)
  found = [entry for entry in found if entry.data_full] or found
  weights = [entry.weights for entry in found if entry.weights]
  found = [entry for entry in found if entry.weights in (None, *weights[-1:])]
  newest = {
    seed: (accuracy, i)
    for i, entry in enumerate(found)
    for seed, accuracy in zip(entry.seeds, entry.accuracies, strict=True)
  }
  accuracies = {seed: newest[seed][0] for seed in sorted(newest)}
  used = {i for _, i in newest.values()}
  mean, sem, _ = metrics.mean_sem(np.array(list(accuracies.values())))
  entries = tuple(entry for i, entry in enumerate(found) if i in used)
  return Measurement(found[-1].command, accuracies, mean, sem, entries)
