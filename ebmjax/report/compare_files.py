"""A comparison as plain text, CSV and JSON."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ebmjax.report import compare, labels, significance
from ebmjax.report.stored import StoredRun
from ebmjax.runtime import atomic, tabular

HOLM = "holm: corrected for the number of comparisons by Holm's method."
_COLUMNS = ("run", "n", "method", "network", "data", "setting", "keys that differ")


def text(
  runs: Sequence[StoredRun], made: Sequence[Mapping[str, Any]], notes: Sequence[str]
) -> str:
  """Returns the comparison as plain text."""
  which = [_COLUMNS, *(described(row) for row in made)]
  measured = [("", *(row["name"] for row in made))]
  measured += [(label, *found) for label, _, found in compare.measured(runs, made)]
  said = [sentence(row, made[0]["name"]) for row in made[1:]]
  said += [HOLM] if compare.several_tests(made) else []
  said += [found] if (found := compare.starred(made)) else []
  blocks = [_aligned(which), _aligned(measured), said, list(notes)]
  rule = "-" * max(len(line) for block in blocks[:2] for line in block)
  body = f"\n{rule}\n".join("\n".join(block) for block in blocks if block)
  return labels.plain(f"{rule}\n{body}\n{rule}")


def described(row: Mapping[str, Any]) -> tuple[str, ...]:
  """Returns what a run is: the cells of its row in the table of runs."""
  keys = ("name", "n", "method", "network", "data", "setting")
  return (*(str(row[key]) for key in keys), compare.differing_text(row))


def sentence(row: Mapping[str, Any], first: str) -> str:
  """Returns the difference of a row from the run named `first`."""
  found = row["difference"]
  start = f"{row['name']} minus {first}: {found['mean']:+.2f} points"
  if found["p"] is None:
    return f"{start} ({found['test']})."
  interval = f"95 % confidence interval {found['low']:+.2f} to {found['high']:+.2f}"
  return f"{start}, {interval}, {p_cell(found)} ({found['test']})."


def p_cell(found: Mapping[str, Any]) -> str:
  """Returns the p-value, and Holm's where there were several; a dash without one."""
  if found["p"] is None:
    return labels.DASH
  p = significance.p_text(found["p"])
  if found["p_holm"] == found["p"]:
    return p
  return f"{p} (holm {significance.p_text(found['p_holm'])})"


def write(
  out: Path, page: str, made: Sequence[Mapping[str, Any]], notes: Sequence[str]
) -> None:
  """Writes the page to `out`, and the table as CSV and JSON beside it."""
  # The page first: tables without it would look like another program's.
  atomic.write(out, page)
  for path, content in zip(
    tables_beside(out), (to_csv(made), to_json(made, notes)), strict=True
  ):
    atomic.write(path, content)


def tables_beside(page: Path) -> tuple[Path, Path]:
  """Returns the files of a page's table."""
  return page.with_suffix(".csv"), page.with_suffix(".json")


def to_json(made: Sequence[Mapping[str, Any]], notes: Sequence[str]) -> str:
  """Returns the rows and warnings as JSON."""
  content = {"runs": list(made), "warnings": list(notes)}
  return json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def to_csv(made: Sequence[Mapping[str, Any]]) -> str:
  """Returns the rows as CSV, one number per column; empty where there is none."""
  flat = [_flat(row) for row in made]
  header = list(dict.fromkeys(key for row in flat for key in row))
  return tabular.csv_text(header, ([row.get(key) for key in header] for row in flat))


def _flat(value: Any, name: str = "") -> dict[str, Any]:
  """Returns the numbers and texts of a row by their dotted names; lists as one text."""
  if isinstance(value, Mapping):
    parts = [_flat(inner, f"{name}.{key}".strip(".")) for key, inner in value.items()]
    return {key: inner for part in parts for key, inner in part.items()}
  return {name: " ".join(map(str, value)) if isinstance(value, list) else value}


def _aligned(lines: Sequence[Sequence[str]]) -> list[str]:
  """Returns lines of plain cells in columns of equal width."""
  return tabular.aligned([list(map(labels.plain, line)) for line in lines])
