"""TensorBoard curves that stay truthful when a run is interrupted and resumed."""

import math
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

FLUSH_SECONDS = 10  # a killed run loses no more of its curves than this


class Board:
  """Writes scalars as TensorBoard events until it is closed.

  `resume_step` is the step a run starts from: 0 for a new one, otherwise the restored
  checkpoint's. TensorBoard then hides what an interrupted run had written beyond it.
  """

  def __init__(self, directory: str | Path, resume_step: int = 0):
    from tensorboardX import SummaryWriter  # only runs that draw curves pay for it

    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    earlier = len(list(directory.glob("events.out.tfevents.*")))
    self._writer: Any = SummaryWriter(
      str(directory),
      # The step of the checkpoint itself was logged before it, and is not logged again.
      purge_step=resume_step + 1 if resume_step else 0,
      flush_secs=FLUSH_SECONDS,
      # File names count seconds, and a second file of the same second would replace
      # the first.
      filename_suffix=f".{earlier:03d}",
    )

  def scalars(self, step: int, values: Mapping[str, Any]) -> None:
    """Adds a point to the curve of each name; numbers that are not finite are left out.

    They stand for tasks that were not evaluated, and TensorBoard cannot draw them. In
    names only letters, digits and _ . - / survive; others become _.
    """
    if self._writer is None:
      raise ValueError(f"scalars at step {step} came after the board was closed")
    for name, value in values.items():
      number = float(value)
      if math.isfinite(number):
        self._writer.add_scalar(name, number, int(step))

  def close(self) -> None:
    """Writes what is pending and closes the file; a second call does nothing."""
    if self._writer is not None:
      self._writer.close()
      self._writer = None

  def __enter__(self) -> "Board":
    return self

  def __exit__(
    self,
    kind: type[BaseException] | None,
    error: BaseException | None,
    trace: TracebackType | None,
  ) -> None:
    self.close()
