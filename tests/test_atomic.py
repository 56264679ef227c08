"""Files are written whole or not at all."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ebmjax.config import loading
from ebmjax.errors import WorkdirError
from ebmjax.runtime import atomic
from ebmjax.runtime.workdir import Workdir


def test_text_and_bytes_replace_what_was_there(tmp_path):
  path = tmp_path / "file"
  atomic.write(path, "a longer first content")
  atomic.write(path, b"second")
  assert path.read_bytes() == b"second"


def test_failed_write_leaves_the_old_file_and_no_rest(tmp_path, monkeypatch):
  path = tmp_path / "file"
  atomic.write(path, b"old")

  def fail(source, target):
    raise OSError("disk")

  monkeypatch.setattr(os, "replace", fail)
  with pytest.raises(OSError, match="disk"):
    atomic.write(path, b"new")
  assert path.read_bytes() == b"old"
  assert list(tmp_path.iterdir()) == [path]


KILLED = """
import os, signal, sys
from pathlib import Path
from ebmjax.runtime import atomic
setattr(os, sys.argv[2], lambda *_: os.kill(os.getpid(), signal.SIGKILL))
atomic.write(Path(sys.argv[1]), b"new")
"""


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_process_that_is_killed_leaves_the_old_file(moment, tmp_path):
  path = tmp_path / "file"
  atomic.write(path, b"old")
  done = subprocess.run(
    [sys.executable, "-c", KILLED, str(path), moment],
    env=os.environ | {"PYTHONPATH": loading.python_path()},
  )
  assert done.returncode == -signal.SIGKILL
  assert path.read_bytes() == b"old"


def test_two_hosts_whose_processes_have_one_number_write_the_same_file(
  tmp_path, monkeypatch
):
  """As two containers on one share do: both are process 1."""
  path, sync = tmp_path / "file", os.fsync
  monkeypatch.setattr(os, "getpid", lambda: 1)

  def meanwhile(handle: int) -> None:
    monkeypatch.setattr(os, "fsync", sync)
    atomic.write(path, b"of the other host")
    sync(handle)

  monkeypatch.setattr(os, "fsync", meanwhile)
  atomic.write(path, b"ours")
  assert path.read_bytes() == b"ours"
  assert list(tmp_path.iterdir()) == [path]


def leave_partial(folder: Path, name: str, age: float) -> Path:
  """Returns the temporary file that a writer killed `age` seconds ago has left."""
  folder.mkdir(exist_ok=True)
  path = folder / f".{name}.12ab.partial"
  path.write_bytes(b"half")
  then = path.stat().st_mtime - age
  os.utime(path, (then, then))
  return path


def test_the_next_write_removes_what_a_killed_one_left(tmp_path):
  killed = leave_partial(tmp_path, "file", age=7200)
  others = leave_partial(tmp_path, "other", age=7200)
  at_work = tmp_path / ".file.34cd.partial"
  at_work.write_bytes(b"of a writer that may still be at work")
  atomic.write(tmp_path / "file", b"new")
  assert not killed.exists()
  assert others.exists() and at_work.exists()


def test_who_claims_a_run_s_folder_removes_what_killed_writers_left(tmp_path):
  left = [
    leave_partial(tmp_path / folder, name, age=0)
    for folder, name in (("", "results.json"), ("evaluations", "9.npz"), ("plots", "a"))
  ]
  (tmp_path / "notes.partial").write_text("a user's own")
  with Workdir(tmp_path):
    assert not any(path.exists() for path in left)
    second = leave_partial(tmp_path, "results.json", age=0)
    with pytest.raises(WorkdirError):
      Workdir(tmp_path).__enter__()
    assert second.exists()  # who is refused removes nothing of the one at work
  assert (tmp_path / "notes.partial").exists()
