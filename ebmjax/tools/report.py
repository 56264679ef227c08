"""Rewrites the page of a finished run, or compares several runs.

With one RUN (the --workdir of a finished run), rewrites its report.html and prints its
table of results.

With several, writes a page that compares them, and its table as CSV and JSON. Every run
is compared with the first one: the difference of their average accuracies, its 95 %
confidence interval and a p-value. Runs with the same seeds are compared seed by seed.
P-values are corrected for the number of comparisons (Holm); runs that were scored on
different data have none. The page lists the configuration keys in which the runs
differ.
"""

import argparse
from pathlib import Path

from ebmjax.errors import UserError
from ebmjax.paper.commands import with_figure
from ebmjax.paths import expand
from ebmjax.report import compare, compare_files, compare_page, page, plots, stored
from ebmjax.report import table as closing
from ebmjax.runtime import atomic, failures
from ebmjax.runtime.terminal import Parser, run_cli

_EPILOG = """examples:
  ebmjax report runs/splitmnist
  ebmjax report runs/splitmnist runs/splitmnist-sbc --out=ebm_sbc.html
"""


def main(arguments: list[str]) -> int:
  """Writes the page of the command line and returns the exit code."""
  remedy = "the same command writes the page again"
  return run_cli("ebmjax", lambda: _act(_parse(arguments)), remedy)


def _act(given: argparse.Namespace) -> int:
  runs = [_read(path) for path in given.runs]
  alone = len(runs) == 1
  usual = runs[0].path / page.NAME if alone else Path("compare.html")
  out = given.out or usual
  if out.suffix not in (".html", ".htm"):
    raise UserError(f"--out={out} will be a page; give it a name that ends in .html.")
  own = alone and out.parent.resolve() == runs[0].path.resolve()
  if not own and stored.holds_run(out.parent):
    raise UserError(
      f"--out={out} is in the folder of a run, whose files it could replace; give one "
      "outside of it."
    )
  _write_one(runs[0], out) if alone else _write_comparison(runs, out)
  print(f"Page: {out}")
  return 0


def _read(path: Path) -> stored.StoredRun:
  """Reads a finished run, with the paper's figure as this version knows it."""
  run = stored.read(path)
  return run._replace(results=with_figure(run.results))


def _write_one(run: stored.StoredRun, out: Path) -> None:
  content = page.render(run.results, run.history, plots.draw(run.history, run.scalars))
  with failures.explain_write_errors(out, failures.ANOTHER):
    atomic.write(out, content)
  print(closing.closing_table(run.results))


def _write_comparison(runs: list[stored.StoredRun], out: Path) -> None:
  found = compare.compare(runs)
  content = compare_page.render(found)
  for table_beside in compare_files.tables_beside(out):
    if table_beside.exists() and not out.exists():
      raise UserError(
        f"{table_beside} exists without the page {out}, so it is not the table of a "
        "comparison; give another page with --out."
      )
  with failures.explain_write_errors(out, failures.ANOTHER):
    compare_files.write(out, content, found)
  print(compare_files.text(found))


def _parse(arguments: list[str]) -> argparse.Namespace:
  parser = Parser(
    "ebmjax report",
    description=__doc__,
    epilog=_EPILOG,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.add_argument(
    "runs", metavar="RUN", type=expand, nargs="+", help="the folder of a finished run"
  )
  parser.add_argument(
    "--out",
    metavar="FILE",
    type=expand,
    help="the page (default: report.html in the run's folder, or compare.html)",
  )
  return parser.parse_args(arguments)
