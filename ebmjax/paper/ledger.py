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
  entries: tuple[Entry, ...]  # the runs that a seed was taken from

  @property
  def summary(self) -> Summary:
    """The mean, its standard error and the number of seeds."""
    return metrics.mean_sem(np.array(list(self.accuracies.values())))

  @property
  def commits(self) -> list[str]:
    """The commits of the runs, sorted."""
    return sorted({commit for entry in self.entries for commit in entry.commits})

  @property
  def sources(self) -> list[str]:
    """The data sources of the runs with their digests, sorted."""
    return sorted({f"{e.data_source} ({e.data_digest})" for e in self.entries})

  @property
  def budget(self) -> dict[str, int] | None:
    """The budget of a seed, from the newest run that recorded it."""
    return next((e.budget for e in reversed(self.entries) if e.budget), None)

  @property
  def rejection(self) -> dict[str, float] | None:
    """How well energies reject future classes, from the newest run that recorded it."""
    return next((e.rejection for e in reversed(self.entries) if e.rejection), None)

  @property
  def seconds(self) -> float | None:
    """The time of one seed of the newest run, including start-up."""
    newest = self.entries[-1]
    return newest.wall_time / len(newest.seeds) if newest.wall_time else None

  @property
  def weights(self) -> list[str]:
    """The known digests of pre-trained weights, sorted."""
    return sorted({entry.weights for entry in self.entries if entry.weights})


class Row(NamedTuple):
  """A cell of the ledger."""

  cell: Cell
  measured: Measurement | None = None
  difference: MeanDifference | None = None  # ours minus the paper's
  # agrees, differs, open or not comparable; empty: not measured, or not published
  verdict: str = ""
  reason: str = ""  # why not comparable


class Ledger:
  """A row for each cell, and the measurements that belong to no cell."""

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
    """Returns the measurement of FILE[:variants]; None without a run."""
    return self._measured.get(commands.identity_of(command))

  def by_table(self) -> Mapping[str, list[Row]]:
    """Groups the rows by table."""
    found: dict[str, list[Row]] = {}
    for row in self.rows:
      found.setdefault(row.cell.table, []).append(row)
    return found

  def variants(self) -> list[Measurement]:
    """Returns the measurements that belong to no cell, sorted by command."""
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
  """Pools runs of one configuration into one measurement."""
  taken = pool(entries)
  accuracies = {seed: entry.accuracies[i] for seed, (entry, i) in taken.items()}
  used = {id(entry): entry for entry, _ in taken.values()}.values()
  found = sorted(used, key=lambda entry: entry.finished)
  return Measurement(found[-1].command, accuracies, tuple(found))


def pool(entries: Iterable[Entry]) -> dict[int, tuple[Entry, int]]:
  """Maps each seed to the run that it is taken from and its position there.

  If any run is on the full data set, only such runs count; otherwise only those on the
  same part of it as the newest. If runs start from different pre-trained weights, the
  published ones count; otherwise those of the newest run. A seed that was run twice is
  taken from the newer run, by the recorded time.
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
  """Returns the runs that `pool` skips because of their pre-trained weights."""
  found = list(entries)
  counted = _counted_weights(found)
  return [entry for entry in found if entry.weights not in (None, counted)]


def _counted_weights(entries: Iterable[Entry]) -> str | None:
  """Returns the digest of the weights that count; None if no run has any."""
  known = [e.weights for e in sorted(entries, key=lambda e: e.finished) if e.weights]
  if PUBLISHED_TRUNK in known:
    return PUBLISHED_TRUNK
  return known[-1] if known else None
