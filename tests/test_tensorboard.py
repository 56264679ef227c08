"""Event files are read back record by record."""

import struct
from pathlib import Path

import numpy as np
import pytest
from tensorboardX.proto.event_pb2 import Event, SessionLog

from ebmjax.runtime.tensorboard import Board


def read_events(path: Path) -> list[Event]:
  """Returns the events of a file: length, checksum, event, checksum, and so on."""
  content, events, position = path.read_bytes(), [], 0
  while position < len(content):
    (length,) = struct.unpack_from("<Q", content, position)
    start = position + 12
    events.append(Event.FromString(content[start : start + length]))
    position = start + length + 4
  return events


def points(events: list[Event]) -> list[tuple[str, int, float]]:
  return [
    (value.tag, event.step, value.simple_value)
    for event in events
    for value in event.summary.value
  ]


def purges(events: list[Event]) -> list[int]:
  return [
    event.step
    for event in events
    if event.HasField("session_log") and event.session_log.status == SessionLog.START
  ]


def test_scalars_are_read_back(tmp_path):
  with Board(tmp_path / "new" / "board", 0) as board:
    board.scalars(1, {"train/loss": 0.5, "accuracy/task_1": np.float32(0.25)})
    board.scalars(2, {"train/loss": np.array(0.125)})
  (path,) = (tmp_path / "new" / "board").iterdir()
  assert points(read_events(path)) == [
    ("train/loss", 1, 0.5),
    ("accuracy/task_1", 1, 0.25),
    ("train/loss", 2, 0.125),
  ]


def test_a_folder_may_be_named_like_a_bucket(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  with Board("gs:1/board", 0) as board:
    board.scalars(1, {"train/loss": 0.5})
  (path,) = (tmp_path / "gs:1" / "board").iterdir()
  assert points(read_events(path)) == [("train/loss", 1, 0.5)]


def test_unevaluated_tasks_leave_no_point_and_no_warning(tmp_path, caplog):
  with Board(tmp_path, 0) as board:
    board.scalars(3, {"a": float("nan"), "b": float("inf"), "c": 1.0})
  (path,) = tmp_path.iterdir()
  assert points(read_events(path)) == [("c", 3, 1.0)]
  assert caplog.records == []


def test_resume_purges_what_lies_beyond_the_checkpoint(tmp_path):
  for resume, steps in ((0, (1, 2, 3)), (2, (3, 4)), (2, (3,))):
    with Board(tmp_path, resume) as board:
      for step in steps:
        board.scalars(step, {"loss": float(step)})
  files = sorted(tmp_path.iterdir(), key=lambda path: path.name.rsplit(".", 1)[-1])
  events = [read_events(path) for path in files]
  # No file of the same second replaced another, and TensorBoard drops steps from 3 on.
  assert [purges(e) for e in events] == [[0], [3], [3]]
  assert [[step for _, step, _ in points(e)] for e in events] == [
    [1, 2, 3],
    [3, 4],
    [3],
  ]


def test_close_twice_and_write_after(tmp_path):
  board = Board(tmp_path)
  board.close()
  board.close()
  with pytest.raises(ValueError, match="step 4"):
    board.scalars(4, {"loss": 1.0})


def test_flushed_points_are_there_while_it_is_open(tmp_path):
  """A run killed after its checkpoint does not make them again."""
  with Board(tmp_path) as board:
    board.scalars(1, {"loss": 2.0})
    board.flush()
    (path,) = tmp_path.iterdir()
    assert points(read_events(path)) == [("loss", 1, 2.0)]


def test_error_inside_still_writes(tmp_path):
  with pytest.raises(KeyError), Board(tmp_path) as board:
    board.scalars(1, {"loss": 2.0})
    raise KeyError("stop")
  (path,) = tmp_path.iterdir()
  assert points(read_events(path)) == [("loss", 1, 2.0)]
