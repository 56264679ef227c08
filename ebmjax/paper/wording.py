"""Numbers and verdicts as text, shared by the listing and the Markdown tables."""

import functools
import json
from collections.abc import Iterable
from pathlib import Path

from ebmjax.metrics import Summary
from ebmjax.networks import trunk_digest
from ebmjax.networks.cifar100 import PACKAGED
from ebmjax.paper import estimates
from ebmjax.paper.cells import PUBLISHED_TRUNK, Cell
from ebmjax.paper.commands import cell_for
from ebmjax.paper.estimates import Estimate
from ebmjax.paper.ledger import Ledger, Measurement, Row
from ebmjax.paper.verdicts import MeanDifference
from ebmjax.report import labels
from ebmjax.runtime import cost

_VARIANTS = Path(__file__).parent / "variants.json"


@functools.cache
def readings() -> dict[str, dict[str, str]]:
  """Returns the hand-written notes on variants, by command."""
  content: dict[str, dict[str, str]] = json.loads(_VARIANTS.read_text("utf-8"))
  return content


def mean(found: Summary) -> str:
  """Formats mean, standard error and number of seeds."""
  return f"{_mean_sem(found.mean, found.sem)} ({found.n})"


def config(command: str) -> str:
  """Returns FILE[:variants] and flags as Markdown's code, without the folder."""
  return f"`{command.removeprefix('configs/')}`"


def commits(measured: Measurement) -> str:
  """Returns the commits as Markdown's code."""
  return ", ".join(f"`{commit}`" for commit in measured.commits)


def published(cell: Cell) -> str:
  """Formats the published mean and its error; a doubtful one has a question mark."""
  if cell.accuracy is None:
    return "-"
  return _mean_sem(cell.accuracy, cell.sem) + ("?" if cell.sem_doubtful else "")


def _mean_sem(mean: float, sem: float | None) -> str:
  return labels.plain(labels.mean_sem(mean, sem))


def signed(found: MeanDifference | None) -> str:
  """Formats a difference in points with its interval; a dash if there is none."""
  if found is None:
    return "-"
  if found.interval is None:
    return f"{found.mean:+.2f}"
  low, high = found.interval
  return f"{found.mean:+.2f} [{low:+.2f}, {high:+.2f}]"


def reading(measured: Measurement) -> dict[str, str]:
  """Returns the hand-written notes on a variant."""
  return readings().get(measured.command, {})


def note(measured: Measurement) -> str:
  """Returns the note on a variant: its trunk if unusual, else the hand-written one."""
  weights = ", ".join(measured.weights)
  if weights in ("", PUBLISHED_TRUNK):
    return reading(measured).get("note", "")
  if weights == trunk_digest(PACKAGED):
    return "over the package's own trunk"
  return f"over a trunk with digest {weights}"


def beside(measured: Measurement) -> str:
  """Returns the published figure that is nearest to a variant, or a dash.

  The hand-written notes may name it. Otherwise it is the paper's for the same problem,
  method and network: a figure of another configuration, which gets no verdict.
  """
  named = reading(measured).get("published")
  if named:
    return named
  cell = cell_for(measured.entries[-1].run)
  return "-" if cell is None else f"{published(cell)} (other configuration)"


def verdict(row: Row) -> str:
  """Returns the verdict of a cell with its reason, its floor and its note."""
  parts = [row.verdict + (f": {row.reason}" if row.reason else "")]
  if row.cell.floor is not None:
    parts.append(f"floor {row.cell.floor:g}")
  parts.append(row.cell.note)
  if row.measured and len(row.measured.accuracies) < row.cell.seeds:
    parts.append(f"{len(row.measured.accuracies)} of {row.cell.seeds} seeds")
  return "; ".join(part for part in parts if part)


def seeds_left(row: Row) -> int:
  """Returns how many of the seeds asked for are missing."""
  have = row.measured.accuracies if row.measured else {}
  return sum(seed not in have for seed in range(row.cell.seeds))


def time_left(ledger: Ledger, row: Row) -> Estimate:
  """Estimates the time of all missing seeds."""
  command = row.cell.command
  each = estimates.estimate(command, ledger.measurement(command), ledger.entries)
  return Estimate(each.seconds * seeds_left(row), each.basis)


def duration(left: Estimate) -> str:
  """Formats a time, with a question mark if it is a guess."""
  return cost.duration(left.seconds) + ("?" if left.basis == "guess" else "")


def waiting(ledger: Ledger, rows: Iterable[Row]) -> str:
  """Lists the cells without a run with their times; empty if there are none."""
  found = [
    f"`{row.cell.short_id}` ({duration(time_left(ledger, row))})"
    for row in rows
    if not row.measured
  ]
  return f"Not measured yet: {', '.join(found)}." if found else ""


def all_hours_left(ledger: Ledger, rows: list[Row]) -> float:
  """Returns the hours that some cells still need; those of one command share runs."""
  each: dict[str, float] = {}
  for row in rows:
    left = time_left(ledger, row).seconds
    each[row.cell.command] = max(left, each.get(row.cell.command, 0.0))
  return sum(each.values()) / 3600
