"""Writes and reads the records of a run: evaluations, and points of its curves."""

import io
import json
import zlib
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ebmjax.errors import WorkdirError
from ebmjax.runtime import atomic, json_files
from ebmjax.types import RANKING, Evaluation

_CHECK = "check"  # of all else in a line of scalars; earlier versions wrote none
_DIGEST = "digest"  # of all else in an evaluation; earlier versions wrote none
_NAMES = {*Evaluation._fields, "tasks_finished", "at_task_end", _DIGEST}
_LARGEST = 1 << 30  # bytes of an array


class Record(NamedTuple):
  """An evaluation and when it was made."""

  step: int
  tasks_finished: int
  at_task_end: bool
  evaluation: Evaluation


def write(path: Path, record: Record) -> None:
  """Writes a record atomically; the file's name is its step."""
  when = {
    "tasks_finished": np.array(record.tasks_finished),
    "at_task_end": np.array(record.at_task_end),
  }
  arrays: dict[str, Any] = when | record.evaluation._asdict()
  content = io.BytesIO()
  np.savez_compressed(content, digest=_digest(arrays), **arrays)
  atomic.write(path, content.getvalue())


def read(path: Path) -> Record:
  """Reads the record that `write` wrote; NaN for what an older version left out."""
  try:
    content = io.BytesIO(json_files.read_bytes(path))
    with np.load(content) as file:
      arrays = {name: _bounded(file, name) for name in file.files}
    return _record(int(path.stem), arrays)
  except Exception as error:  # of zipfile and NumPy, of many kinds
    raise WorkdirError(f"{path} is damaged; {remedy(path)}.") from error


def _bounded(file: Any, name: str) -> np.ndarray:
  """Returns an array of an archive; one that unpacks to no evaluation raises."""
  if file.zip.getinfo(f"{name}.npy").file_size > _LARGEST:
    raise ValueError(f"{name} is larger than an evaluation")
  array: np.ndarray = file[name]
  return array


def _record(step: int, arrays: dict[str, np.ndarray]) -> Record:
  """Returns the record of arrays that are all there, as written, and of one run."""
  runs, tasks = arrays["accuracy"].shape
  unknown = np.full(runs, np.nan)
  classes = arrays["confusion"].shape[-1]
  shapes = [(runs, tasks)] * 2 + [(runs, classes, classes)] * 2 + [(runs,)] * 5
  evaluation = Evaluation(
    *(
      arrays.get(name, unknown) if name in RANKING else arrays[name]
      for name in Evaluation._fields
    )
  )
  if (
    not arrays.keys() <= _NAMES
    or [field.shape for field in evaluation] != shapes
    or (_DIGEST in arrays and arrays[_DIGEST].tobytes() != _digest(arrays).tobytes())
  ):
    raise ValueError("not an evaluation")
  return Record(
    step, int(arrays["tasks_finished"]), bool(arrays["at_task_end"]), evaluation
  )


def _digest(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
  """Returns a hash of the names, types, shapes and bits of arrays, but of itself."""
  found = blake2b(digest_size=16)
  for name in sorted(arrays.keys() - {_DIGEST}):
    array = np.asarray(arrays[name])
    found.update(f"{name} {array.dtype} {array.shape};".encode() + array.tobytes())
  return np.frombuffer(found.digest(), np.uint8)


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


def line(point: Mapping[str, Any]) -> str:
  """Returns a point of a curve as a line of scalars.jsonl."""
  return json.dumps({**point, _CHECK: _check(point)}) + "\n"


def scalar(line: str) -> dict[str, Any] | None:
  """Returns a line of scalars.jsonl, None where it is no point as it was written."""
  try:
    point = json.loads(line)
  except (ValueError, RecursionError):
    return None
  if not json_files.fits(point, {"step": int, "seed": int}):
    return None
  if not point.keys() <= {"step", "seed", "loss", _CHECK}:
    return None
  number = isinstance(point.get("loss"), int | float | None)
  if point.get(_CHECK, _check(point)) != _check(point) or not number:
    return None
  return {key: value for key, value in point.items() if key != _CHECK}


def _check(point: Mapping[str, Any]) -> str:
  """Returns eight digits that change where a point changes."""
  rest = {key: value for key, value in point.items() if key != _CHECK}
  return f"{zlib.crc32(json.dumps(rest, sort_keys=True).encode()):08x}"
