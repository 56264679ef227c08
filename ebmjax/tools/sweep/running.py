"""Runs the settings of a sweep one after the other, each in a folder of its own."""

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
from ebmjax.config.validation import resolve
from ebmjax.data.held_out import smallest_class
from ebmjax.errors import BusyError, DivergenceError, UserError, WorkdirError
from ebmjax.runtime.terminal import explain_out_errors
from ebmjax.runtime.workdir import Workdir
from ebmjax.tools.sweep.settings import Setting, describe
from ebmjax.tools.sweep.tables import Row, best_of, line_of
from ebmjax.types import Dataset

BEST = "best-test"  # the folder of the best setting's run on the test set


class Loader:
  """Loads a data set once, however many settings use it."""

  def __init__(self) -> None:
    self._loaded: dict[str, Dataset] = {}

  def __call__(self, config: ConfigDict) -> Dataset:
    key = json.dumps(config.data.to_dict(), sort_keys=True, default=str)
    if key not in self._loaded:
      self._loaded[key] = data.load(config.data)
    return self._loaded[key]


def default_validation(settings: Sequence[Setting], load: Loader) -> int:
  """Returns a tenth of the training images of the smallest class, at least one."""
  fewest = min(smallest_class(load(setting.config))[1] for setting in settings)
  return max(fewest // 10, 1)


def check(settings: Sequence[Setting], folder: Path, load: Loader) -> None:
  """Refuses settings without data, and folders of another configuration's run."""
  for setting in settings:
    load(setting.config)
    claim(setting.config, folder / setting.name)
  with explain_out_errors(folder):
    folder.mkdir(parents=True, exist_ok=True)


def claim(config: ConfigDict, workdir: Path) -> None:
  """Refuses a `workdir` that holds another configuration's run."""
  try:
    Workdir(workdir).claim(resolve(config))
  except WorkdirError as error:
    raise WorkdirError(str(error).replace("--workdir", "--out")) from error


def run_all(
  settings: Sequence[Setting],
  folder: Path,
  load: Loader,
  write: Callable[[list[Row]], None],
) -> list[Row]:
  """Runs all settings and returns a row for each; `write` gets the rows so far.

  A setting that another process is running is tried again after the others: it may
  have finished by then.
  """
  rows: dict[int, Row] = {}
  total = sum(setting.config.seeds for setting in settings)
  with _quiet(), _bar(total) as bar:
    for turn in range(2):
      for position, setting in enumerate(settings):
        if turn and rows[position]["status"] != "busy":
          continue
        bar.set_description(describe(setting.values))
        rows[position] = _outcome(setting, folder, load)
        if not turn:
          bar.update(setting.config.seeds)
        sofar = [rows[place] for place in sorted(rows)]
        best = best_of(sofar)
        bar.set_postfix_str(f"best {best['mean']:.2f}%" if best else "")
        place = f"{position + 1} of {len(settings)}"
        bar.write(f"{place}: {line_of(rows[position])}")
        sys.stdout.flush()
        write(sofar)
  return [rows[position] for position in range(len(settings))]


def run_on_test(setting: Setting, folder: Path, seeds: int) -> dict[str, Any]:
  """Trains a setting on all training images and returns its results on the test set."""
  config, workdir = setting.config.copy_and_resolve_references(), folder / BEST
  config.update_from_flattened_dict({"data.validation": 0, "seeds": seeds})
  try:
    claim(config, workdir)
  except WorkdirError as error:
    raise WorkdirError(
      f"{workdir} holds the test of another setting or other seeds; move it away, and "
      "give the same command again."
    ) from error
  with _quiet():
    return experiment.run(config, workdir)


def _outcome(setting: Setting, folder: Path, load: Loader) -> Row:
  """Runs a setting and returns its row, whether it has finished or not."""
  row: Row = {"values": setting.values, "workdir": setting.name, "reason": None}
  try:
    dataset = load(setting.config)
    results = experiment.run(setting.config, folder / setting.name, dataset)
  except BusyError as error:
    return row | {"status": "busy", "reason": str(error)}
  except DivergenceError as error:
    return row | {"status": "diverged", "reason": str(error)}
  except UserError as error:
    reason = str(error).replace("--workdir", "--out")
    return row | {"status": "failed", "reason": reason}
  except JaxRuntimeError as error:
    return row | {"status": "failed", "reason": str(error).splitlines()[0]}
  return row | {"status": "finished"} | summary(results)


def summary(results: dict[str, Any]) -> dict[str, Any]:
  """Returns the score of a run: mean, sem, n, per_seed, seeds and seconds."""
  return results["average_accuracy"] | {
    "per_seed": results["per_seed"],
    "seeds": results["seeds"],
    "seconds": results["facts"].get("wall_time"),
  }


def _bar(total: int) -> Any:
  hidden = not sys.stderr.isatty()  # lines are printed there, one a setting
  return tqdm(total=total, disable=hidden, unit="seed", dynamic_ncols=True)


@contextmanager
def _quiet() -> Iterator[None]:
  """Hides what a single run says of itself: the sweep has a line for each."""
  log = logging.getLogger("ebmjax")
  level = log.level
  log.setLevel(logging.WARNING)
  try:
    yield
  finally:
    log.setLevel(level)
