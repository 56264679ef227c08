"""The sections of the benchmark, and the tables of their figures.

The figures that BENCHMARKS.md shows are the files of `MEASURED`, each as `ebmjax bench
--out` has written it; `python -m ebmjax.reproduce --write` makes the tables of them.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ebmjax.errors import UserError
from ebmjax.runtime import tabular
from ebmjax.tools.bench import (
  curves,
  estimator,
  evaluation,
  inference,
  roofline,
  runs,
  seeds,
  share,
  tables,
  training,
)
from ebmjax.tools.bench.measuring import OURS, spread

# Rows by section; with what they were made, failures and how it was asked.
Figures = dict[str, Any]
# A section is a module: TITLE, CASES, measure(case, options), which returns a row of
# figures, and TABLES, functions from a row to {column: cell}.
SECTIONS: dict[str, Any] = {
  "training": training,
  "inference": inference,
  "seeds": seeds,
  "evaluation": evaluation,
  "estimator": estimator,
  "share": share,
  "roofline": roofline,
  "runs": runs,
  "curves": curves,
}
MEASURED = Path(__file__).with_name("measured")
# Here also those of two commits whose runs took turns: before, after, before, after...
BEFORE_AND_AFTER = "before_and_after"
_SHOWN = ("jax", "jaxlib")  # of the packages


def show(figures: Figures) -> str:
  """Returns the tables of all sections that have rows, and what failed."""
  parts = [
    f"{SECTIONS[name].TITLE}\n\n{_tables(name, figures)}\n"
    for name in SECTIONS
    if figures.get(name)
  ]
  if figures["quick"]:
    parts.insert(0, "Made with --quick: these are no results.\n")
  failures = [
    f"{one['case']} ({one['section']}): {one['error']}" for one in figures["failures"]
  ]
  return "\n".join([*parts, *(f"failed: {line}" for line in failures)])


def read(path: Path) -> Figures:
  """Returns the figures of a file that `--out` has written."""
  try:
    figures: Figures = json.loads(path.read_text())
    show(figures)
  except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
    raise UserError(
      f"{path} does not hold figures of the benchmark ({type(error).__name__}); give a "
      "file that --out has written."
    ) from error
  return figures


def blocks(folder: Path | None = None) -> dict[str, str]:
  """Returns the tables of each section that has stored figures, by a block's name.

  Files do not share a table: rates of different hours are no comparison.
  """
  folder = folder or MEASURED
  found = _read_all(folder)
  parts = {
    f"speed_{name}": [
      f"{_tables(name, figures)}\n\n{_made_with(figures)}\n"
      for figures in found
      if figures.get(name)
    ]
    for name in SECTIONS
  }
  if turns := _read_all(folder / BEFORE_AND_AFTER):
    parts[f"speed_{BEFORE_AND_AFTER}"] = [_before_and_after(turns)]
  return {name: "\n".join(several) for name, several in parts.items() if several}


def _read_all(folder: Path) -> list[Figures]:
  return [read(path) for path in sorted(folder.glob("*.json"))]


def _before_and_after(turns: Sequence[Figures]) -> str:
  """Returns a table of training's rates at two commits, and of the ratios of turns."""
  commits = list(dict.fromkeys(one["environment"]["commit"] for one in turns))
  rates: dict[str, dict[str, list[float]]] = {}
  for one in turns:
    for row in one["training"]:
      of_case = rates.setdefault(row["case"], {commit: [] for commit in commits})
      of_case[one["environment"]["commit"]].append(row["rate"][OURS]["median"])
  rows = []
  for case in (case.name for case in training.CASES if case.name in rates):
    before, after = (rates[case][commit] for commit in commits)
    ratio = spread([b / a for a, b in zip(before, after, strict=True)])
    medians = [tables.median(spread(values)) for values in (before, after)]
    text = f"**{ratio['median']:.2f}** ({tables.span(ratio, '{:.2f}'.format)})"
    rows.append([case, *medians, text])
  header = ("steps per second", *(f"`{commit}`" for commit in commits), "ratio")
  return f"{tabular.markdown(header, rows)}\n"


def _tables(name: str, figures: Figures) -> str:
  return tables.markdown(figures[name], *SECTIONS[name].TABLES)


def _made_with(figures: Figures) -> str:
  """Returns a line of what the figures of a file were made with."""
  made = figures["environment"]
  packages = ", ".join(f"{name} {made['packages'][name]}" for name in _SHOWN)
  parts = [
    f"Commit `{made['commit']}`",
    packages,
    f"Python {made['python']}",
    f"{made['device']} with {made['cores']} cores",
    f"at most {figures['rounds']} rounds",
    *([figures["peer"]] if figures["peer"] else []),
  ]
  return f"{'; '.join(parts)}."
