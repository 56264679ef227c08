"""What was measured: an entry per finished run, of measured.json or of a folder."""

import datetime
import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ebmjax.config.identity import identity, nested, recorded
from ebmjax.errors import UserError, WorkdirError
from ebmjax.paper import commands
from ebmjax.paper.cells import Cell
from ebmjax.report import stored
from ebmjax.runtime import atomic, locks
from ebmjax.runtime.finished import tells_run
from ebmjax.runtime.workdir import WEIGHTS, Workdir

MEASURED = Path(__file__).parent / "measured.json"
_FACTS = ("data_source", "data_digest", "data_full")
_SEVERAL = ", "  # between the commits of a run that was resumed by another one
_log = logging.getLogger("ebmjax")


class Entry(NamedTuple):
  """A finished run."""

  cell: str | None  # the first cell whose command it is
  command: str  # FILE[:variants] and flags, without seeds and data
  seeds: list[int]
  accuracies: list[float]  # percent, one a seed
  data_source: str
  data_digest: str
  data_full: bool
  commit: str | None  # those of all starts
  jax: str | None
  device: str | None
  steps: int | None  # of one seed
  steps_per_second: float | None  # over all seeds
  wall_time: float | None  # seconds, of all starts
  finished: str  # when, UTC
  config: dict[str, Any]  # by dotted key, as recorded, less what does not matter
  weights: str | None = None  # a hash of the pre-trained ones' file; None: not known

  @property
  def commits(self) -> list[str]:
    """Returns the commit of each start, without repeats."""
    return self.commit.split(_SEVERAL) if self.commit else ["unknown"]


def read(path: Path = MEASURED) -> list[Entry]:
  """Returns the stored entries, in their order."""
  if not path.exists():
    return []
  try:
    return [Entry(**item) for item in json.loads(path.read_text("utf-8"))]
  except (OSError, ValueError, TypeError) as error:
    raise WorkdirError(
      f"{path} cannot be read as a list of measured runs; restore it from the "
      "repository, or remove it and collect the runs again."
    ) from error


def scores(path: Path = MEASURED) -> list[tuple[Path, dict[str, Any]]]:
  """Returns what is kept of the stored runs' results.json, for figures."""
  return [
    (
      path,
      {
        "config": nested(entry.config),
        "seeds": entry.seeds,
        "per_seed": entry.accuracies,
        "facts": {name: getattr(entry, name) for name in _FACTS}
        | {WEIGHTS: entry.weights},
      },
    )
    for entry in read(path)
  ]


def find(root: Path, cells: Iterable[Cell]) -> list[Entry]:
  """Returns the finished runs under `root`; one that cannot be read is told of."""
  owners = owners_of(cells)
  entries = []
  for path in stored.find(root):
    try:
      results = Workdir(path).results(remedy="", whole=tells_run)
      if results is not None:
        entries.append(make_entry(results, _finished(path), owners))
    except (
      UserError,
      OSError,
      LookupError,
      TypeError,
      ValueError,
      AttributeError,
    ) as error:
      _log.warning("%s is left out: its results cannot be read (%s).", path, error)
  return entries


def make_entry(
  results: Mapping[str, Any], finished: str, owners: Mapping[str, list[str]]
) -> Entry:
  """Returns the entry of a results.json; `owners` are cells by identity."""
  facts = results["facts"]
  environment = facts.get("environment", {})
  config = recorded(results["config"])
  return Entry(
    cell=owners.get(identity(config), [None])[0],
    command=commands.describe(config),
    seeds=list(results["seeds"]),
    accuracies=list(results["per_seed"]),
    data_source=facts["data_source"],
    data_digest=facts["data_digest"],
    data_full=facts["data_full"],
    commit=_SEVERAL.join(facts.get("commits", [])) or environment.get("commit"),
    jax=environment.get("packages", {}).get("jax"),
    device=environment.get("device"),
    steps=facts.get("steps"),
    steps_per_second=facts.get("steps_per_second"),
    wall_time=facts.get("wall_time"),
    finished=finished,
    config=config,
    weights=facts.get(WEIGHTS),
  )


def owners_of(cells: Iterable[Cell]) -> dict[str, list[str]]:
  """Returns the ids of the cells that a run of each identity measures."""
  found: dict[str, list[str]] = {}
  for cell in cells:
    if commands.obstacle(cell.chosen, cell.learner) is None:
      found.setdefault(commands.identity_of(cell.chosen), []).append(cell.id)
  return found


def collect(root: Path, cells: Iterable[Cell], path: Path = MEASURED) -> list[Entry]:
  """Returns the entries now in `path`: those before and the finished runs of `root`.

  A run of the same configuration, weights and seeds replaces an older one. Runs on
  partial data, or scored on images held out of the training set, are refused.
  """
  if not root.is_dir():
    raise WorkdirError(f"{root} is not a folder; give one with finished runs under it.")
  cells = list(cells)
  accepted = []
  for entry in find(root, cells):
    fault = _fault(entry)
    if fault:
      _log.warning("Refused, %s: %s (%s).", fault, entry.command, entry.data_source)
    else:
      accepted.append(entry)
  with _locked(path.parent):
    kept: dict[tuple[str, str | None, tuple[int, ...]], Entry] = {}
    for entry in [*read(path), *accepted]:
      key = (identity(entry.config), entry.weights, tuple(entry.seeds))
      if key not in kept or entry.finished >= kept[key].finished:
        kept[key] = entry
    return _write(path, kept.values(), owners_of(cells))


def _fault(entry: Entry) -> str | None:
  """Returns why a run's score is not one of the whole test set, or None."""
  if not entry.data_full:
    return "not the full data set"
  if entry.config.get("data.validation"):
    return "scored on training images that were held out"
  return None


def _write(
  path: Path, entries: Iterable[Entry], owners: Mapping[str, list[str]]
) -> list[Entry]:
  """Returns the entries as written: cells and commands anew, for files may change."""
  current = [
    entry._replace(
      cell=owners.get(identity(entry.config), [None])[0],
      command=commands.describe(entry.config),
    )
    for entry in entries
  ]
  current.sort(key=lambda entry: (entry.command, entry.seeds))
  lines = [
    "{\n" + ",\n".join(_line(key, value) for key, value in _kept(entry).items())
    for entry in current
  ]
  content = "[\n" + "\n},\n".join(lines) + ("\n}\n]\n" if lines else "]\n")
  try:
    atomic.write(path, content)
  except OSError as error:
    raise WorkdirError(
      f"{path} cannot be written ({error.strerror}); make room or ask for the right to "
      "write there, and collect the runs again."
    ) from error
  return current


def _kept(entry: Entry) -> dict[str, Any]:
  """Returns an entry by field, without the weights that most runs do not have."""
  fields = entry._asdict()
  return fields if entry.weights else {k: fields[k] for k in fields if k != "weights"}


def _line(key: str, value: Any) -> str:
  return f' "{key}": {json.dumps(value, sort_keys=True)}'


def _finished(path: Path) -> str:
  seconds = (path / "results.json").stat().st_mtime
  at = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
  return at.strftime("%Y-%m-%dT%H:%M:%SZ")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
  """Lets one process at a time read and rewrite a file of `folder`."""
  handle = os.open(folder, os.O_RDONLY)
  try:
    locks.take(handle, folder, "have the repository on another one", wait=True)
    yield
  finally:
    os.close(handle)
