"""The paper's cells beside what was measured."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from ebmjax import metrics
from ebmjax.config.identity import identity
from ebmjax.metrics import Summary
from ebmjax.paper import commands, verdicts
from ebmjax.paper.cells import PUBLISHED_TRUNK, Cell
from ebmjax.paper.store import Entry
from ebmjax.paper.verdicts import MeanDifference

NOT_COMPARABLE = "not comparable"


class Measurement(NamedTuple):
  """Runs of one configuration, pooled: every seed once, from the newest run."""

  command: str
  accuracies: dict[int, float]  # by seed, percent
  entries: tuple[Entry, ...]  # those that a seed was taken from

  @property
  def summary(self) -> Summary:
    """Returns mean, standard error and number of seeds."""
    return metrics.mean_sem(np.array(list(self.accuracies.values())))

  @property
  def commits(self) -> list[str]:
    """Returns the commits of the runs, sorted."""
    return sorted({commit for entry in self.entries for commit in entry.commits})

  @property
  def sources(self) -> list[str]:
    """Returns the data sources of the runs with their digests, sorted."""
    return sorted({f"{e.data_source} ({e.data_digest})" for e in self.entries})

  @property
  def budget(self) -> dict[str, int] | None:
    """Returns what a seed costs, by the newest run that states it."""
    return next((e.budget for e in reversed(self.entries) if e.budget), None)

  @property
  def rejection(self) -> dict[str, float] | None:
    """Returns how well the energies reject classes to come, by the newest run."""
    return next((e.rejection for e in reversed(self.entries) if e.rejection), None)

  @property
  def seconds(self) -> float | None:
    """Returns the time of one seed, start-up included, of the newest run."""
    newest = self.entries[-1]
    return newest.wall_time / len(newest.seeds) if newest.wall_time else None

  @property
  def weights(self) -> list[str]:
    """Returns the digests of the pre-trained weights that are known, sorted."""
    return sorted({entry.weights for entry in self.entries if entry.weights})


class Row(NamedTuple):
  """A cell of the ledger."""

  cell: Cell
  measured: Measurement | None = None
  difference: MeanDifference | None = None  # ours less the paper's
  # agrees, differs, open or not comparable; empty: not measured, or not published
  verdict: str = ""
  reason: str = ""  # why not comparable


class Ledger:
  """Rows of cells, and the measurements that belong to none of them."""

  def __init__(self, cells: Iterable[Cell], entries: Iterable[Entry]) -> None:
    groups: dict[str, list[Entry]] = {}
    self.entries = tuple(entries)
    for entry in self.entries:
      groups.setdefault(identity(entry.run), []).append(entry)
    self._measured = {key: measure(found) for key, found in groups.items()}
    others = (of_other_weights(found) for found in groups.values())
    self._others = [measure(found) for found in others if found]
    self.rows = [self._row(cell) for cell in cells]

  def measurement(self, command: str) -> Measurement | None:
    """Returns what was measured with FILE[:variants], None without a run."""
    return self._measured.get(commands.identity_of(command))

  def by_table(self) -> Mapping[str, list[Row]]:
    """Groups the rows by table."""
    found: dict[str, list[Row]] = {}
    for row in self.rows:
      found.setdefault(row.cell.table, []).append(row)
    return found

  def variants(self) -> list[Measurement]:
    """Returns the measurements of no cell, by command."""
    owned = {commands.identity_of(row.cell.command) for row in self.rows}
    others = [found for key, found in self._measured.items() if key not in owned]
    return sorted([*others, *self._others], key=lambda found: found.command)

  def _row(self, cell: Cell) -> Row:
    measured = self.measurement(cell.command)
    if measured is None:
      verdict = NOT_COMPARABLE if cell.reason else ""
      return Row(cell, verdict=verdict, reason=cell.reason)
    if cell.accuracy is None:
      return Row(cell, measured)
    found = verdicts.difference(measured.summary, published(cell))
    reason = cell.reason
    if not all(entry.data_full for entry in measured.entries):
      reason = "not the full data set"
    verdict = NOT_COMPARABLE if reason else verdicts.judge(found, cell.sem_doubtful)
    return Row(cell, measured, found, verdict, reason)


def published(cell: Cell) -> Summary:
  """Returns the published figure; a doubtful standard error is left out."""
  assert cell.accuracy is not None
  return Summary(cell.accuracy, None if cell.sem_doubtful else cell.sem, cell.seeds)


def measure(entries: Iterable[Entry]) -> Measurement:
  """Returns runs of one configuration as one measurement."""
  taken = pool(entries)
  accuracies = {seed: entry.accuracies[i] for seed, (entry, i) in taken.items()}
  used = {id(entry): entry for entry, _ in taken.values()}.values()
  found = sorted(used, key=lambda entry: entry.finished)
  return Measurement(found[-1].command, accuracies, tuple(found))


def pool(entries: Iterable[Entry]) -> dict[int, tuple[Entry, int]]:
  """Picks for every seed, in order, the run that it counts from and its place there.

  Where there are runs on the full data set, only they count; else only those on the
  same part of it as the newest. Where runs start from different pre-trained weights,
  those published count, else those of the newest. A seed that was run twice counts from
  the newer run, by the time that the runs recorded.
  """
  found = sorted(entries, key=lambda entry: entry.finished)
  full = [entry for entry in found if entry.data_full]
  part = [entry for entry in found if entry.data_digest == found[-1].data_digest]
  found = full or part
  counted = _counted_weights(found)
  found = [entry for entry in found if entry.weights in (None, counted)]
  newest = {
    seed: (entry, place) for entry in found for place, seed in enumerate(entry.seeds)
  }
  return {seed: newest[seed] for seed in sorted(newest)}


def of_other_weights(entries: Iterable[Entry]) -> list[Entry]:
  """Returns the runs whose pre-trained weights `pool` passes over."""
  found = list(entries)
  counted = _counted_weights(found)
  return [entry for entry in found if entry.weights not in (None, counted)]


def _counted_weights(entries: Iterable[Entry]) -> str | None:
  """Returns the digest of the weights that count, None where no run has any."""
  known = [e.weights for e in sorted(entries, key=lambda e: e.finished) if e.weights]
  if PUBLISHED_TRUNK in known:
    return PUBLISHED_TRUNK
  return known[-1] if known else None
