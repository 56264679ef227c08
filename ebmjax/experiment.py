"""Runs a configuration: loads its data, trains and evaluates it, writes its report."""

import logging
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jax
from ml_collections import ConfigDict

from ebmjax import data, networks
from ebmjax import report as reporting
from ebmjax.config import flat_keys
from ebmjax.config.groups import PLACES
from ebmjax.config.validation import resolve
from ebmjax.errors import DivergenceError, WorkdirError
from ebmjax.models.form import form_of, to_json
from ebmjax.paper.commands import figure_for, with_figure
from ebmjax.paths import expand
from ebmjax.report import Results
from ebmjax.runtime import distributed, environment, failures, memory, scan
from ebmjax.runtime import results as finished
from ebmjax.runtime.console import show_messages
from ebmjax.runtime.train import Outcome, Place, train_and_evaluate
from ebmjax.runtime.workdir import WEIGHTS, Workdir
from ebmjax.types import Dataset

_log = logging.getLogger("ebmjax")


def run(
  config: ConfigDict,
  workdir: str | Path,
  dataset: Dataset | None = None,
  *,
  command: str | None = None,
) -> Results:
  """Runs `config` in the folder `workdir` and returns its results.

  The results are a mapping with the content of results.json that is displayed as a
  table. Messages go to standard error, unless logging has been set up.

  A finished run is read, not run again; an interrupted one continues from its last
  checkpoint. All processes of a distributed run call this function; only process 0
  reads and writes the folder, and the others get an empty mapping. `dataset` is the
  data set, if it is loaded already; `command` is the command line that repeats the
  run, which the results store.
  """
  (found,) = run_together([(config, workdir)], dataset, command=command)
  if isinstance(found, DivergenceError):
    raise found
  return found


def run_together(
  runs: Sequence[tuple[ConfigDict, str | Path]],
  dataset: Dataset | None = None,
  *,
  command: str | None = None,
) -> list[Results | DivergenceError]:
  """Runs several configurations, each in its own folder, by one compiled program.

  They may differ only in keys marked `Traced`, and must have reached the same step.
  Each folder ends as it would if its run were alone. The results of a run that diverges
  are replaced by its error.
  """
  started = time.perf_counter()
  show_messages()
  environment.require_usual()
  environment.use_compilation_cache()
  with ExitStack() as stack, memory.explain_oom(), environment.doubt_cache():
    entered = [_enter(stack, config, workdir) for config, workdir in runs]
    found = [_finished(*each, dataset) for each in entered]
    left = [each for each, ended in zip(entered, found, strict=True) if ended is None]
    if not left:
      return [Results(results or {}) for results in found]
    if dataset is None:
      shared = left[0][0].data
      dataset = distributed.primary_first(lambda: data.load(shared))
    places = [
      Place(*each, _settle(each[2], each[0], dataset, command)) for each in left
    ]
    outcomes = iter(train_and_evaluate(places, dataset, started))
    written = iter([_write(place, next(outcomes)) for place in places])
    return [next(written) if each is None else Results(each) for each in found]


def _enter(
  stack: ExitStack, config: ConfigDict, workdir: str | Path
) -> tuple[ConfigDict, Path, Workdir]:
  """Locks and claims the folder of a run."""
  config = resolve(config)
  reporting.find_metrics(config.eval.metrics)  # a wrong path is found before training
  workdir = expand(workdir)
  if distributed.is_multiprocess():
    workdir = workdir.absolute()
  _require_same_command(config, workdir)
  folder = stack.enter_context(distributed.on_primary(lambda: Workdir(workdir)))
  folder.claim(config)
  return config, workdir, folder


def _finished(
  config: ConfigDict, workdir: Path, folder: Workdir, dataset: Dataset | None
) -> dict[str, Any] | None:
  """Returns the results of a finished run, an empty mapping on other processes."""
  results = folder.results(whole=finished.is_reportable)
  if results is not None:
    finished.require_same_data(results, config, workdir, dataset)
    results = with_figure(results)
    found = "%s holds this run, finished, on %s; nothing is left to do."
    _log.info(found, workdir, finished.source(results))
  if distributed.broadcast_from_primary(lambda: results is not None):
    return results or {}
  _require_shared(workdir)
  return None


def _write(place: Place, outcome: Outcome | DivergenceError) -> Any:
  """Writes what a user reads of a run that has ended, and returns its results."""
  if isinstance(outcome, DivergenceError):
    return outcome
  results = {}
  if distributed.is_primary():
    with failures.explain_write_errors(place.workdir):
      results = _report(place.config, place.folder, outcome)
  distributed.wait_for_primary()
  return Results(results)


def _settle(
  folder: Workdir, config: ConfigDict, dataset: Dataset, command: str | None
) -> dict[str, Any]:
  """Returns the facts of the run's first start, with the commits of all its starts."""
  now = _facts(config, dataset) | ({"command": command} if command else {})
  _require_same_data(now)
  facts = distributed.broadcast_from_primary(lambda: folder.settle(now))
  return facts | {"commits": environment.commits(facts, now)}


def _report(config: ConfigDict, folder: Workdir, outcome: Outcome) -> dict[str, Any]:
  """Writes the files that a user reads, and returns the results."""
  _log.info("Drawing figures and writing the report.")
  return reporting.write(
    folder.path,
    reporting.make_history(folder.evaluations(), outcome.class_names, outcome.seeds),
    config.to_dict(),
    outcome.facts,
    folder.scalars(),
    extra=reporting.find_metrics(config.eval.metrics),
    paper=figure_for(config.to_dict()),
  )


def _require_same_command(config: ConfigDict, workdir: Path) -> None:
  """Refuses processes that were started to do different things."""
  keys = {
    f"config.{key}": value
    for key, value in flat_keys(config).items()
    if key not in PLACES  # each host may keep the data elsewhere
  }
  distributed.require_same(keys | {"--workdir": str(workdir)})


def _require_shared(workdir: Path) -> None:
  """Refuses a workdir that some process does not see; all take part in checkpoints."""
  if not distributed.is_multiprocess():
    return
  with failures.explain_write_errors(workdir):
    word = distributed.broadcast_from_primary(Workdir(workdir).sign)
  if not distributed.is_primary() and not Workdir(workdir).is_signed(word):
    raise WorkdirError(
      f"the workdir {workdir} of process 0 is not the one that another process sees; "
      "choose a folder that all hosts share with --workdir."
    )


def _require_same_data(facts: dict[str, Any]) -> None:
  data_named = f"{facts['data_source']} ({facts['data_digest']})"
  weights = facts.get(WEIGHTS, "none")
  distributed.require_same({"data": data_named, "pre-trained weights": weights})


def _facts(config: ConfigDict, dataset: Dataset) -> dict[str, Any]:
  """Returns what every output says of the data and the machine."""
  path = config.network.get("pretrained")
  weights = {WEIGHTS: networks.trunk_digest(path)} if path else {}
  form = form_of(config, dataset)
  inputs = {} if form is None else {"inputs": to_json(form)}
  return (
    weights
    | inputs
    | {
      "data_source": dataset.source,
      "data_full": dataset.full,
      "evaluated_on": reporting.evaluated_on(config.to_dict()),
      "data_digest": data.digest(dataset),
      "driver": scan.choose_driver(config.runner.driver, jax.default_backend()),
      "environment": environment.describe(),
    }
  )
