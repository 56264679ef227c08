"""Finished runs, as entries of measured.json or of folders.

Tables and figures read the same entries.
"""

import datetime
import json
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ebmjax.config import nested
from ebmjax.config.identity import decisive, identity
from ebmjax.errors import UserError, WorkdirError
from ebmjax.paper import commands
from ebmjax.paper.cells import Cell
from ebmjax.report import stored
from ebmjax.runtime import atomic, failures, locks
from ebmjax.runtime.results import identifies_run
from ebmjax.runtime.workdir import WEIGHTS, Workdir

MEASURED = Path(__file__).parent / "measured.json"
REJECTION = ("auroc_lowest", "fpr95_lowest")  # metrics of results.json
_SEPARATOR = ", "  # between the commits of a run that another commit resumed
_log = logging.getLogger("ebmjax")


class Entry(NamedTuple):
  """A finished run."""

  cell: str | None  # the first cell whose command it is
  command: str  # FILE[:variants] and flags, without seeds and data
  seeds: list[int]
  accuracies: list[float]  # percent, one per seed
  data_source: str
  data_digest: str
  data_full: bool
  commit: str | None  # those of all starts
  jax: str | None
  device: str | None
  steps: int | None  # of one seed
  steps_per_second: float | None  # over all seeds
  wall_time: float | None  # seconds, of all starts
  finished: str  # when, UTC, as the run recorded it; empty: not known
  config: dict[str, Any]  # what decides the result, by dotted key
  weights: str | None = None  # digest of the pre-trained weights; None: not known
  budget: dict[str, int] | None = None  # of a seed; None: not known
  rejection: dict[str, float] | None = None  # means over seeds, percent
  folder: Path | None = None  # of the run; None if only this entry exists

  @property
  def commits(self) -> list[str]:
    """The commits of all starts."""
    return self.commit.split(_SEPARATOR) if self.commit else ["unknown"]

  @property
  def run(self) -> dict[str, Any]:
    """What runs are compared by: the configuration with result versions."""
    return nested(self.config)


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


def find(root: Path, cells: Iterable[Cell] = ()) -> list[Entry]:
  """Finds the finished runs under `root`; warns about those that cannot be read."""
  owners = owners_of(cells)
  entries = []
  for path in stored.find(root):
    try:
      results = Workdir(path).results(remedy="", whole=identifies_run)
      if results is not None:
        entries.append(make_entry(results, path, owners))
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
  results: Mapping[str, Any], folder: Path, owners: Mapping[str, Cell]
) -> Entry:
  """Returns the entry of a folder's results.json; older ones lack some facts."""
  facts = results["facts"]
  environment = facts.get("environment") or {}
  entry = Entry(
    cell=None,
    command=commands.shortened(facts.get("command")),
    seeds=list(results["seeds"]),
    accuracies=list(results["per_seed"]),
    data_source=facts.get("data_source", "data that were not recorded"),
    data_digest=facts.get("data_digest", ""),
    data_full=facts.get("data_full", False),
    commit=_SEPARATOR.join(facts.get("commits", [])) or environment.get("commit"),
    jax=environment.get("packages", {}).get("jax"),
    device=environment.get("device"),
    steps=facts.get("steps"),
    steps_per_second=facts.get("steps_per_second"),
    wall_time=facts.get("wall_time"),
    finished=facts.get("finished") or _last_start(folder),
    config=decisive(results["config"]),
    weights=facts.get(WEIGHTS),
    budget=results.get("budget"),
    rejection=_rejection(results),
    folder=folder,
  )
  return _with_owner(entry, owners)


def _rejection(results: Mapping[str, Any]) -> dict[str, float] | None:
  """Returns how well the lowest energy rejects future classes, if it was measured."""
  means = {name: (results.get(name) or {}).get("mean") for name in REJECTION}
  known = {name: round(mean, 2) for name, mean in means.items() if mean is not None}
  return known or None


def owners_of(cells: Iterable[Cell]) -> dict[str, Cell]:
  """Maps each identity to the first cell that it measures."""
  found: dict[str, Cell] = {}
  for cell in cells:
    found.setdefault(commands.identity_of(cell.command), cell)
  return found


def _with_owner(entry: Entry, owners: Mapping[str, Cell]) -> Entry:
  """Names the cell that an entry measures; its command is then the cell's."""
  cell = owners.get(identity(entry.run))
  if cell is not None:
    return entry._replace(cell=cell.id, command=cell.command)
  if entry.cell is not None:  # the cell's configuration has changed since
    command = commands.restated(entry.command, entry.run)
    return entry._replace(cell=None, command=command)
  return entry


def collect(root: Path, cells: Iterable[Cell], path: Path = MEASURED) -> list[Entry]:
  """Adds the finished runs of `root` to `path` and returns all its entries.

  A run of the same configuration, weights and seeds replaces an older one, by the
  recorded time. Runs on partial data, or scored on images held out of the training set,
  are refused.
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
  with locks.exclusive(path.parent, "have the repository on another one"):
    kept: dict[tuple[str, str | None, tuple[int, ...]], Entry] = {}
    for entry in [*read(path), *accepted]:
      key = (identity(entry.run), entry.weights, tuple(entry.seeds))
      if key not in kept or entry.finished > kept[key].finished:
        kept[key] = entry
    return _write(path, kept.values(), owners_of(cells))


def _fault(entry: Entry) -> str | None:
  """Returns why a run's score does not count; None if it does."""
  if not entry.data_full:
    return "not the full data set"
  if entry.config.get("data.validation"):
    return "scored on training images that were held out"
  return None


def _write(
  path: Path, entries: Iterable[Entry], owners: Mapping[str, Cell]
) -> list[Entry]:
  """Writes the entries and returns them; their cells may have changed since."""
  current = [_with_owner(entry, owners)._replace(folder=None) for entry in entries]
  current.sort(key=lambda entry: (entry.command, entry.seeds))
  # A line for each field, so that a diff shows what has changed.
  texts = ",\n".join(map(_text, current))
  content = f"[\n{texts}\n]\n" if texts else "[\n]\n"
  with failures.explain_write_errors(path, "and collect the runs again"):
    atomic.write(path, content)
  return current


def _text(entry: Entry) -> str:
  """Returns an entry as JSON, without its folder or fields at their default."""
  kept = entry._replace(folder=None)._asdict()
  for name, usual in Entry._field_defaults.items():
    if kept[name] == usual:
      del kept[name]
  lines = (f' "{key}": {json.dumps(kept[key], sort_keys=True)}' for key in kept)
  return "{\n" + ",\n".join(lines) + "\n}"


def _last_start(folder: Path) -> str:
  """Returns when a run last started, for one that did not record its end.

  The names of TensorBoard's files hold the time; a copy changes the files' own times.
  """
  names = [path.name for path in folder.glob("tensorboard/events.out.tfevents.*")]
  starts = [int(name.split(".")[3]) for name in names if name.split(".")[3].isdigit()]
  if not starts:
    return ""
  at = datetime.datetime.fromtimestamp(max(starts), datetime.UTC)
  return at.strftime("%Y-%m-%dT%H:%M:%SZ")
