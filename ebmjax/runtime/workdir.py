"""Locks a run's folder and keeps the records that a restart continues from."""

import logging
import os
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from ebmjax.config.identity import obstacles
from ebmjax.errors import BusyError, WorkdirError
from ebmjax.paths import expand
from ebmjax.runtime import atomic, failures, json_files, locks, records
from ebmjax.runtime.records import Record
from ebmjax.runtime.results import is_valid

_log = logging.getLogger("ebmjax")
WEIGHTS = "weights_digest"  # of the pre-trained ones, among the facts
_CONFIG = {...: lambda value: not isinstance(value, list)}  # groups, and keys of none
_FACTS = {
  **dict.fromkeys(("data_digest", "data_source", "driver"), str),
  "environment": {"device": str},
}
_RESTART = "remove the workdir and start the run again"
_AGAIN = "remove this file, and the run's command continues from the last checkpoint"
_TWICE = "remove this file, for results.json holds the configuration, too"


class Workdir:
  """Locks and reads a run's folder; use as a context manager to lock it."""

  def __init__(self, path: Path) -> None:
    self.path = path = expand(path)
    self._scalars = path / "scalars.jsonl"
    self._evaluations = path / "evaluations"

  def __enter__(self) -> "Workdir":
    remedy = "choose another with --workdir"
    with failures.explain_write_errors(self.path, f"or {remedy}"):
      self._evaluations.mkdir(parents=True, exist_ok=True)
      self._lock = locks.open_lock(self.path / ".lock")
    try:
      held = locks.try_lock(self._lock, self.path, remedy)
      # The folder, too: the file's name may be removed while it is held.
      self._folder = locks.lock_folder(self.path) if held else None
      if self._folder is None:
        raise BusyError(
          f"another process is running in {self.path}; wait for it, or choose another "
          "folder with --workdir."
        )
    except WorkdirError:
      self._lock.close()
      raise
    for folder in (self.path, self._evaluations, self.path / "plots"):
      atomic.remove_partial(folder)
    return self

  def __exit__(self, *exception: object) -> None:
    if self._folder is not None:
      os.close(self._folder)
    self._lock.close()

  def sign(self) -> str:
    """Writes a new word to the folder's lock file, for other hosts to see."""
    word = uuid.uuid4().hex
    (self.path / ".lock").write_text(word)
    return word

  def is_signed(self, word: str, patience: float = 60.0) -> bool:
    """Returns whether the word is there, perhaps after a network disk's delay."""
    limit = time.monotonic() + patience
    while time.monotonic() < limit:
      try:
        if (self.path / ".lock").read_text() == word:
          return True
      except OSError:
        pass
      time.sleep(0.2)
    return False

  def claim(self, config: ConfigDict) -> None:
    """Refuses a folder that holds another configuration's run.

    A key that a later version brought counts as its default: what went before is that.
    """
    found = self._stored_config()
    if found is None:
      return
    for key, stored, given in obstacles(found, config.to_dict()):
      raise WorkdirError(
        f"{self.path} holds a run with config.{key}={stored!r}, not {given!r}; give "
        "the same configuration to continue it, or another --workdir."
      )

  def _stored_config(self) -> dict[str, Any] | None:
    """Returns the configuration that the folder belongs to, None if it is a new one."""
    path = self.path / "config.json"
    if path.exists():
      return json_files.read(path, _CONFIG, self._config_remedy())
    if (results := self.results()) is not None:
      stored: dict[str, Any] = results["config"]
      return stored
    if any(self._evaluations.glob("*.npz")):
      raise WorkdirError(f"{path} is gone, which says what was run here; {_RESTART}.")
    return None

  def _config_remedy(self) -> str:
    try:
      return _RESTART if self.results() is None else _TWICE
    except WorkdirError:
      return _RESTART

  def settle(self, facts: dict[str, Any]) -> dict[str, Any]:
    """Returns the facts of the first start; refuses other data or weights than it had.

    A run of an earlier version has no digest of its weights.
    """
    path = self.path / "run.json"
    if not path.exists():
      return facts
    first = json_files.read(path, _are_facts, _RESTART)
    if first["data_digest"] != facts["data_digest"]:
      raise WorkdirError(
        f"{self.path} holds a run on other data ({first['data_source']}), not on "
        f"{facts['data_source']}; give the same data, or another --workdir."
      )
    if first.get(WEIGHTS, facts.get(WEIGHTS)) != facts.get(WEIGHTS):
      raise WorkdirError(
        f"{self.path} holds a run with other pre-trained weights than the file of "
        "config.network.pretrained has now; give the same file, or another --workdir."
      )
    return first

  def begin(self, config: ConfigDict, facts: dict[str, Any]) -> None:
    """Writes what later starts must agree with, once the run is known to be possible.

    `facts` are the settled ones: those of the first start, with the commits of all.
    """
    path = self.path / "config.json"
    if not path.exists():
      json_files.write(path, config.to_dict())
    json_files.write(self.path / "run.json", facts)

  def results(
    self,
    remedy: str = _AGAIN,
    whole: Callable[[Mapping[str, Any]], bool] = is_valid,
  ) -> dict[str, Any] | None:
    """Returns the results of a finished run, or None; `whole` checks what readers need.

    Who only searches for runs asks for no `remedy`: the file may be anybody's.
    """
    path = self.path / "results.json"
    if not path.exists():
      return None
    return json_files.read(path, whole, remedy)

  def rewind(self, step: int) -> None:
    """Drops every record of later steps: the same ones will be made again."""
    kept = [line for line in self.scalars() if line["step"] <= step]
    atomic.write(self._scalars, "".join(map(records.line, kept)))
    for path in self._records():
      if int(path.stem) > step:
        path.unlink()

  def add_scalars(self, lines: Iterable[dict[str, Any]]) -> None:
    """Appends lines to scalars.jsonl."""
    with self._scalars.open("a") as file:
      file.writelines(map(records.line, lines))

  def scalars(self) -> list[dict[str, Any]]:
    """Returns the lines of scalars.jsonl; one cut short by a kill is left out."""
    if not self._scalars.exists():
      return []
    try:
      text = json_files.read_bytes(self._scalars).decode(errors="replace")
    except OSError as error:
      raise WorkdirError(f"{self._scalars} cannot be read; {_RESTART}.") from error
    found = [records.scalar(line) for line in text.splitlines()]
    if None in found[:-1]:
      _log.warning("%s has damaged lines; they are left out.", self._scalars)
    return [point for point in found if point is not None]

  def add_evaluation(self, record: Record) -> None:
    """Writes an evaluation under its step, atomically."""
    records.write(self._evaluation(record.step), record)

  def evaluations(self) -> list[Record]:
    """Returns all evaluations kept, in the order of their steps."""
    return [records.read(path) for path in self._records()]

  def require_evaluations(self, steps: Iterable[int]) -> None:
    """Refuses a folder in which the evaluation of one of these steps is missing."""
    for step in steps:
      path = self._evaluation(step)
      if not path.exists():
        raise self.lacks(step)
      records.read(path)

  def lacks(self, step: int) -> WorkdirError:
    """Returns the error for an evaluation that is not there."""
    path = self._evaluation(step)
    remedy = f"put it back, or {records.remedy(path)}"
    return WorkdirError(f"{path} is missing; {remedy}.")

  def _evaluation(self, step: int) -> Path:
    return self._evaluations / f"{step:09d}.npz"

  def _records(self) -> list[Path]:
    """Returns the files of evaluations by step; others that lie there are not ours."""
    found = self._evaluations.glob("*.npz")
    return sorted(path for path in found if path.stem.isdecimal())


def _are_facts(found: Any) -> bool:
  """Returns whether an object is the facts of a run; older ones lack the commits."""
  fits = json_files.fits
  return fits(found, _FACTS) and fits(found.get("commits", []), [str])
