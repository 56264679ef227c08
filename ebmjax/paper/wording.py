"""Numbers and verdicts in words, shared by the listing and the Markdown tables."""

import functools
import json
from pathlib import Path
from typing import Any

from ebmjax.config.identity import identity, nested
from ebmjax.paper import printed
from ebmjax.paper.cells import Cell
from ebmjax.paper.estimates import Estimate, estimate, told
from ebmjax.paper.ledger import Ledger, Measurement, Row

_READINGS = Path(__file__).parent / "readings.json"


@functools.cache
def readings() -> dict[str, dict[str, Any]]:
  """Returns the hand-written notes: of cells by id, of variants by command."""
  content: dict[str, dict[str, Any]] = json.loads(_READINGS.read_text("utf-8"))
  return content


def ours(measured: Measurement) -> str:
  """Returns mean, standard error and number of seeds."""
  sem = "" if measured.sem is None else f" +- {measured.sem:.2f}"
  return f"{measured.mean:.2f}{sem} ({len(measured.accuracies)})"


def published(cell: Cell) -> str:
  """Returns the paper's mean and standard error."""
  sem = "" if cell.sem is None else f" +- {cell.sem:.2f}"
  return f"{cell.accuracy:.2f}{sem}"


def beside(measured: Measurement) -> str:
  """Returns the figure that a variant's own kind of run has elsewhere, or a dash.

  That is the one its reading names, or the paper's for the same method and data: a
  figure of another configuration, which gets no verdict.
  """
  named = readings()["variants"].get(measured.command, {}).get("published")
  if named:
    return str(named)
  config = nested(json.loads(identity(measured.entries[-1].config)))
  config["network"].pop("gated_layers", None)  # of any number
  cell = printed.lookup(config)
  if cell is None:
    return "-"
  sem = "" if cell["sem"] is None else f" +- {cell['sem']:.2f}"
  return f"{cell['accuracy']:.2f}{sem} (other configuration)"


def short_id(cell: Cell) -> str:
  """Returns a cell's id within its table."""
  return cell.id.split("/", 1)[1]


def verdict(row: Row) -> str:
  """Returns the verdict of a measured cell with its reason and its reading."""
  parts = [row.verdict + (f": {row.reason}" if row.reason else "")]
  note = readings()["cells"].get(row.cell.id)
  if note:
    parts.append(note)
  if row.measured and len(row.measured.accuracies) < row.cell.seeds:
    parts.append(f"{len(row.measured.accuracies)} of {row.cell.seeds} seeds")
  return "; ".join(parts)


def seeds_left(row: Row) -> int:
  """Returns how many of the paper's seeds are missing."""
  have = row.measured.accuracies if row.measured else {}
  return sum(seed not in have for seed in range(row.cell.seeds))


def time_left(ledger: Ledger, row: Row) -> Estimate | None:
  """Returns the time of all missing seeds; None where a cell cannot run."""
  if row.obstacle:
    return None
  each = estimate(row.cell.chosen, ledger.measurement(row.cell.chosen))
  return Estimate(each.seconds * seeds_left(row), each.basis)


def told_time(left: Estimate) -> str:
  """Returns a time with a mark where it is no more than a guess."""
  return told(left.seconds) + ("?" if left.basis == "guess" else "")


def all_hours_left(ledger: Ledger, rows: list[Row]) -> float:
  """Returns the hours that some cells still need; cells of one command share them."""
  each: dict[str, float] = {}
  for row in rows:
    left = time_left(ledger, row)
    if left is not None:
      each[row.cell.chosen] = max(left.seconds, each.get(row.cell.chosen, 0.0))
  return sum(each.values()) / 3600
