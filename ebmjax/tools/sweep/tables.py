"""What a sweep has found, as csv, as JSON and as a table to read."""

from collections.abc import Mapping, Sequence
from typing import Any

from ebmjax.report import labels
from ebmjax.runtime import tabular
from ebmjax.tools.sweep.settings import describe, short_names, written

# values, workdir, status (finished, diverged, failed, busy), reason; of a finished one
# also mean, sem, n, per_seed, seeds, seconds.
Row = dict[str, Any]
SCORES = ("mean", "sem", "n", "per_seed", "seconds")


def best_of(rows: Sequence[Row]) -> Row | None:
  """Returns the finished row of the highest mean, the first of equals, or None."""
  finished = [row for row in rows if row["status"] == "finished"]
  return max(finished, key=lambda row: row["mean"], default=None)


def score(row: Mapping[str, Any]) -> str:
  """Returns "45.12 +- 0.10 (n=3)"."""
  return labels.plain(labels.counted(row))


def line_of(row: Row) -> str:
  """Returns what is said of a setting when its turn is over."""
  start = describe(row["values"])
  if row["status"] == "busy":
    return f"{start}: passed over, another process is running it."
  if row["status"] != "finished":
    return f"{start}: {row['status']}: {row['reason']}"
  return f"{start}: {score(row)} % validation accuracy, {row['seconds']:.0f} s"


def cells(rows: Sequence[Row]) -> list[tuple[str, ...]]:
  """Returns a header and a line a setting, the highest validation accuracy first."""
  best = best_of(rows)
  made = [(*short_names(rows[0]["values"]), "validation accuracy (%)", "seconds", "")]
  for row in sorted(rows, key=lambda row: -row.get("mean", -1.0)):
    done = row["status"] == "finished"
    found = (score(row), f"{row['seconds']:.1f}") if done else (row["status"], "")
    mark = "best" if row is best else ""
    made.append((*map(written, row["values"].values()), *found, mark))
  return made


def csv_text(rows: Sequence[Row]) -> str:
  """Returns a line a setting: its keys, its score, and what became of it."""
  best = best_of(rows)
  header = [*rows[0]["values"], *SCORES, "best", "status", "reason", "workdir"]
  lines = []
  for row in rows:
    scores = {name: row.get(name) for name in SCORES}
    scores["per_seed"] = " ".join(map(str, row.get("per_seed", [])))
    mark = "best" if row is best else ""
    end = (mark, row["status"], row["reason"], row["workdir"])
    lines.append([*row["values"].values(), *scores.values(), *end])
  return tabular.csv_text(header, lines)
