"""The measured tables of BENCHMARKS.md and README.md, between markers.

All other text of a file is kept.
"""

import re
import textwrap
from pathlib import Path

from ebmjax.errors import UserError
from ebmjax.paper import headline, replay_free, summary, wording
from ebmjax.paper.cells import REPLAY_FREE
from ebmjax.paper.ledger import Ledger, Row
from ebmjax.runtime import atomic, failures, tabular
from ebmjax.tools.bench import sections

_COLUMNS = ("cell", "CONFIG", "ours (n)", "paper", "difference", "verdict", "commit")
_WRAP = textwrap.TextWrapper(96, break_on_hyphens=False, break_long_words=False)
SUMMARY = "summary"
BESIDE = "beside_the_paper"
DATA = "data"
HEADLINE = "headline"  # the only block of README.md; BENCHMARKS.md has the others
_BLOCK = re.compile(
  r"(<!-- measured: (?P<name>\w+) -->\n)(?P<body>.*?)(<!-- end -->)", re.DOTALL
)


def blocks(ledger: Ledger) -> dict[str, str]:
  """Returns the text of every block by its name."""
  first = {SUMMARY: summary.markdown(ledger)}
  tables = {name: _table(ledger, rows) for name, rows in ledger.by_table().items()}
  tables[REPLAY_FREE] = replay_free.markdown(ledger)
  last = {BESIDE: _beside(ledger), DATA: _data(ledger)}
  last |= sections.blocks()
  return first | tables | last | {HEADLINE: headline.markdown(ledger)}


def render(text: str, ledger: Ledger) -> str:
  """Returns `text` with the content of its blocks replaced."""
  made = blocks(ledger)
  _check_markers(text, set(made))

  def filled(match: re.Match[str]) -> str:
    return f"{match[1]}\n{made[match['name']]}\n{match[4]}"

  return _BLOCK.sub(filled, text)


def write(path: Path, ledger: Ledger) -> None:
  """Rewrites the blocks of a file, in one step."""
  content = render(_read(path), ledger)
  with failures.explain_write_errors(path, "or give --write a copy of it elsewhere"):
    atomic.write(path, content)


def check(path: Path, ledger: Ledger) -> None:
  """Raises if a block is missing or does not match the stored results."""
  text = _read(path)
  made = blocks(ledger)
  _check_markers(text, set(made))
  found = [match["name"] for match in _BLOCK.finditer(text)]
  expected = [name for name in made if (name == HEADLINE) == (HEADLINE in found)]
  wrong = [name for name in expected if found.count(name) != 1]
  if wrong:
    raise UserError(
      f"{path} must have the block {wrong[0]} once, and has it {found.count(wrong[0])} "
      f"times; put <!-- measured: {wrong[0]} --> and <!-- end --> on lines of their "
      f"own, and run python -m ebmjax.reproduce --write={path}"
    )
  stale = [
    match["name"]
    for match in _BLOCK.finditer(text)
    if match["body"] != f"\n{made[match['name']]}\n"
  ]
  if stale:
    raise UserError(
      f"{path} does not say what the stored results hold ({', '.join(stale)}); run "
      f"python -m ebmjax.reproduce --write={path}"
    )


def _read(path: Path) -> str:
  try:
    return path.read_bytes().decode()
  except (OSError, UnicodeDecodeError) as error:
    raise UserError(f"{path} cannot be read ({error}); name a text file.") from error


def _check_markers(text: str, known: set[str]) -> None:
  """Refuses a file without blocks, with unknown ones, or with a marker left open."""
  names = [match["name"] for match in _BLOCK.finditer(text)]
  example = "<!-- measured: boundary_free --> ... <!-- end -->"
  if not names:
    raise UserError(f"there is no block to write; put markers such as {example}.")
  unknown = sorted(set(names) - known)
  if unknown:
    choices = ", ".join(sorted(known))
    raise UserError(f"no table is called {unknown[0]!r}; the blocks are {choices}.")
  if not text.count("<!-- measured:") == text.count("<!-- end -->") == len(names):
    raise UserError(f"a marker is left open or misspelt; each is {example}.")


def _table(ledger: Ledger, rows: list[Row]) -> str:
  measured = [row for row in rows if row.measured]
  lines = []
  if measured:
    lines += [tabular.markdown(_COLUMNS, map(_row, measured)), ""]
  if waiting := wording.waiting(ledger, rows):
    lines += [_WRAP.fill(waiting), ""]
  return "\n".join(lines)


def _row(row: Row) -> list[str]:
  assert row.measured is not None
  return [
    f"`{row.cell.short_id}`",
    wording.config(row.cell.command),
    wording.mean(row.measured.summary),
    wording.published(row.cell),
    wording.signed(row.difference),
    wording.verdict(row),
    wording.commits(row.measured),
  ]


def _beside(ledger: Ledger) -> str:
  rows = [
    [
      wording.config(found.command),
      wording.mean(found.summary),
      wording.beside(found),
      wording.note(found),
      wording.commits(found),
    ]
    for found in ledger.variants()
  ]
  header = ("CONFIG and flags", "ours (n)", "published", "note", "commit")
  return tabular.markdown(header, rows) + "\n"


def _data(ledger: Ledger) -> str:
  """Names the data, versions and devices of the runs of all tables."""
  rows = [row.measured for row in ledger.rows if row.measured]
  entries = [e for found in [*rows, *ledger.variants()] for e in found.entries]
  data = sorted({f"{e.data_source} (digest `{e.data_digest}`)" for e in entries})
  made = sorted({f"jax {e.jax} on {e.device}" for e in entries})
  return f"Data: {'; '.join(data)}. Made with {', '.join(made)}.\n"
