"""One process at a time in a run's folder, on disks that have locks."""

import errno
import fcntl
import os
import subprocess
import sys
import threading
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from ebmjax import main
from ebmjax.errors import BusyError, WorkdirError
from ebmjax.paper import claims, store
from ebmjax.runtime import locks
from ebmjax.runtime.workdir import Workdir
from tests.helpers import SPLIT, overrides

SBC = f"{SPLIT}:smoke,sbc"
HOLD = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_second_process_is_refused_until_the_first_ends(tmp_path: Path, capsys):
  workdir = tmp_path / "run"
  workdir.mkdir()
  holder = subprocess.Popen(
    [sys.executable, "-c", HOLD, str(workdir / ".lock")],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    text=True,
  )
  with holder:
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    arguments = [f"--config={SBC}", *overrides(tmp_path), f"--workdir={workdir}"]
    assert main.main(arguments) == BusyError.exit_code == 75
    assert capsys.readouterr().err == (
      f"ebmjax: another process is running in {workdir}; wait for it, or choose "
      "another folder with --workdir.\n"
    )
    holder.kill()
  with Workdir(workdir):
    pass


def test_the_lock_is_released_on_leaving(tmp_path: Path):
  with Workdir(tmp_path) as held:
    word = held.sign()
    with pytest.raises(WorkdirError, match="another process"):
      Workdir(tmp_path).__enter__()
    assert held.is_signed(word, patience=1)  # who is refused leaves it as it is
  with Workdir(tmp_path):
    pass


def test_a_removed_lock_file_still_locks(tmp_path: Path):
  with Workdir(tmp_path):
    (tmp_path / ".lock").unlink()
    with pytest.raises(BusyError, match="another process is running"):
      Workdir(tmp_path).__enter__()
  with Workdir(tmp_path):
    pass


def test_a_pipe_in_place_of_the_lock_is_told(tmp_path: Path):
  os.mkfifo(tmp_path / ".lock")
  with pytest.raises(WorkdirError, match="cannot be written"):
    Workdir(tmp_path).__enter__()


def test_a_disk_without_locks_is_told(tmp_path: Path, monkeypatch):
  """As some network disks are; for a run, for who runs what, and for what is stored."""

  def none(*_: object) -> None:
    raise OSError(errno.ENOSYS, "Function not implemented")

  def enter(lock: AbstractContextManager[Any]) -> None:
    with lock:
      pass

  monkeypatch.setattr(fcntl, "flock", none)
  told = rf"the disk of {tmp_path} has no file locks \(Function not implemented\); "
  with pytest.raises(WorkdirError, match=f"{told}choose another with --workdir"):
    enter(Workdir(tmp_path))
  with pytest.raises(WorkdirError, match=f"{told}choose another with --runs"):
    enter(claims.planning(tmp_path))
  with pytest.raises(WorkdirError, match=f"{told}choose another with --runs"):
    claims.choose(tmp_path, [0])
  with pytest.raises(WorkdirError, match=f"{told}have the repository"):
    store.collect(tmp_path, [], tmp_path / "measured.json")


@pytest.mark.parametrize("name", ["", ".lock"])
def test_who_wants_it_alone_waits(tmp_path: Path, name, caplog):
  """For a folder, or for a file in it."""
  caplog.set_level("INFO")
  begun, entered = threading.Event(), threading.Event()

  def second() -> None:
    begun.set()
    with locks.exclusive(tmp_path / name, ""):
      entered.set()

  with locks.exclusive(tmp_path / name, ""):
    thread = threading.Thread(target=second)
    thread.start()
    assert begun.wait(10) and not entered.wait(0.2)
  assert entered.wait(10)
  thread.join()
  assert caplog.messages == [
    f"Waiting for another process that is working in {tmp_path}."
  ]


@pytest.mark.parametrize("inside", ["", "below"])
def test_a_file_in_its_place(tmp_path: Path, inside):
  (tmp_path / "file").write_text("")
  with pytest.raises(
    WorkdirError, match=r"file.* cannot be written \(.+\); make .* or choose"
  ):
    Workdir(tmp_path / "file" / inside).__enter__()
