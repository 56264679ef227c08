"""Claims on run folders: no two processes run the same seeds of a command."""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from ebmjax.runtime import failures, locks

_NO_LOCKS = "choose another with --runs"
_NAME = re.compile(r"seeds_(\d+)-(\d+)$")


class Claim(NamedTuple):
  """A run folder that this process, or a child that inherited it, may work in."""

  workdir: Path
  seeds: range
  handle: int  # of an open, locked file; closing it releases the folder

  @property
  def log(self) -> Path:
    """The file that receives the run's output."""
    return self.workdir.with_suffix(".log")

  def release(self) -> None:
    """Releases the folder, unless a child still holds it."""
    os.close(self.handle)


class Choice(NamedTuple):
  """The work on a command that is left for this process."""

  claim: Claim | None
  busy: list[int]  # missing seeds that another process is running


@contextmanager
def planning(runs: Path) -> Iterator[None]:
  """Lets one process at a time read the claims and add one."""
  with ExitStack() as held:
    with failures.explain_write_errors(runs, "or give another with --runs"):
      runs.mkdir(parents=True, exist_ok=True)
      held.enter_context(locks.exclusive(runs / ".lock", _NO_LOCKS))
    yield


def choose(folder: Path, missing: Iterable[int], most: int | None = None) -> Choice:
  """Claims the next seeds of `missing` in `folder`; the caller is `planning`.

  An interrupted run with a checkpoint is continued, if all of its seeds are missing;
  otherwise the first consecutive seeds are taken, at most `most` of them.
  """
  missing = set(missing)
  present = {path: range(first, last + 1) for path, first, last in _folders(folder)}
  claimed = [seeds for path, seeds in present.items() if _is_claimed(path)]
  busy = {seed for seeds in claimed for seed in seeds}
  free = missing - busy
  begun = [
    (path, seeds)
    for path, seeds in present.items()
    if free.issuperset(seeds) and _is_begun(path)
  ]
  if not free:
    return Choice(None, sorted(missing & busy))
  path, seeds = begun[0] if begun else _fresh(folder, free, most or len(free))
  with failures.explain_write_errors(folder):
    folder.mkdir(parents=True, exist_ok=True)
    handle = _lock(path)
  claim = None if handle is None else Claim(path, seeds, handle)
  return Choice(claim, sorted(missing & busy))


def _fresh(folder: Path, free: set[int], most: int) -> tuple[Path, range]:
  first = last = min(free)
  while last + 1 in free and last + 1 - first < most:
    last += 1
  return folder / f"seeds_{first}-{last}", range(first, last + 1)


def _folders(folder: Path) -> list[tuple[Path, int, int]]:
  """Returns the run folders, begun or claimed, with their first and last seeds."""
  names = {path.name for path in folder.glob("seeds_*") if path.is_dir()}
  names |= {path.name[1:].removesuffix(".claim") for path in folder.glob(".*.claim")}
  found = [(folder / name, _NAME.match(name)) for name in names]
  return sorted((path, int(m[1]), int(m[2])) for path, m in found if m)


def _is_begun(path: Path) -> bool:
  """Returns whether the run in `path` has a checkpoint but no results.

  One that failed before its first checkpoint is not continued, because there may now be
  time for fewer seeds only.
  """
  steps = (path / "checkpoints").glob("[0-9]*")
  return not (path / "results.json").exists() and any(steps)


def _is_claimed(path: Path) -> bool:
  if not _claim_file(path).exists():
    return False
  handle = _lock(path)
  if handle is not None:
    os.close(handle)
  return handle is None


def _lock(path: Path) -> int | None:
  """Locks the claim's file and returns its handle; None if another process has it.

  A lock of this kind belongs to the open file, so a child that inherits the handle
  keeps the claim even if this process is killed.
  """
  handle = os.open(_claim_file(path), os.O_RDWR | os.O_CREAT)
  ours = False
  try:
    ours = locks.try_lock(handle, path.parent, _NO_LOCKS)
  finally:
    if not ours:
      os.close(handle)
  return handle if ours else None


def _claim_file(path: Path) -> Path:
  return path.with_name(f".{path.name}.claim")
