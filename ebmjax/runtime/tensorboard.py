"""TensorBoard curves that stay correct when a run is interrupted and resumed."""

import math
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

FLUSH_SECONDS = 10  # points are gathered for this long, between checkpoints


class Board:
  """Writes scalars as TensorBoard events until it is closed.

  `resume_step` is the step a run starts from: 0 for a new one, otherwise the restored
  checkpoint's. TensorBoard then hides what an interrupted run had written beyond it.
  """

  def __init__(self, directory: str | Path, resume_step: int = 0):
    # Only runs that draw curves pay for it. Its SummaryWriter writes from a thread,
    # which a full disk ends, and the next points would wait for it forever.
    from tensorboardX.proto.event_pb2 import SessionLog
    from tensorboardX.record_writer import RecordWriter

    directory = Path(directory).absolute()  # of "gs:1/x" tensorboardX asks a bucket
    directory.mkdir(parents=True, exist_ok=True)
    self._writer: Any = RecordWriter(str(directory / _file_name(directory)))
    self._flush_at = time.monotonic() + FLUSH_SECONDS
    self._write(file_version="brain.Event:2")
    # The step of the checkpoint itself was logged before it, and is not logged again.
    purge_step = resume_step + 1 if resume_step else 0
    self._write(purge_step, session_log=SessionLog(status=SessionLog.START))

  def scalars(self, step: int, values: Mapping[str, Any]) -> None:
    """Adds a point to the curve of each name; numbers that are not finite are left out.

    They are of tasks that were not evaluated, and TensorBoard cannot draw them. In
    names only letters, digits and _ . - / survive; others become _.
    """
    from tensorboardX.summary import scalar

    if self._writer is None:
      raise ValueError(f"scalars at step {step} came after the board was closed")
    for name, value in values.items():
      number = float(value)
      if math.isfinite(number):
        self._write(int(step), summary=scalar(name, number))

  def _write(self, step: int = 0, **content: Any) -> None:
    """Writes an event at once, so that an error of the disk reaches the run."""
    from tensorboardX.proto.event_pb2 import Event

    event = Event(wall_time=time.time(), step=step, **content)
    self._writer.write(event.SerializeToString())
    if time.monotonic() >= self._flush_at:
      self.flush()

  def flush(self) -> None:
    """Writes all points to the disk, so that a resumed run repeats none of them."""
    self._writer.flush()
    self._flush_at = time.monotonic() + FLUSH_SECONDS

  def close(self) -> None:
    """Writes what is pending and closes the file; a second call does nothing."""
    if self._writer is not None:
      writer, self._writer = self._writer, None
      try:
        writer.flush()
      finally:
        writer.close()

  def __enter__(self) -> "Board":
    return self

  def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
    # A full disk is reported once: by the error being raised, if there is one.
    with suppress(*([] if kind is None else [OSError])):
      self.close()


def _file_name(directory: Path) -> str:
  """Returns the name of the next file, which no other of the same second has."""
  prefix = "events.out.tfevents"
  earlier = len(list(directory.glob(f"{prefix}.*")))
  return f"{prefix}.{int(time.time())}.{socket.gethostname()}.{earlier:03d}"
