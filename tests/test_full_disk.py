"""A full disk is told in one sentence, and what was there before it stays."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax
import pytest

from ebmjax import experiment, main
from ebmjax.errors import CheckpointError
from ebmjax.report import files, plots
from ebmjax.runtime import workdir
from ebmjax.runtime.checkpoints import Checkpoints
from ebmjax.runtime.tensorboard import Board
from ebmjax.runtime.workdir import Workdir
from ebmjax.tools.sweep import __main__ as sweep
from tests.helpers import SPLIT, FullDisk, make_config, overrides, write_idx

SBC = f"{SPLIT}:smoke,sbc"
TOLD = "cannot be written (No space left on device); make room, and the same command "
TOLD += "continues from the last checkpoint."


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


def full(*_: object) -> None:
  FullDisk.write(Path(), "")


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch) -> Path:
  """Returns a folder of images; figures are left out, and compiled programs."""
  monkeypatch.setattr(plots, "draw", lambda history, scalars: {})
  return write_idx(tmp_path / "data")


def test_a_run_without_room_is_told_and_goes_on_with_it(data_dir, tmp_path, capsys):
  """Whatever it was writing: configuration, evaluations or results."""
  places = (
    (workdir, "atomic", FullDisk),
    (Workdir, "add_evaluation", full),
    (files, "atomic", FullDisk),
  )
  run = tmp_path / "run"
  arguments = [f"--config={SBC}", *overrides(data_dir), f"--workdir={run}"]
  for module, name, stand_in in places:
    with pytest.MonkeyPatch.context() as patch:
      patch.setattr(module, name, stand_in)
      assert main.main(arguments) == 1
    assert capsys.readouterr().err.splitlines()[-1] == f"ebmjax: {run} {TOLD}"
  assert main.main(arguments) == 0


def test_a_closed_pipe_is_not_taken_for_a_disk(data_dir, tmp_path, monkeypatch):
  def closed(*_: object) -> None:
    raise BrokenPipeError

  monkeypatch.setattr(Workdir, "add_evaluation", closed)
  with pytest.raises(BrokenPipeError):
    experiment.run(make_config(SBC, data_dir), tmp_path / "run")


def test_a_checkpoint_of_a_run_that_orbax_cannot_write(data_dir, tmp_path, monkeypatch):
  save = Checkpoints.save

  def without_room(*given):
    with no_file_beyond(20_000):
      save(*given)

  monkeypatch.setattr(Checkpoints, "save", without_room)
  with pytest.raises(CheckpointError, match="was not written to"):
    experiment.run(make_config(SBC, data_dir), tmp_path / "run")


def test_a_sweep_goes_on_after_a_run_without_room(
  data_dir, tmp_path, monkeypatch, capsys
):
  add, calls = Workdir.add_evaluation, []

  def full_at_first(*given):
    calls.append(given)
    # The two settings together, then the first of them alone.
    full() if len(calls) <= 2 else add(*given)

  monkeypatch.setattr(Workdir, "add_evaluation", full_at_first)
  out = tmp_path / "out"
  arguments = [f"--config={SBC}", *overrides(data_dir), f"--out={out}"]
  arguments += ["--grid=config.optimiser.learning_rate=1e-3,1e-4"]
  assert sweep.main([*arguments]) == 1
  printed = capsys.readouterr()
  assert TOLD in printed.out and "2 of 2: learning_rate=0.0001: " in printed.out
  assert printed.err.startswith("sweep: 1 of 2 settings failed")
  assert sweep.main([*arguments]) == 0  # there is room again
  assert "Best by validation: " in capsys.readouterr().out
  monkeypatch.setattr(sweep, "atomic", FullDisk)
  assert sweep.main([*arguments]) == 1
  assert capsys.readouterr().err.splitlines()[-1] == f"sweep: {out} {TOLD}"
