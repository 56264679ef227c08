"""Several finished runs side by side, as rows, as text and as files."""

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ebmjax.paper.departures import listed
from ebmjax.report import beside, significance, words
from ebmjax.report.significance import Difference
from ebmjax.report.stored import StoredRun
from ebmjax.runtime import atomic
from ebmjax.runtime.workdir import WEIGHTS

# What runs must share to be compared like for like, and its name.
SHARED = {
  "data.name": "data",
  "data.images": "number of training images",
  "data.memorise": "memorised labels",
  "data.validation": "images of a class held out to be scored on",
  "stream.name": "kind of tasks",
  "stream.tasks": "number of tasks",
  "stream.setting": "setting",
  "stream.scenario": "scenario",
}
# Of runs older than the key.
USUAL = {"data.images": 0, "data.memorise": False, "data.validation": 0}
COLUMNS = (
  ("run", "name"),
  ("method", "method"),
  ("network", "network"),
  ("data", "data"),
  ("setting", "setting"),
  ("n", "n"),
  ("accuracy (%)", "accuracy"),
  ("forgetting", "forgetting"),
  ("paper (%)", "paper"),
)
STAR = f"{words.SPACE}*"  # behind a figure of the paper's for another configuration


def rows(runs: Sequence[StoredRun]) -> list[dict[str, Any]]:
  """Returns a row for each run; all but the first have a difference to the first."""
  first = _by_seed(runs[0])
  made = []
  for name, run in zip(names(runs), runs, strict=True):
    results, config = run.results, run.results["config"]
    row = {
      "name": name,
      "method": config["method"]["name"],
      "network": config["network"]["name"],
      "objective": config["objective"],
      "data": words.data(config),
      "setting": words.setting(config),
      "tasks": config["stream"]["tasks"],
      "seeds": results["seeds"],
      "n": len(results["seeds"]),
      "average_accuracy": results["average_accuracy"],
      "forgetting": results.get("forgetting"),
      "paper": results.get("paper"),
      "departures": beside.remarks(results),
      "data_full": results["facts"].get("data_full"),
      "difference": None,
    }
    own = _by_seed(run)
    if run is not runs[0] and own and first:
      row["difference"] = significance.compare(own, first)._asdict()
    made.append(row)
  return made


def warnings(runs: Sequence[StoredRun]) -> list[str]:
  """Returns a sentence for each reason why the runs are not like for like."""
  differing = {}
  for key, name in SHARED.items():
    values = [_value(run.results["config"], key) for run in runs]
    if any(value != values[0] for value in values):
      listed = ", ".join(dict.fromkeys(map(str, values)))
      differing[key] = f"the runs differ in their {name} ({listed})"
  told = any(key.startswith("data.") for key in differing)
  if _several(runs, "data_digest") and not told:
    differing["digest"] = "the images of the runs are not the same"
  if _several(runs, WEIGHTS):
    differing["weights"] = "the runs start from different pre-trained weights"
  found = [f"Not like for like: {reason}." for reason in differing.values()]
  part = [
    name
    for name, run in zip(names(runs), runs, strict=True)
    if run.results["facts"].get("data_full") is False
  ]
  if part:
    found.append(
      f"Not the full data set: {', '.join(part)}; not comparable with the paper's."
    )
  return found


def names(runs: Sequence[StoredRun]) -> list[str]:
  """Returns a name for each run: its folder's, with its parent's where that repeats."""
  paths = [run.path.resolve() for run in runs]
  same = Counter(path.name for path in set(paths))
  chosen = [
    f"{path.parent.name}/{path.name}" if same[path.name] > 1 else path.name
    for path in paths
  ]
  return [
    f"{name} ({chosen[: i + 1].count(name)})" if chosen.count(name) > 1 else name
    for i, name in enumerate(chosen)
  ]


def cells(row: Mapping[str, Any]) -> list[str]:
  """Returns what stands in a row of a table, in the order of `COLUMNS`."""
  shown = dict(row) | {
    "accuracy": words.score(row["average_accuracy"]),
    "forgetting": words.score(row["forgetting"]),
    "paper": words.cited(row["paper"]) + (STAR if row["departures"] else ""),
  }
  return [str(shown[key]) for _, key in COLUMNS]


