"""Runs an experiment with many settings and names the best one by validation accuracy.

Accuracy is measured on training images that are held out: a setting chosen by its test
accuracy would look better than it is. Every setting is a run in a folder of its own
under DIR. You can give the same command again, or with more values: finished settings
are read and interrupted ones resume. DIR/sweep.csv and DIR/sweep.json hold the table of
settings, and DIR/sweep.html shows it with charts; all are updated when a setting ends.

Settings that differ only in numbers, such as a strength or a learning rate, are trained
together by one program: in turn on a CPU, side by side on accelerators. On a CPU, each
gives the same bits as a run of its own.

  ebmjax sweep --config=configs/splitmnist.py:contrastive,ewc,sbc \\
    --grid config.method.strength=1e2,1e4,1e6 \\
    --grid config.optimiser.learning_rate=1e-4,1e-3 --seeds=3 --test

runs six settings with three seeds each, then the best one on the test images.

  --random=20 --range config.method.strength=1:1e8

draws 20 random settings instead. By default, a setting is chosen by its accuracy on all
tasks; --select=first_task and --choose-on=FILE choose without looking at later tasks or
at the experiment itself.
"""

import argparse
import json
import logging
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ebmjax.config import loading
from ebmjax.errors import ConfigError, UserError
from ebmjax.main import require_device
from ebmjax.paths import expand
from ebmjax.report import paper_comparison
from ebmjax.runtime import atomic, failures, tabular
from ebmjax.runtime.terminal import Parser, run_cli, whole_number
from ebmjax.tools.sweep import page, running, tables
from ebmjax.tools.sweep import settings as sweeping
from ebmjax.tools.sweep.selection import FIRST_TASK, SELECTIONS, WHOLE_STREAM, summary


def main(arguments: Sequence[str]) -> int:
  """Runs the sweep of the command line and returns the exit code."""
  logging.basicConfig(format="%(message)s", stream=sys.stderr)

  def work() -> int:
    given, rest = _parser().parse_known_args(arguments)
    if "data.validation" in loading.require_overrides(rest):
      raise ConfigError("config.data.validation is for a single run; use --validation.")
    _sweep(given, rest)
    return 0

  return run_cli("sweep", work)


def _sweep(given: argparse.Namespace, rest: list[str]) -> None:
  """Runs all settings, prints the best one and tests it if --test is given."""
  if given.seeds is not None:
    rest = [*rest, f"--config.seeds={given.seeds}"]
  settings, for_test = _make(given, rest)
  require_device()
  load = running.make_load()
  settings, count = _held_out(settings, given.validation, load)
  chosen = given.choose_on or given.config
  folder = given.out or Path(f"{loading.default_workdir(chosen)}-sweep")
  running.check(settings, folder, load)
  found: dict[str, Any] = {"config": given.config, "changes": rest}
  found |= {"validation_images_of_each_class": count}
  found |= {"selected_by": given.select, "chosen_on": chosen}
  write = partial(_write, folder, found)
  rows = running.run_all(
    settings, folder, load, write, given.select, given.together or 0
  )
  print("", *tabular.aligned(tables.cells(rows)), "", sep="\n")
  best = _best(rows)
  print(f"Best by validation: {tables.line_of(best)}")
  setting = for_test[rows.index(best)]
  seeds = given.test_seeds or setting.config.seeds
  if given.test:
    results = running.run_on_test(setting, folder, seeds)
    test = summary(results) | {"workdir": running.BEST}
    write(rows, test)
    print(f"On the test images: {tables.score(test)} %{_paper(results)}")
  words = ["python", "-m", "ebmjax.main", f"--config={given.config}", *rest]
  words += [*setting.flags, f"--config.seeds={seeds}", "--config.data.validation=0"]
  _print_end(shlex.join([*words, f"--workdir={folder / running.BEST}"]), folder)


def _make(
  given: argparse.Namespace, rest: list[str]
) -> tuple[list[sweeping.Setting], list[sweeping.Setting]]:
  """Makes the settings to choose among, and those for the test."""
  drawn = []
  if given.range or given.random is not None:
    drawn = sweeping.draw(given.range, given.random or 0)
  axes = (given.grid, given.list, rest, drawn)
  settings = sweeping.make(given.choose_on or given.config, *axes)
  _require_first_task(settings, given.select)
  for_test = sweeping.make(given.config, *axes) if given.choose_on else settings
  if given.test_seeds is not None:  # finds a wrong number before hours of work
    sweeping.with_key(for_test[:1], "seeds", given.test_seeds)
  return settings, for_test


def _write(
  folder: Path,
  found: dict[str, Any],
  rows: list[tables.Row],
  test: dict[str, Any] | None = None,
) -> None:
  """Writes the tables and the page of the rows so far."""
  best = tables.best_of(rows)
  content = found | {"settings": rows, "best": best and best["workdir"], "test": test}
  with failures.explain_write_errors(folder):
    atomic.write(folder / "sweep.csv", tables.csv_text(rows))
    atomic.write(folder / "sweep.json", json.dumps(content, indent=2) + "\n")
    if best:
      atomic.write(folder / "sweep.html", page.render(rows, found, test))


