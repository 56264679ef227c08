"""The command line of the benchmarks."""

import argparse
import gc
import json
import sys
from pathlib import Path
from typing import Any

import jax

from ebmjax import atomic, bench, environment
from ebmjax.bench import figure, peer
from ebmjax.bench.sections import SECTIONS, USUAL, Options
from ebmjax.errors import UserError
from ebmjax.report import drawing

Figures = dict[str, Any]  # rows by section; environment, failures and how it was asked
_ROUNDS = {False: 7, True: 2}  # by --quick


def main(arguments: list[str] | None = None) -> None:
  """Runs the command line, or the arguments given."""
  given = _parse(arguments)
  try:
    figures = _read(given.show) if given.show else _measure(given)
  except UserError as error:
    sys.exit(f"ebmjax: {error}")
  print(show(figures))
  if failures := figures["failures"]:
    sys.exit(f"ebmjax: {len(failures)} of the cases failed, as told above.")


def show(figures: Figures) -> str:
  """Returns the tables of all sections that have rows, and what failed."""
  parts = [
    f"{section.title}\n\n{section.table(figures[name])}\n"
    for name, section in SECTIONS.items()
    if figures.get(name)
  ]
  if figures["quick"]:
    parts.insert(0, "Made with --quick: these are no results.\n")
  failures = [
    f"{one['case']} ({one['section']}): {one['error']}" for one in figures["failures"]
  ]
  return "\n".join([*parts, *(f"failed: {line}" for line in failures)])


def _measure(given: argparse.Namespace) -> Figures:
  """Returns the rows of the cases asked for; what fails is told and passed over."""
  chosen = _choose(given)
  python = peer.find_python(given.peer) if given.peer else None
  options = Options(python, given.rounds or _ROUNDS[given.quick], given.quick)
  figures: Figures = {name: [] for name in chosen}
  figures |= {"failures": [], "quick": given.quick, "rounds": options.rounds}
  figures["environment"] = environment.describe()
  for name, cases in chosen.items():
    for case in cases:
      print(f"ebmjax: {name}: {case.name}", file=sys.stderr, flush=True)
      try:
        figures[name].append(SECTIONS[name].measure(case, options))
      except Exception as error:
        told = f"{type(error).__name__}: {error}"
        print(f"ebmjax: failed: {told}", file=sys.stderr, flush=True)
        figures["failures"].append({"section": name, "case": case.name, "error": told})
      _write(given.out, figures)
      jax.clear_caches()  # no program is used by two cases
      gc.collect()
  return figures


def _choose(given: argparse.Namespace) -> dict[str, list[Any]]:
  """Returns the cases of the sections asked for whose name contains --only."""
  names = ["curves"] if given.curves else given.sections
  chosen = {
    name: [case for case in SECTIONS[name].cases if given.only in case.name]
    for name in names
  }
  if not any(chosen.values()):
    raise UserError(
      f"no case has {given.only!r} in its name; the names are {'; '.join(_names())}."
    )
  return chosen


def _write(path: Path | None, figures: Figures) -> None:
  """Writes the figures so far as JSON, and the curves as pictures beside it."""
  if not path:
    return
  atomic.write(path, json.dumps(figures, indent=1))
  if figures.get("curves"):
    drawn = figure.draw(figures["curves"])
    atomic.write(path.with_suffix(".svg"), drawing.svg(drawn))
    atomic.write(path.with_suffix(".png"), drawing.png(drawn))


def _read(path: Path) -> Figures:
  try:
    figures: Figures = json.loads(path.read_text())
    show(figures)
  except (OSError, ValueError, KeyError, TypeError) as error:
    raise UserError(
      f"{path} does not hold figures of the benchmark ({type(error).__name__}); give a "
      "file that --out has written."
    ) from error
  return figures


def _names() -> list[str]:
  """Returns the names of all cases, each once."""
  cases = (case.name for section in SECTIONS.values() for case in section.cases)
  return list(dict.fromkeys(cases))


def _parse(arguments: list[str] | None) -> argparse.Namespace:
  names = "\n".join(f"  {name}" for name in _names())
  parser = argparse.ArgumentParser(
    "python -m ebmjax.bench",
    description=bench.__doc__,
    epilog=f"cases:\n{names}",
    formatter_class=argparse.RawTextHelpFormatter,
  )

  def add(flag: str, text: str, **details: Any) -> None:
    parser.add_argument(flag, help=text, **details)

  add(
    "--peer",
    "an interpreter that has torch, to time PyTorch in turn with ours; `torch`: the\n"
    f"one in {peer.VARIABLE}, or else this one",
    metavar="PYTHON",
  )
  add(
    "--sections",
    f"some of {','.join(SECTIONS)} (default: all but curves)",
    metavar="NAMES",
    type=_sections,
    default=list(USUAL),
  )
  add("--curves", "measures the curves, and nothing else", action="store_true")
  add("--only", "only the cases whose name contains this", metavar="TEXT", default="")
  add(
    "--rounds",
    "alternating rounds, whose medians are reported (default 7; with --quick 2)",
    metavar="N",
    type=_positive,
  )
  add(
    "--quick",
    "a tenth of the work in a round, few images in whole runs: to see it run",
    action="store_true",
  )
  add(
    "--out",
    "also writes the figures as JSON, after every case; the curves, as .svg and\n"
    ".png, go beside it",
    metavar="FILE",
    type=Path,
  )
  add("--show", "prints the tables of such a file", metavar="FILE", type=Path)
  return parser.parse_args(arguments)


def _sections(text: str) -> list[str]:
  names = text.split(",")
  for name in names:
    if name not in SECTIONS:
      raise argparse.ArgumentTypeError(
        f"{name!r} is no section; choose from {', '.join(SECTIONS)}"
      )
  return names


def _positive(text: str) -> int:
  number = int(text)
  if number < 1:
    raise argparse.ArgumentTypeError(f"{number} is too small; give 1 or more")
  return number


if __name__ == "__main__":
  main()
