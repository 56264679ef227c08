"""A full disk is told in one sentence, and what was there before it stays."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax
import pytest

from ebmjax.checkpoints import Checkpoints
from ebmjax.errors import CheckpointError
from ebmjax.report import Board


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
  """Makes the system refuse to let any file grow beyond `size` bytes."""
  before = resource.getrlimit(resource.RLIMIT_FSIZE)
  resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
  try:
    yield
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_checkpoint_that_orbax_cannot_write(tmp_path: Path, caplog):
  """Our sentence leaves the with-block, not orbax's repetition of its own error."""
  small, large = ({"w": jax.random.normal(jax.random.key(0), (n,))} for n in (2, 90000))
  with Checkpoints(tmp_path / "kept", keep=2) as keeper:
    keeper.save(1, small)
  with (
    pytest.raises(CheckpointError, match=r"step 2 was not written .* the disk"),
    Checkpoints(tmp_path / "kept", keep=2) as keeper,
    no_file_beyond(100_000),
  ):
    keeper.save(2, large)
  assert not caplog.records
  with Checkpoints(tmp_path / "kept", keep=2) as keeper:
    restored = keeper.restore(small)
  assert restored is not None
  assert restored[0] == 1


def test_curves_that_cannot_be_written_are_told_to_the_caller(tmp_path: Path):
  """From a thread of its own the error would be lost, and the run would wait."""
  with (
    no_file_beyond(5_000),
    pytest.raises(OSError, match="File too large"),
    Board(tmp_path) as board,
  ):
    for step in range(8):  # fewer than a queue would hold: the test must not hang
      board.scalars(step, {"x" * 10_000: 1.0})
    pytest.fail("the board took all points")


def test_an_error_on_its_way_is_not_replaced_by_the_board_s(tmp_path: Path):
  with pytest.raises(KeyError), no_file_beyond(0), Board(tmp_path / "board") as board:
    board.scalars(1, {"loss": 1.0})
    raise KeyError("stop")
