"""The ledger as plain text."""

from collections.abc import Iterable

from ebmjax.paper import commands, summary, wording
from ebmjax.paper.cells import Cell
from ebmjax.paper.ledger import Ledger, Measurement, Row
from ebmjax.paper.verdicts import CRITERION
from ebmjax.runtime import tabular

MARKS = (
  "Times are those of the missing seeds; a question mark means a guess. BENCHMARKS.md "
  "has the numbered notes."
)
_HEADER = ("  cell", "ours (n)", "published", "difference", "verdict")


def overview(ledger: Ledger) -> str:
  """Lists every table and its cells, the summary and what is left."""
  parts = [_table(ledger, name, rows) for name, rows in ledger.by_table().items()]
  outcome = "\n".join(summary.lines(ledger))
  return "\n\n".join([*parts, outcome, left(ledger)])


def details(ledger: Ledger, cells: Iterable[Cell]) -> str:
  """Lists everything known about some cells."""
  asked = {cell.id for cell in cells}
  rows = [row for row in ledger.rows if row.cell.id in asked]
  blocks = [_details(ledger, row) for row in rows]
  return "\n\n".join([*blocks, f"{CRITERION} {MARKS}"])


def variants(ledger: Ledger) -> str:
  """Lists the measurements that belong to no cell."""
  lines = ["Measured beside the paper's cells:"]
  for found in ledger.variants():
    note = wording.note(found)
    figures = f"    {wording.mean(found.summary)}, published {wording.beside(found)}"
    lines += ["", f"  {found.command}", figures + (f"; {note}" if note else "")]
    lines.append(f"    {_provenance(found)}")
  return "\n".join(lines if len(lines) > 1 else ["Nothing beside the paper's cells."])


def left(ledger: Ledger) -> str:
  """Says how many cells are measured and how long the others would take."""
  rows = ledger.rows
  done = [row for row in rows if row.measured]
  used = {row.cell.command for row in done}
  hours = wording.all_hours_left(ledger, rows)
  return "\n".join(
    [
      f"{len(rows)} cells: {len(done)} measured by {len(used)} commands, "
      f"{len(rows) - len(done)} not yet.",
      f"The missing seeds would take about {hours:.0f} hours, as fast as earlier runs "
      f"on one or two CPU cores. {MARKS}",
      CRITERION,
    ]
  )


def _table(ledger: Ledger, name: str, rows: list[Row]) -> str:
  """Returns a line for each cell, and below a measured one how it was measured."""
  head, *cells = tabular.aligned([_HEADER, *(_cells(ledger, row) for row in rows)])
  lines = [name, head]
  for row, line in zip(rows, cells, strict=True):
    lines.append(line)
    if row.measured:
      lines.append(f"      {row.cell.command}; {_provenance(row.measured)}")
  return "\n".join(lines)


def _cells(ledger: Ledger, row: Row) -> list[str]:
  return [
    f"  {row.cell.short_id}",
    wording.mean(row.measured.summary) if row.measured else "-",
    wording.published(row.cell),
    wording.signed(row.difference),
    wording.verdict(row) if row.measured else _state(ledger, row),
  ]


def _state(ledger: Ledger, row: Row) -> str:
  """Returns the time that an unmeasured cell needs, and why it is not comparable."""
  state = wording.duration(wording.time_left(ledger, row))
  return f"{state}; {wording.verdict(row)}" if row.reason else state


def _details(ledger: Ledger, row: Row) -> str:
  cell = row.cell
  lines = [cell.id]
  if cell.accuracy is not None:
    lines.append(f"  published  {wording.published(cell)}, run by {cell.origin}")
  if row.measured is None and row.reason:
    lines.append(f"  verdict    {wording.verdict(row)}")
  if row.measured:
    against = f", {wording.signed(row.difference)}" if row.difference else ""
    judged = f": {found}" if (found := wording.verdict(row)) else ""
    lines += [
      f"  ours       {wording.mean(row.measured.summary)}{against}{judged}",
      f"  from       {_provenance(row.measured)}",
    ]
  lines.append(f"  command    {commands.command_line(cell.command, cell.seeds)}")
  lines += [f"  deviation  {text}" for text in cell.deviations]
  time = wording.time_left(ledger, row)
  if time.seconds:
    seeds = wording.seeds_left(row)
    lines.append(f"  missing    {seeds} seeds, about {wording.duration(time)}")
  return "\n".join(lines)


def _provenance(measured: Measurement) -> str:
  commits = ", ".join(measured.commits)
  weights = "".join(f"; weights {digest}" for digest in measured.weights)
  return f"commit {commits}; data: {'; '.join(measured.sources)}{weights}"