def sentence(row: Mapping[str, Any], first: str) -> str | None:
  """Returns the difference of a row to the run named `first`, None without one."""
  if row["difference"] is None:
    return None
  found = Difference(**row["difference"])
  start = f"{row['name']} less {first}: {found.mean:+.2f} points"
  if found.p is None or found.low is None or found.high is None:
    return f"{start} ({found.test})."
  interval = f"95 % confidence interval {found.low:+.2f} to {found.high:+.2f}"
  return f"{start}, {interval}, {significance.told(found.p)} ({found.test})."


def starred(made: Sequence[Mapping[str, Any]]) -> str | None:
  """Returns what the star behind some of the paper's figures means, None without."""
  told = [
    f"{row['name']}: {listed(row['departures'])}" for row in made if row["departures"]
  ]
  if not told:
    return None
  return f"* The paper's figure is of another configuration than {'; '.join(told)}."


def text(made: Sequence[Mapping[str, Any]], notes: Sequence[str]) -> str:
  """Returns the comparison as plain text."""
  lines = [[title for title, _ in COLUMNS], *(_plain(cells(row)) for row in made)]
  wide = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]
  table = ["  ".join(map(str.ljust, line, wide)).rstrip() for line in lines]
  rule = "-" * max(map(len, table))
  told = [sentence(row, made[0]["name"]) for row in made[1:]]
  many = [MANY] if several_tests(made) else []
  told += [*many, starred(made)]
  blocks = [table[:1], table[1:], [line for line in told if line], list(notes)]
  body = f"\n{rule}\n".join("\n".join(block) for block in blocks if block)
  return f"{rule}\n{body}\n{rule}"


MANY = "The p-values are of single comparisons, not corrected for their number."


def several_tests(made: Sequence[Mapping[str, Any]]) -> bool:
  """Returns whether more than one row has a p-value."""
  return sum((row["difference"] or {}).get("p") is not None for row in made) > 1


def to_json(made: Sequence[Mapping[str, Any]], notes: Sequence[str]) -> str:
  """Returns the rows and warnings as JSON."""
  content = {"runs": list(made), "warnings": list(notes)}
  return json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def to_csv(made: Sequence[Mapping[str, Any]]) -> str:
  """Returns the rows as CSV, one number a column; empty where there is none."""
  flat = [_flat(row) for row in made]
  header = list(dict.fromkeys(key for row in flat for key in row))
  buffer = io.StringIO()
  writer = csv.DictWriter(buffer, header, lineterminator="\n")
  writer.writeheader()
  writer.writerows(flat)
  return buffer.getvalue()


def _plain(texts: Sequence[str]) -> list[str]:
  """Returns texts in characters that every terminal shows."""
  signs = str.maketrans(
    {"±": "+-", words.MINUS: "-", words.DASH: "-", words.SPACE: " "}
  )
  return [text.translate(signs) for text in texts]


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
  parts: dict[str, Sequence[str]] = {
    "average_accuracy": ("mean", "sem"),
    "forgetting": ("mean", "sem"),
    "paper": ("accuracy", "sem"),
    "difference": Difference._fields,
  }
  out: dict[str, Any] = {}
  for key, value in row.items():
    if key in parts:
      out |= {f"{key}_{part}": (value or {}).get(part) for part in parts[key]}
    else:
      out[key] = " ".join(map(str, value)) if isinstance(value, list) else value
  return out


def _by_seed(run: StoredRun) -> dict[int, float]:
  """Returns {seed: average accuracy}, empty where a seed has none."""
  values = run.results["per_seed"]
  if any(value is None for value in values):
    return {}
  return dict(zip(run.results["seeds"], values, strict=True))


def _several(runs: Sequence[StoredRun], fact: str) -> bool:
  """Returns whether the runs that know it have different values of a fact."""
  return len({run.results["facts"].get(fact) for run in runs} - {None}) > 1


def _value(config: Mapping[str, Any], key: str) -> Any:
  group, name = key.split(".")
  return config[group].get(name, USUAL.get(key))


def write(out: Path, page: str, made: Sequence[Any], notes: Sequence[str]) -> None:
  """Writes the page to `out`, and the table as CSV and JSON beside it."""
  # The page first: tables without it would be taken for another program's.
  atomic.write(out, page)
  for path, content in zip(
    tables_beside(out), (to_csv(made), to_json(made, notes)), strict=True
  ):
    atomic.write(path, content)


def tables_beside(page: Path) -> tuple[Path, Path]:
  """Returns the files of a page's table."""
  return page.with_suffix(".csv"), page.with_suffix(".json")
