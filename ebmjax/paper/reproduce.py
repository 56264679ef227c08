"""Lists and runs the cells of the paper's tables and of the replay-free methods' table.

  ebmjax reproduce                             lists every cell, with a summary
  ebmjax reproduce --table=NAME                lists one table with its commands
  ebmjax reproduce --table=NAME --seeds=10     runs what is missing of it
  ebmjax reproduce --table=all --budget=8      ... for about eight hours
  ebmjax reproduce --cell=boundary_free/ebm/split_mnist --seeds=5

--table and --cell only list unless --seeds or --budget is given. To resume after an
interruption, give the same command again; finished seeds are not run again.
"""

import argparse
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

from ebmjax.config.schema import choices_sentence, nearest
from ebmjax.errors import ConfigError
from ebmjax.paper import listing, markdown, store
from ebmjax.paper.cells import Cell, every_cell
from ebmjax.paper.ledger import Ledger
from ebmjax.paper.running import Outcome, Session, Settings, read_ledger
from ebmjax.paths import expand
from ebmjax.runtime.console import show_messages
from ebmjax.runtime.terminal import (
  Parser,
  positive_number,
  run_cli,
  whole_number,
)


def main(arguments: list[str] | None = None) -> int:
  """Lists or runs what the command line asks for and returns the exit code.

  SIGTERM ends it as Ctrl-C does.
  """
  signal.signal(signal.SIGTERM, _interrupt)
  show_messages()
  return run_cli("ebmjax", lambda: _act(_parse(arguments)))


def _act(given: argparse.Namespace) -> int:
  cells = every_cell()
  asked = select(cells, given.table, given.cell)
  _require_one_action(given)
  if given.collect:
    kept = store.collect(given.collect, cells)
    print(f"{store.MEASURED.name} holds {len(kept)} runs now.")
  if given.write:
    markdown.write(given.write, Ledger(cells, store.read()))
  if given.check:
    markdown.check(given.check, Ledger(cells, store.read()))
  if given.collect or given.write or given.check:
    return 0
  folders = {name: getattr(given, name) for name in ("mnist", "cifar10", "cifar100")}
  settings = Settings(given.runs, folders, given.pretrained)
  if given.seeds is None and given.budget is None:
    _show(given, read_ledger(cells, settings), asked)
    return 0
  outcome = Session(asked, settings, given.seeds, given.budget).run()
  print(listing.details(read_ledger(cells, settings), asked))
  print(f"\n{report(outcome)}")
  return 1 if outcome.failed else 0


def _require_one_action(given: argparse.Namespace) -> None:
  """Refuses flags that ask for several actions, of which only one would be done."""
  chosen = given.table or given.cell
  actions = {
    "--table and --cell": chosen,
    "--variants": given.variants,
    "--collect, --write and --check": given.collect or given.write or given.check,
  }
  several = [name for name, wanted in actions.items() if wanted]
  if len(several) > 1:
    raise ConfigError(f"{several[0]} do not go with {several[1]}; give them in turn.")
  if (given.seeds is not None or given.budget is not None) and not chosen:
    raise ConfigError(
      "--seeds and --budget say how much to run, but not what; give --table=NAME, "
      "--table=all or --cell=ID."
    )


def select(cells: Iterable[Cell], names: list[str], ids: list[str]) -> list[Cell]:
  """Returns the cells of the tables and of the ids asked for, in their order."""
  cells = list(cells)
  known = list(dict.fromkeys(cell.table for cell in cells))
  by_id = {cell.id for cell in cells}
  for name in names:
    if name not in known and name != "all":
      choices = choices_sentence(name, [*known, "all"])
      raise ConfigError(f"there is no table {name!r}; {choices}")
  for name in ids:
    if name not in by_id:
      near = nearest(name, by_id)
      hint = f"did you mean {near!r}? " if near else ""
      raise ConfigError(
        f"there is no cell {name!r}; {hint}python -m ebmjax.reproduce lists all."
      )
  return [
    cell for cell in cells if "all" in names or cell.table in names or cell.id in ids
  ]


def report(outcome: Outcome) -> str:
  """Lists what was finished, skipped and failed."""
  titles = {
    "finished": "Finished",
    "busy": "Skipped, another process has them",
    "too_long": "Skipped, longer than the rest of the budget",
    "failed": "FAILED",
  }
  lines = []
  for name, title in titles.items():
    found = getattr(outcome, name)
    if found:
      lines += [f"{title}:", *(f"  {line}" for line in found)]
  return "\n".join(lines or ["Nothing was missing."])


def _show(given: argparse.Namespace, ledger: Ledger, asked: list[Cell]) -> None:
  if given.variants:
    print(listing.variants(ledger))
  elif asked:
    print(listing.details(ledger, asked))
  else:
    print(listing.overview(ledger))


def _parse(arguments: list[str] | None) -> argparse.Namespace:
  parser = Parser(
    "ebmjax reproduce",
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )

  def add(flag: str, metavar: str, form: Any, text: str, default: Any = None) -> None:
    parser.add_argument(flag, metavar=metavar, type=form, help=text, default=default)

  add("--table", "NAME", _names, "tables, separated by commas, or all", [])
  add("--cell", "ID", _names, "cells, separated by commas", [])
  add("--seeds", "N", whole_number, "run up to N seeds, 0 to N-1")
  text = "start no run that would end after this many hours; without --seeds, runs the "
  add("--budget", "HOURS", positive_number, f"{text}paper's number of seeds")
  for name in ("mnist", "cifar10", "cifar100"):
    text = f"official files of {name} (default: found or downloaded, always complete)"
    add(f"--{name}", "DIR", expand, text)
  text = "npz file with weights of CIFAR-100's trunk (default: the package's)"
  add("--pretrained", "FILE", expand, text)
  text = "the folder of new and earlier runs (default: runs/reproduce)"
  add("--runs", "DIR", _whole_path, text, _whole_path("runs/reproduce"))
  text = "list the stored runs that belong to no cell"
  parser.add_argument("--variants", action="store_true", help=text)
  add(
    "--collect",
    "DIR",
    expand,
    "add the finished runs under DIR to the stored results",
  )
  text = "update the generated tables in FILE from the stored results"
  add("--write", "FILE", expand, text)
  add("--check", "FILE", expand, "fail if such a table is out of date")
  return parser.parse_args(arguments)


def _whole_path(text: str) -> Path:
  return expand(text).resolve()


def _names(text: str) -> list[str]:
  return [name for name in text.split(",") if name]


def _interrupt(number: int, frame: FrameType | None) -> None:
  raise KeyboardInterrupt


def cli() -> None:
  """Runs `python -m ebmjax.reproduce`."""
  sys.exit(main())
