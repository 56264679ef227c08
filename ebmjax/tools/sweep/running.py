"""Runs the settings of a sweep, each in a folder of its own."""

import json
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jax.errors import JaxRuntimeError
from ml_collections import ConfigDict
from tqdm import tqdm

from ebmjax import data, experiment
from ebmjax.config import flat_keys, with_settings
from ebmjax.config.groups import keys_of
from ebmjax.config.validation import resolve
from ebmjax.data.held_out import smallest_class
from ebmjax.errors import (
  BusyError,
  DivergenceError,
  UserError,
  WorkdirError,
  first_line,
)
from ebmjax.runtime import distributed, failures
from ebmjax.runtime.checkpoints import newest_step
from ebmjax.runtime.workdir import Workdir
from ebmjax.tools.sweep.selection import summary
from ebmjax.tools.sweep.settings import Setting, describe
from ebmjax.tools.sweep.tables import Row, best_of, line_of
from ebmjax.types import Dataset

Load = Callable[[ConfigDict], Dataset]
BEST = "best-test"  # the folder of the best setting's run on the test set


def make_load() -> Load:
  """Returns a function that loads each data set once and keeps it."""
  loaded: dict[str, Dataset] = {}

  def load(config: ConfigDict) -> Dataset:
    key = json.dumps(config.data.to_dict(), sort_keys=True, default=str)
    if key not in loaded:
      loaded[key] = data.load(config.data)
    return loaded[key]

  return load


def default_validation(settings: Sequence[Setting], load: Load) -> int:
  """Returns a tenth of the training images of the smallest class, at least one."""
  fewest = min(smallest_class(load(setting.config))[1] for setting in settings)
  return max(fewest // 10, 1)


def check(settings: Sequence[Setting], folder: Path, load: Load) -> None:
  """Refuses settings whose data are missing or whose folder holds another run."""
  for setting in settings:
    load(setting.config)
    claim(setting.config, folder / setting.name)
  with failures.explain_write_errors(folder, failures.ANOTHER):
    folder.mkdir(parents=True, exist_ok=True)


def claim(config: ConfigDict, workdir: Path) -> None:
  """Refuses a `workdir` that holds the run of another configuration."""
  try:
    Workdir(workdir).claim(resolve(config))
  except WorkdirError as error:
    raise WorkdirError(str(error).replace("--workdir", "--out")) from error


def run_all(
  settings: Sequence[Setting],
  folder: Path,
  load: Load,
  write: Callable[[list[Row]], None],
  select: str,
  at_once: int = 0,
) -> list[Row]:
  """Runs all settings and returns a row for each; `write` gets the rows so far.

  Settings that differ only in traced keys are trained together, up to `at_once` (0:
  all). A setting that another process is running is tried again after the others,
  because it may have finished by then.
  """
  rows: dict[int, Row] = {}
  total = sum(setting.config.seeds for setting in settings)
  with _quiet(), _bar(total) as bar:

    def note(position: int, row: Row) -> None:
      rows[position] = row
      sofar = [rows[place] for place in sorted(rows)]
      best = best_of(sofar)
      bar.set_postfix_str(f"best {best['mean']:.2f}%" if best else "")
      bar.write(f"{position + 1} of {len(settings)}: {line_of(row)}")
      sys.stdout.flush()
      write(sofar)

    for group in groups(settings, folder, at_once):
      chosen = [settings[position] for position in group]
      bar.set_description(describe(chosen[0].values))
      found = _outcomes(chosen, folder, load, select)
      for position, row in zip(group, found, strict=True):
        bar.update(settings[position].config.seeds)
        note(position, row)
    for position in sorted(p for p in rows if rows[p]["status"] == "busy"):
      note(position, _outcome(settings[position], folder, load, select))
  return [rows[position] for position in range(len(settings))]


def groups(
  settings: Sequence[Setting], folder: Path, at_once: int = 0
) -> list[list[int]]:
  """Groups the positions of settings that can be trained together.

  They differ only in traced keys and have reached the same step. A finished setting
  forms a group of its own; if several processes share a run, every setting does.
  """
  found: dict[str, list[int]] = {}
  for position, setting in enumerate(settings):
    workdir = folder / setting.name
    alone = distributed.is_multiprocess() or (workdir / "results.json").exists()
    keys = flat_keys(setting.config)
    known = keys_of(keys)
    shared = {key: value for key, value in keys.items() if not known[key].traced}
    step = newest_step(workdir / "checkpoints")
    parts = [shared, step, position if alone else None]
    found.setdefault(json.dumps(parts, sort_keys=True, default=str), []).append(
      position
    )
  return [
    group[start : start + (at_once or len(group))]
    for group in found.values()
    for start in range(0, len(group), at_once or len(group))
  ]


def run_on_test(setting: Setting, folder: Path, seeds: int) -> dict[str, Any]:
  """Trains a setting on all training images and returns its results on the test set."""
  workdir = folder / BEST
  config = with_settings(setting.config, {"data.validation": 0, "seeds": seeds})
  try:
    claim(config, workdir)
  except WorkdirError as error:
    raise WorkdirError(
      f"{workdir} holds the test of another setting or other seeds; move it away, and "
      "give the same command again."
    ) from error
  with _quiet():
    return experiment.run(config, workdir)


def _outcomes(
  group: Sequence[Setting], folder: Path, load: Load, select: str
) -> list[Row]:
  """Runs settings together and returns their rows."""
  if len(group) > 1:
    runs = [(setting.config, folder / setting.name) for setting in group]
    try:
      found = experiment.run_together(runs, load(group[0].config))
    except (UserError, JaxRuntimeError):
      pass  # run one by one: finds the one that fails, and takes less memory
    else:
      pairs = zip(group, found, strict=True)
      return [_row(setting, results, select) for setting, results in pairs]
  return [_outcome(setting, folder, load, select) for setting in group]


def _outcome(setting: Setting, folder: Path, load: Load, select: str) -> Row:
  """Runs a setting and returns its row, even if it fails."""
  try:
    dataset = load(setting.config)
    results = experiment.run(setting.config, folder / setting.name, dataset)
  except (UserError, JaxRuntimeError) as error:
    return _row(setting, error, select)
  return _row(setting, results, select)


def _row(setting: Setting, found: Any, select: str) -> Row:
  """Returns the row of a setting, from its results or from the error that ended it."""
  row: Row = {"values": setting.values, "workdir": setting.name, "reason": None}
  if isinstance(found, BusyError):
    return row | {"status": "busy", "reason": str(found)}
  if isinstance(found, DivergenceError):
    return row | {"status": "diverged", "reason": str(found)}
  if isinstance(found, UserError):
    reason = str(found).replace("--workdir", "--out")
    return row | {"status": "failed", "reason": reason}
  if isinstance(found, JaxRuntimeError):
    return row | {"status": "failed", "reason": first_line(found)}
  return row | {"status": "finished"} | summary(found, select)


def _bar(total: int) -> Any:
  hidden = not sys.stderr.isatty()  # the line of each setting is enough there
  return tqdm(total=total, disable=hidden, unit="seed", dynamic_ncols=True)


@contextmanager
def _quiet() -> Iterator[None]:
  """Hides the messages of single runs, because the sweep prints a line for each."""
  log = logging.getLogger("ebmjax")
  level = log.level
  log.setLevel(logging.WARNING)
  try:
    yield
  finally:
    log.setLevel(level)
