"""Writes and reads the records of a run: evaluations, and points of its curves."""

import io
import json
import zlib
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from ebmjax.errors import WorkdirError
from ebmjax.runtime import atomic
from ebmjax.types import RANKING, Evaluation


class Record(NamedTuple):
  """An evaluation and when it was made."""

  step: int
  tasks_finished: int
  at_task_end: bool
  evaluation: Evaluation


def write(path: Path, record: Record) -> None:
  """Writes a record atomically; the file's name is its step."""
  content = io.BytesIO()
  np.savez_compressed(
    content,
    tasks_finished=record.tasks_finished,
    at_task_end=record.at_task_end,
    **record.evaluation._asdict(),
  )
  atomic.write(path, content.getvalue())


def read(path: Path) -> Record:
  """Reads the record that `write` wrote; NaN for what an older version left out."""
  try:
    # Opened here, because np.load leaves a damaged file open.
    with path.open("rb") as content, np.load(content) as file:
      unknown = np.full(file["accuracy"].shape[:1], np.nan)
      lacks = set(RANKING) - set(file.files)
      evaluation = Evaluation(
        *(unknown if name in lacks else file[name] for name in Evaluation._fields)
      )
      return Record(
        int(path.stem),
        int(file["tasks_finished"]),
        bool(file["at_task_end"]),
        evaluation,
      )
  except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error) as error:
    raise WorkdirError(f"{path} is damaged; {remedy(path)}.") from error


def remedy(path: Path) -> str:
  """Returns what a user must do to have an evaluation made again."""
  folder, again = path.parent.parent, "start the run again in another --workdir"
  ended = (folder / "results.json").exists()
  if ended and not (folder / "config.json").exists():
    return again  # results.json alone says what was run
  own = [*(["it"] if path.exists() else []), *(["results.json"] if ended else [])]
  first = f"{', '.join(own)} and " if own else ""
  return (
    f"remove {first}the checkpoints of its step and later, and the run's command makes "
    f"it again, or {again}"
  )


def scalar(line: str) -> dict[str, Any] | None:
  """Returns a line of scalars.jsonl, None where it is no point of a curve."""
  try:
    point = json.loads(line)
  except json.JSONDecodeError:
    return None
  if not isinstance(point, dict):
    return None
  whole = all(isinstance(point.get(key), int) for key in ("step", "seed"))
  number = isinstance(point.get("loss"), int | float | None)
  return point if whole and number else None
