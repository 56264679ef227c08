"""The outcome in short: verdicts by table, and each of the paper's claims."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from ebmjax.paper import verdicts, wording
from ebmjax.paper.cells import REPLAY_FREE, PaperClaim, claims
from ebmjax.paper.ledger import NOT_COMPARABLE, Ledger, Row
from ebmjax.runtime import tabular

WORDS = ("agrees", "differs", "open", NOT_COMPARABLE, "missing")
_HEADER = ("table", *WORDS)


class Finding(NamedTuple):
  """What our runs say about a claim."""

  claim: str
  verdict: str  # holds, does not hold or open
  evidence: list[str]  # one text per pair of cells


def counts(ledger: Ledger) -> dict[str, Counter[str]]:
  """Counts the verdicts of each of the paper's tables; a cell may lack a run."""
  found = {
    name: Counter(map(_state, rows))
    for name, rows in ledger.by_table().items()
    if name != REPLAY_FREE
  }
  return found | {"all": sum(found.values(), Counter())}


def findings(ledger: Ledger) -> list[Finding]:
  """Judges every claim whose cells are all in the ledger."""
  rows = {row.cell.id: row for row in ledger.rows}
  return [
    _finding(claim, rows)
    for claim in claims()
    if all(name in rows for pair in claim.pairs for name in pair)
  ]


def lines(ledger: Ledger) -> list[str]:
  """Returns the summary as plain text."""
  table = tabular.aligned([_HEADER, *_rows(ledger)])
  made = [*table, "", "The paper's claims, by our own runs:"]
  for found in findings(ledger):
    made.append(f"  {found.claim}: {found.verdict}")
    made += [f"      {text}" for text in found.evidence]
  return made


def markdown(ledger: Ledger) -> str:
  """Returns the summary as a block of BENCHMARKS.md."""
  stated = [
    (found.claim, found.verdict, "; ".join(found.evidence))
    for found in findings(ledger)
  ]
  parts = (
    tabular.markdown(_HEADER, _rows(ledger)),
    verdicts.CRITERION,
    tabular.markdown(("the paper's claim", "by our runs", "evidence"), stated),
  )
  return "\n\n".join(parts) + "\n"


def _rows(ledger: Ledger) -> list[list[str]]:
  """Returns the numbers of verdicts in columns as in `_HEADER`."""
  return [
    [name, *(str(found[word]) for word in WORDS)]
    for name, found in counts(ledger).items()
  ]


def _state(row: Row) -> str:
  return row.verdict if row.measured else "missing"


def _finding(claim: PaperClaim, rows: Mapping[str, Row]) -> Finding:
  """Judges a claim: it holds if every pair does, and does not if one is reversed."""
  found = [_pair(rows[first], rows[second]) for first, second in claim.pairs]
  words = {word for word, _ in found}
  verdict = "open"
  if "does not hold" in words:
    verdict = "does not hold"
  elif words == {"holds"}:
    verdict = "holds"
  return Finding(claim.claim, verdict, [text for _, text in found])


def _pair(first: Row, second: Row) -> tuple[str, str]:
  """Returns whether the first cell is above the second, and the figures of both."""
  shared, a, b = _names(first, second)
  if first.measured is None or second.measured is None:
    both = ((a, first), (b, second))
    missing = [name for name, row in both if row.measured is None]
    return "open", f"{shared}: {' and '.join(missing)} not measured"
  ours, other = first.measured.summary, second.measured.summary
  found = verdicts.difference(ours, other)
  figures = f"{a} {ours.mean:.2f}, {b} {other.mean:.2f}, {wording.signed(found)}"
  word, note = _judged(found.interval)
  return word, f"{shared}: {figures}{note}"


def _judged(interval: tuple[float, float] | None) -> tuple[str, str]:
  """Returns whether a difference is above zero, and a remark if it is not."""
  if interval is None:
    return "open", " (one seed)"
  low, high = interval
  if low <= 0 <= high:
    return "open", " (either way)"
  return ("holds", "") if low > 0 else ("does not hold", " (the reverse)")


def _names(first: Row, second: Row) -> tuple[str, str, str]:
  """Splits the ids of two cells into the part they share and the parts that differ."""
  parts = [row.cell.short_id.split("/") for row in (first, second)]
  pairs = list(zip(*parts, strict=True))
  shared = "/".join(a for a, b in pairs if a == b)
  unlike = [(a, b) for a, b in pairs if a != b]
  if not unlike:
    return shared, first.cell.table, second.cell.table
  a, b = ("/".join(names) for names in zip(*unlike, strict=True))
  return shared, a, b
