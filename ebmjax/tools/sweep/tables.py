"""The results of a sweep as CSV and as text."""

from collections.abc import Mapping, Sequence
from typing import Any

from ebmjax.report import labels
from ebmjax.runtime import tabular
from ebmjax.tools.sweep.settings import describe, short_names, written

# values, workdir, status (finished, diverged, failed, busy) and reason; a finished row
# also has mean, sem, n, per_seed, seeds and seconds.
Row = dict[str, Any]
COLUMNS = (
  *("mean", "sem", "n", "per_seed", "seconds"),
  *("best", "status", "reason", "workdir"),
)


def best_of(rows: Sequence[Row]) -> Row | None:
  """Returns the first finished row with the highest mean, or None."""
  finished = [row for row in rows if row["status"] == "finished"]
  return max(finished, key=lambda row: row["mean"], default=None)


def score(row: Mapping[str, Any]) -> str:
  """Returns "45.12 +- 0.10 (n=3)"."""
  return labels.plain(labels.counted(row))


def line_of(row: Row) -> str:
  """Returns the line that reports a setting after its run."""
  start = describe(row["values"])
  if row["status"] == "busy":
    return f"{start}: passed over, another process is running it."
  if row["status"] != "finished":
    return f"{start}: {row['status']}: {row['reason']}"
  return f"{start}: {score(row)} % validation accuracy, {row['seconds']:.0f} s"


def cells(rows: Sequence[Row]) -> list[tuple[str, ...]]:
  """Returns a header and a line for each setting, highest accuracy first."""
  best = best_of(rows)
  made = [(*short_names(rows[0]["values"]), "validation accuracy (%)", "seconds", "")]
  for row in sorted(rows, key=lambda row: -row.get("mean", -1.0)):
    done = row["status"] == "finished"
    found = (score(row), f"{row['seconds']:.1f}") if done else (row["status"], "")
    mark = "best" if row is best else ""
    made.append((*map(written, row["values"].values()), *found, mark))
  return made


def csv_text(rows: Sequence[Row]) -> str:
  """Returns a line for each setting: its keys, its score and its outcome."""
  best = best_of(rows)
  lines = []
  for row in rows:
    each = " ".join(map(str, row.get("per_seed", [])))
    shown = row | {"per_seed": each, "best": "best" if row is best else ""}
    lines.append([*row["values"].values(), *map(shown.get, COLUMNS)])
  return tabular.csv_text([*rows[0]["values"], *COLUMNS], lines)
