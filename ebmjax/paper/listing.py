"""The ledger as plain text."""

from collections.abc import Iterable
from pathlib import Path

from ebmjax.errors import UserError
from ebmjax.paper import commands, protocols, store, wording
from ebmjax.paper.cells import Cell
from ebmjax.paper.figures import FIGURES
from ebmjax.paper.figures.missing import runs_of
from ebmjax.paper.figures.pooling import scan
from ebmjax.paper.ledger import CRITERION, Ledger, Measurement, Row

MARKS = (
  "Times are those of the paper's seeds that are missing; a question mark: a guess. "
  "Numbered notes: BENCHMARKS.md."
)


def overview(ledger: Ledger, runs: Path) -> str:
  """Returns every table and its cells, the figures, and what is left to do."""
  parts = [_table(ledger, name, rows) for name, rows in _by_table(ledger).items()]
  return "\n\n".join([*parts, _figures(runs), summary(ledger)])


def details(ledger: Ledger, cells: Iterable[Cell]) -> str:
  """Returns all that is known of some cells."""
  asked = {cell.id for cell in cells}
  rows = [row for row in ledger.rows if row.cell.id in asked]
  blocks = [_details(ledger, row) for row in rows]
  return "\n\n".join([*blocks, f"{CRITERION} {MARKS}"])


def variants(ledger: Ledger) -> str:
  """Returns the measurements that are no cell of the paper."""
  lines = ["Measured beside the paper's cells:"]
  for found in ledger.variants():
    note = wording.readings()["variants"].get(found.command, {}).get("note")
    figures = f"    {wording.ours(found)}, published {wording.beside(found)}"
    lines += ["", f"  {found.command}", figures + (f"; {note}" if note else "")]
    lines.append(f"    {_provenance(found)}")
  return "\n".join(lines if len(lines) > 1 else ["Nothing beside the paper's cells."])


def summary(ledger: Ledger) -> str:
  """Returns how many cells are measured and how long the others would take."""
  rows = ledger.rows
  done = [row for row in rows if row.measured]
  words = [row.verdict for row in done]
  counts = ", ".join(
    f"{words.count(word)} {word}" for word in dict.fromkeys(sorted(words))
  )
  commands = {row.cell.chosen for row in done}
  blocked = [row for row in rows if row.obstacle]
  hours = wording.all_hours_left(ledger, rows)
  return "\n".join(
    [
      f"{len(rows)} cells: {len(done)} measured by {len(commands)} commands "
      f"({counts or 'none'}), {len(rows) - len(done) - len(blocked)} not yet, "
      f"{len(blocked)} not runnable yet.",
      f"The missing seeds would take about {hours:.0f} hours, as fast as earlier runs "
      f"on one or two CPU cores. {MARKS}",
      CRITERION,
    ]
  )


def _by_table(ledger: Ledger) -> dict[str, list[Row]]:
  found: dict[str, list[Row]] = {}
  for row in ledger.rows:
    found.setdefault(row.cell.table, []).append(row)
  return found


def _table(ledger: Ledger, name: str, rows: list[Row]) -> str:
  lines = [
    name,
    f"  {'cell':<34}{'ours (n)':<22}{'paper':<17}{'diff':>7}  verdict",
  ]
  for row in rows:
    lines += _lines(ledger, row)
  return "\n".join(lines)


def _lines(ledger: Ledger, row: Row) -> list[str]:
  start = f"  {wording.short_id(row.cell):<34}"
  cited = f"{wording.published(row.cell):<17}"
  if row.measured is None:
    return [f"{start}{'-':<22}{cited}{'':>7}  {_state(ledger, row)}"]
  figures = f"{wording.ours(row.measured):<22}{cited}{row.difference:>+7.2f}"
  return [
    f"{start}{figures}  {wording.verdict(row)}",
    f"      {row.cell.chosen}; {_provenance(row.measured)}",
  ]


def _state(ledger: Ledger, row: Row) -> str:
  """Returns what is known of a cell that was not measured."""
  left = wording.time_left(ledger, row)
  state = f"not runnable: {row.obstacle}" if left is None else wording.told_time(left)
  return f"{state}; {wording.verdict(row)}" if row.reason else state


def _details(ledger: Ledger, row: Row) -> str:
  cell = row.cell
  lines = [
    cell.id,
    f"  paper      {wording.published(cell)}, run by {protocols.origin(cell.id)}",
  ]
  if row.measured is None and row.reason:
    lines.append(f"  verdict    {wording.verdict(row)}")
  if row.obstacle:
    return "\n".join([*lines, f"  state      not runnable: {row.obstacle}"])
  if row.measured:
    lines.append(
      f"  ours       {wording.ours(row.measured)}, {row.difference:+.2f}: "
      f"{wording.verdict(row)}"
    )
    lines.append(f"  from       {_provenance(row.measured)}")
  lines.append(f"  command    {commands.command_line(cell.chosen, cell.seeds)}")
  lines += [f"  deviation  {text}" for text in protocols.deviations(cell.id)]
  left = wording.time_left(ledger, row)
  if left and left.seconds:
    seeds = wording.seeds_left(row)
    lines.append(f"  missing    {seeds} seeds, about {wording.told_time(left)}")
  return "\n".join(lines)


def _provenance(measured: Measurement) -> str:
  commits = ", ".join(measured.commits)
  weights = "".join(f"; weights {digest}" for digest in measured.weights)
  return f"commit {commits}; data: {'; '.join(measured.sources)}{weights}"


def _figures(root: Path) -> str:
  """Returns the figures by name, and which can be drawn from `root` and the scores."""
  finished, scores = scan(root) if root.is_dir() else [], store.scores()
  lines = ["figures (--figure=NAME draws one)"]
  for name, spec in FIGURES.items():
    try:
      runs_of(name, spec, root, finished, scores=scores)
      state = "can be drawn"
    except UserError:
      state = "its runs are missing"
    lines.append(f"  {name:<24}{state:<22}{spec.title}")
  return "\n".join(lines)
