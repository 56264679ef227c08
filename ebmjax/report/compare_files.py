"""A comparison as plain text, CSV and JSON."""

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from ebmjax.config import flat_keys
from ebmjax.report import compare, labels
from ebmjax.report.compare import Comparison
from ebmjax.report.compare_tables import tables
from ebmjax.runtime import atomic, tabular


def text(found: Comparison) -> str:
  """Returns the comparison as plain text."""
  blocks = []
  for table in chain(*tables(found).values()):
    lines = labels.columns([table.header, *table.rows])
    shown = [f"{table.caption}:", *lines] if table.rows else []
    blocks.append([*shown, table.note] if table.note else shown)
  rule = "-" * max(len(line) for block in blocks for line in block)
  parts = (*blocks, compare.notes(found))
  body = f"\n{rule}\n".join("\n".join(block) for block in parts if block)
  return labels.plain(f"{rule}\n{body}\n{rule}")


def write(out: Path, page: str, found: Comparison) -> None:
  """Writes the page to `out`, and the table as CSV and JSON beside it."""
  # The page first: tables without a page look like another program's files.
  contents = (page, to_csv(found.rows), to_json(found))
  for path, content in zip((out, *tables_beside(out)), contents, strict=True):
    atomic.write(path, content)


def tables_beside(page: Path) -> tuple[Path, Path]:
  """Returns the files of a page's table."""
  return page.with_suffix(".csv"), page.with_suffix(".json")


def to_json(found: Comparison) -> str:
  """Returns the rows and warnings as JSON."""
  content = {"runs": found.rows, "warnings": compare.notes(found)}
  return json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def to_csv(made: Sequence[Mapping[str, Any]]) -> str:
  """Returns the rows as CSV, one number per column; empty where there is none."""
  flat = [flat_keys(row) for row in made]
  header = list(dict.fromkeys(key for row in flat for key in row))
  return tabular.csv_text(header, ([_cell(row.get(k)) for k in header] for row in flat))


def _cell(value: Any) -> Any:
  return " ".join(map(str, value)) if isinstance(value, list) else value