def _print_end(command: str, folder: Path) -> None:
  """Prints the command that tests the best setting, and the files of the sweep."""
  print("To test the best setting by hand:")
  print(f"  {command}")
  print(f"Tables: {folder / 'sweep.csv'}, {folder / 'sweep.json'}")
  print(f"Page: {folder / 'sweep.html'}")


def _require_first_task(settings: list[sweeping.Setting], select: str) -> None:
  """Refuses to select by the first task if it is not evaluated at its end."""
  configs = [setting.config for setting in settings if select == FIRST_TASK]
  if any(c.stream.setting == "joint" or not c.eval.at_task_ends for c in configs):
    raise ConfigError(
      "--select=first_task needs the accuracy at the end of the first task; set "
      "config.eval.at_task_ends=True and config.stream.setting='boundary_aware' or "
      "'boundary_free'."
    )


def _held_out(
  settings: list[sweeping.Setting], asked: int | None, load: running.Load
) -> tuple[list[sweeping.Setting], int]:
  """Holds images out in all settings; returns these and the number for each class."""
  if asked is not None and asked < 1:
    raise ConfigError(
      f"--validation={asked} holds out no image, so the best setting would be chosen "
      "by the test images; give 1 or more, or leave it out for a tenth of the smallest "
      "class."
    )
  count = asked or running.default_validation(settings, load)
  settings = sweeping.with_key(settings, "data.validation", count)
  why = "" if asked else ", a tenth of the smallest class"
  print(
    f"{len(settings)} settings; {count} training images of each class are held out for "
    f"validation{why}.",
    flush=True,
  )
  return settings, count


def _best(rows: list[tables.Row]) -> tables.Row:
  """Returns the best row; refuses if none or not all of the settings have finished."""
  count = Counter(row["status"] for row in rows)
  if count["busy"]:
    raise UserError(
      f"{count['busy']} of {len(rows)} settings are being run by another process, so "
      "the best is not known; give the same command again when it has finished."
    )
  if count["failed"]:
    raise UserError(
      f"{count['failed']} of {len(rows)} settings failed, for reasons that say nothing "
      "about how good they are, so the best is not known; see the reasons above, and "
      "give the same command again, or one without them."
    )
  best = tables.best_of(rows)
  if best is None:
    raise UserError(
      "no setting has finished, so there is no best; see the reasons above."
    )
  return best


def _paper(results: dict[str, Any]) -> str:
  cell, note = results["paper"], paper_comparison.note(results)
  if cell is None:
    return ""
  return f"; the paper has {cell['accuracy']:.2f}" + (f" ({note})" if note else "")


def _parser() -> argparse.ArgumentParser:
  parser = Parser(
    prog="sweep",
    description=__doc__,
    usage="ebmjax sweep --config=FILE[:variants] --grid config.KEY=V,V "
    "[flags] [--config.KEY=VALUE ...]",
    epilog="--config.KEY=VALUE changes a key of every run;\n"
    "ebmjax --config=FILE --help lists them all.",
    formatter_class=argparse.RawDescriptionHelpFormatter,
    allow_abbrev=False,
  )
  add = parser.add_argument
  several: dict[str, Any] = {"action": "append", "default": []}
  text = "the experiment, as for ebmjax run"
  add("--config", default="", metavar="FILE[:variants]", help=text)
  text = "values of a key; with several grids, all combinations are run"
  add("--grid", metavar="config.KEY=V,V", help=text, **several)
  text = "one setting, 'config.KEY=V config.KEY=V', or a file with one per line; with "
  text += "grids, each setting is run at every point of them"
  add("--list", metavar="SETTING|FILE", help=text, **several)
  text = "range of a key for --random"
  add("--range", metavar="config.KEY=LOW:HIGH", help=text, **several)
  text = "number of random settings; a larger number keeps the earlier ones"
  add("--random", type=int, metavar="N", help=text)
  text = "choose by held-out images of the whole_stream at its end, or of the\n"
  text += "first_task when it ends"
  add("--select", choices=tuple(SELECTIONS), default=WHOLE_STREAM, help=text)
  text = "choose the setting on another experiment; --test then runs --config with it"
  add("--choose-on", metavar="FILE[:variants]", help=text)
  text = "how many settings to train at once, by one program, where they differ only\n"
  text += "in numbers (default: all)"
  add("--together", type=whole_number, metavar="N", help=text)
  text = "seeds of each setting (default: the experiment's)"
  add("--seeds", type=int, metavar="N", help=text)
  text = "training images per class to hold out (default: 10 %% of the smallest\n"
  text += "class)"
  add("--validation", type=int, metavar="N", help=text)
  text = "folder of the sweep (default: runs/NAME-VARIANTS-sweep)"
  add("--out", type=expand, metavar="DIR", help=text)
  text = "train the best setting on all images and test it (DIR/best-test)"
  add("--test", action="store_true", help=text)
  text = "seeds of the test (default: as many as of each setting)"
  add("--test-seeds", type=int, metavar="N", help=text)
  return parser


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
