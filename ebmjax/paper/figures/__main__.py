"""The command line of the figures."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ebmjax.config.schema import choices_sentence
from ebmjax.errors import ConfigError, UserError
from ebmjax.paper import figures, store
from ebmjax.paper.figures import FIGURES
from ebmjax.paper.figures.missing import folders, runs_of
from ebmjax.paper.figures.pooling import found_in
from ebmjax.paper.store import Entry
from ebmjax.paths import expand
from ebmjax.runtime.console import show_messages
from ebmjax.runtime.terminal import Parser, run_cli


def main(arguments: Sequence[str]) -> int:
  """Draws or lists what the command line asks for and returns the exit code."""
  show_messages()

  def work() -> int:
    given = _parser().parse_args(arguments)
    for name in given.names:
      if name not in FIGURES:
        raise ConfigError(
          f"there is no figure {name!r}; {choices_sentence(name, FIGURES)}"
        )
    # With --runs, only that folder counts.
    root, kept = (given.runs, []) if given.runs else (Path("runs"), store.read())
    options: dict[str, Any] = {"allow_partial": given.allow_partial, "stored": kept}
    if given.names:
      return figures.draw_each("figures", given.names, root, given.out, **options)
    print(listing(root, **options))
    return 0

  return run_cli("figures", work)


def listing(root: Path, allow_partial: bool, stored: Sequence[Entry]) -> str:
  """Returns a paragraph per figure: what it shows, and whether its runs exist."""
  entries = found_in(root, stored)
  parts = []
  for name, spec in FIGURES.items():
    try:
      runs = runs_of(name, spec, root, entries, allow_partial)
      state = f"can be drawn from {folders(runs)}"
    except UserError as error:
      state = str(error)
    parts.append(f"{name}\n  {spec.title}\n  {state}")
  return "\n".join(parts)


def _parser() -> argparse.ArgumentParser:
  names = "\n".join(f"  {name:<24}{spec.title}" for name, spec in FIGURES.items())
  parser = Parser(
    prog="figures",
    description=figures.__doc__,
    usage="ebmjax figures [NAME ...] [--runs=DIR] [--out=DIR] [--allow_partial]",
    epilog=f"figures:\n{names}\n\n"
    "Without a name, all figures are listed: those that can be drawn, and for the\n"
    "others the commands of the missing runs.",
    formatter_class=argparse.RawDescriptionHelpFormatter,
    allow_abbrev=False,
  )
  add = parser.add_argument
  add("names", nargs="*", metavar="NAME", help="the figures to draw")
  folder = "%(default)s"
  text = "the folder that contains the runs (default: runs, and the stored results)"
  add("--runs", type=expand, metavar="DIR", help=text)
  text = f"where NAME.svg, NAME.pdf and NAME.png are written (default: {folder})"
  add("--out", type=expand, default=Path("figures"), metavar="DIR", help=text)
  text = "accept runs on part of the data; the title then says so"
  add("--allow_partial", action="store_true", help=text)
  return parser


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
