"""The command line of the benchmarks."""

import argparse
import gc
import json
import os
import sys
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import jax

from ebmjax.errors import UserError
from ebmjax.paths import expand
from ebmjax.report import plotting
from ebmjax.runtime import atomic, environment, failures
from ebmjax.runtime.terminal import (
  Parser,
  run_cli,
  whole_number,
)
from ebmjax.tools import bench
from ebmjax.tools.bench import figure, peer
from ebmjax.tools.bench.cases import quick
from ebmjax.tools.bench.measuring import Options
from ebmjax.tools.bench.sections import SECTIONS, Figures, read, show

USUAL = tuple(name for name in SECTIONS if name != "curves")
_ROUNDS = {False: 7, True: 2}  # by --quick


def main(arguments: list[str] | None = None) -> int:
  """Returns the exit code of the command line, or of the arguments given."""
  told = "the cases that were measured are in the file of --out, where one was given"
  return run_cli("ebmjax", lambda: _act(_parse(arguments)), told)


def _act(given: argparse.Namespace) -> int:
  figures = read(given.show) if given.show else _measure(given)
  print(show(figures))
  if given.out and not given.show:
    _write(given.out, figures)  # a fault of the disk may have passed
  if failures := figures["failures"]:
    raise UserError(
      f"{len(failures)} of the cases failed, as told above; measure them again with "
      "--only."
    )
  return 0


def _measure(given: argparse.Namespace) -> Figures:
  """Returns the rows of the cases asked for; what fails is told and passed over."""
  chosen = _choose(given)
  python = peer.find_python(given.peer) if given.peer else None
  if given.out:
    _check(given.out, pictures="curves" in chosen)
  options = Options(python, given.rounds or _ROUNDS[given.quick], given.quick)
  figures: Figures = {name: [] for name in chosen}
  figures |= {"failures": [], "quick": given.quick, "rounds": options.rounds}
  figures["environment"] = environment.describe() | {"cores": os.cpu_count()}
  figures["peer"] = peer.describe_python(python) if python else None
  for name, cases in chosen.items():
    for case in cases:
      print(f"ebmjax: {name}: {case.name}", file=sys.stderr, flush=True)
      try:
        work = quick(case) if options.quick else case
        figures[name].append(SECTIONS[name].measure(work, options))
      except Exception as error:
        told = f"{type(error).__name__}: {error}"
        print(f"ebmjax: failed: {told}", file=sys.stderr, flush=True)
        figures["failures"].append({"section": name, "case": case.name, "error": told})
      if given.out:
        _write_or_tell(given.out, figures)
      jax.clear_caches()  # no program is used by two cases
      gc.collect()
  return figures


def _choose(given: argparse.Namespace) -> dict[str, list[Any]]:
  """Returns the cases of the sections asked for whose name contains --only."""
  names = ["curves"] if given.curves else given.sections
  chosen = {
    name: [case for case in SECTIONS[name].CASES if given.only in case.name]
    for name in names
  }
  if not any(chosen.values()):
    raise UserError(
      f"no case has {given.only!r} in its name; the names are "
      f"{'; '.join(_names(names))}."
    )
  return chosen


def _check(path: Path, pictures: bool) -> None:
  """Refuses, before hours of work, files that are there or cannot be written."""
  suffixes = (".svg", ".png") if pictures else ()
  if path.suffix in suffixes:
    raise UserError(f"--out={path} is JSON; give it a name that ends in .json.")
  with failures.explain_write_errors(path, failures.ANOTHER):
    for file in chain([path], map(path.with_suffix, suffixes)):
      if file.exists():
        raise UserError(
          f"{file} is there already; give another file with --out, or remove it."
        )
    atomic.write(path, "")
    path.unlink()


def _write(path: Path, figures: Figures) -> None:
  """Writes the figures so far as JSON, and the curves as pictures beside it."""
  with failures.explain_write_errors(path, failures.ANOTHER):
    atomic.write(path, json.dumps(figures, indent=1))
    if figures.get("curves"):
      drawn = figure.draw(figures["curves"])
      atomic.write(path.with_suffix(".svg"), plotting.svg(drawn))
      atomic.write(path.with_suffix(".png"), plotting.png(drawn))


def _write_or_tell(path: Path, figures: Figures) -> None:
  """Writes the figures so far; the cases to come are measured where it cannot."""
  try:
    _write(path, figures)
  except UserError as error:
    print(f"ebmjax: {error}", file=sys.stderr, flush=True)


def _names(sections: Iterable[str] = tuple(SECTIONS)) -> list[str]:
  """Returns the names of the sections' cases, each once."""
  cases = (case.name for section in sections for case in SECTIONS[section].CASES)
  return list(dict.fromkeys(cases))


def _parse(arguments: list[str] | None) -> argparse.Namespace:
  names = "\n".join(f"  {name}" for name in _names())
  parser = Parser(
    "ebmjax bench",
    description=bench.__doc__,
    epilog=f"cases:\n{names}",
    formatter_class=argparse.RawTextHelpFormatter,
  )

  def add(flag: str, text: str, **details: Any) -> None:
    parser.add_argument(flag, help=text, **details)

  add(
    "--peer",
    "a Python interpreter that has torch, to time PyTorch as well; `torch`: the one\n"
    f"in {peer.VARIABLE}, or else this one",
    metavar="PYTHON",
  )
  add(
    "--sections",
    f"some of {','.join(SECTIONS)} (default: all but curves)",
    metavar="NAMES",
    type=_sections,
    default=list(USUAL),
  )
  add("--curves", "measure only the curves", action="store_true")
  add(
    "--only", "measure only cases whose name contains this", metavar="TEXT", default=""
  )
  add(
    "--rounds",
    "alternating rounds; medians are reported (default: 7, with --quick 2)",
    metavar="N",
    type=whole_number,
  )
  add(
    "--quick",
    "a tenth of the work per round and few images, to try it out",
    action="store_true",
  )
  add(
    "--out",
    "also write the figures to a new JSON file after every case; curves are written\n"
    "next to it as .svg and .png",
    metavar="FILE",
    type=expand,
  )
  add("--show", "print the tables of such a file", metavar="FILE", type=expand)
  return parser.parse_args(arguments)


def _sections(text: str) -> list[str]:
  names = text.split(",")
  for name in names:
    if name not in SECTIONS:
      raise argparse.ArgumentTypeError(
        f"{name!r} is not a section; choose from {', '.join(SECTIONS)}"
      )
  return names


def cli() -> None:
  """Entry point of python -m ebmjax.bench."""
  sys.exit(main())
