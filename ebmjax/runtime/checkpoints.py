"""Saves and restores the learners' states: a thin layer over orbax, with a manifest.

Orbax commits a step by renaming a finished folder; the manifest, written after that,
marks the step as complete and holds the checksums of its files. Later damage is found
by these sums before orbax reads a byte: its reader, once failed, leaves tasks behind.
"""

import hashlib
import logging
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import jax

from ebmjax.errors import CheckpointError, WorkdirError
from ebmjax.runtime import distributed, json_files
from ebmjax.runtime.console import logging_untouched
from ebmjax.types import PyTree

with logging_untouched():
  from orbax.checkpoint import v1 as ocp

_log = logging.getLogger("ebmjax")
_ASIDE = ".damaged"  # ends the name of a step whose files have changed
_MANIFEST = "manifest.json"  # in the folder of a step
_SPENT = {"wall_time": json_files.number, "seconds": {...: json_files.number}}


class Checkpoints:
  """Keeps the latest `keep` states of a run, by step, in one folder."""

  def __init__(self, directory: Path, keep: int) -> None:
    self._directory = directory.absolute()
    if directory.exists() and not directory.is_dir():
      raise CheckpointError(f"{directory} is not a folder of checkpoints; remove it.")
    # Orbax drops its own notes at every step; only its errors concern a user.
    logging.getLogger("absl").setLevel(logging.ERROR)
    if distributed.is_primary():
      _set_damaged_aside(self._directory)
    distributed.wait_for_primary()
    self._stack = ExitStack()
    self._keeper = ocp.training.Checkpointer(
      self._stack.enter_context(_plainly_named(self._directory)),
      save_decision_policy=ocp.training.save_decision_policies.FixedIntervalPolicy(1),
      preservation_policy=ocp.training.preservation_policies.LatestN(keep),
      cleanup_tmp_directories=True,
    )

  def save(
    self, step: int, states: PyTree, spent: Mapping[str, Any] | None = None
  ) -> None:
    """Writes the states of `step`; when it returns, the step is complete on the disk.

    `spent`, JSON on how long it took so far, is kept with them. All processes must
    call it, with the same arrays; the primary writes.
    """
    try:
      with _quiet():
        written = self._keeper.save(step, states, force=True)
      if written and distributed.is_primary():
        folder = self._directory / str(step)
        manifest = {"leaves": leaves(states), "files": _sums(folder)}
        json_files.write(folder / _MANIFEST, manifest | {"spent": spent or {}})
    except (OSError, ValueError) as error:  # orbax wraps the disk's complaints
      raise self._unwritten(step) from error
    if not written:
      raise self._unwritten(step)

  def restore(self, like: PyTree) -> tuple[int, PyTree] | None:
    """Returns (step, states) of the newest complete checkpoint, or None without any.

    `like` gives the structure, shapes and types. A damaged checkpoint is skipped with a
    warning; if all of them are damaged, CheckpointError is raised.
    """
    steps = [checkpoint.step for checkpoint in self._keeper.checkpoints]
    if not steps and any(self._directory.glob(f"*{_ASIDE}")):
      raise CheckpointError(
        f"all checkpoints in {self._directory} are damaged; remove the workdir and "
        "start the run again."
      )
    if not steps:
      return None
    step = max(steps)
    if self._manifest(step)["leaves"] != leaves(like):
      raise CheckpointError(
        f"the checkpoint of step {step} in {self._directory} holds other arrays than "
        "this version of the program trains; remove the workdir and start the run "
        "again."
      )
    try:
      return step, self._keeper.load(step, _abstract(like))
    except Exception as error:  # of orbax, on files that fit a manifest made for them
      raise CheckpointError(
        f"{self._directory / str(step)} is not a readable checkpoint; remove the "
        "workdir and start the run again."
      ) from error

  def spent(self, step: int) -> dict[str, Any]:
    """Returns the `spent` that was saved with `step`; older versions saved none."""
    spent: dict[str, Any] = self._manifest(step).get("spent", {})
    return spent

  def _manifest(self, step: int) -> dict[str, Any]:
    path = self._directory / str(step) / _MANIFEST
    return json_files.read(path, _is_manifest, "start the run again")

  def _unwritten(self, step: int) -> CheckpointError:
    return CheckpointError(
      f"the checkpoint of step {step} was not written to {self._directory}; check the "
      "space on the disk and start the same command again."
    )

  def close(self) -> None:
    """Waits for the disk."""
    with self._stack:
      self._keeper.close()

  def __enter__(self) -> "Checkpoints":
    return self

  def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
    if kind is None:
      self.close()
      return
    # Orbax would raise again what its disk refused, in place of our sentence on it.
    with _quiet(), suppress(Exception):
      self.close()


def newest_step(directory: Path) -> int:
  """Returns the step of a folder's newest checkpoint, -1 without any."""
  found = directory.glob(f"*/{_MANIFEST}")
  steps = [int(path.parent.name) for path in found if path.parent.name.isdigit()]
  return max(steps, default=-1)


@contextmanager
def _plainly_named(directory: Path) -> Iterator[Path]:
  """Yields a path to a folder that orbax takes for a name.

  It takes brackets and backslashes for a pattern, and fails on what is no UTF-8.
  """
  name = str(directory)
  if name.isprintable() and not set(r"[]\*?") & set(name):
    yield directory
    return
  if distributed.is_multiprocess():
    raise CheckpointError(
      f"{name!r} has characters that several processes cannot share; choose another "
      "with --workdir."
    )
  directory.mkdir(parents=True, exist_ok=True)
  with tempfile.TemporaryDirectory(prefix="ebmjax-") as place:
    link = Path(place, directory.name)
    link.symlink_to(directory)
    yield link


def leaves(tree: PyTree) -> str:
  """Returns a hash of the names, types and shapes of all leaves."""
  found = hashlib.blake2b(digest_size=16)
  for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
    found.update(f"{jax.tree_util.keystr(path)} {leaf.dtype} {leaf.shape};".encode())
  return found.hexdigest()


@contextmanager
def _quiet() -> Iterator[None]:
  """Hides what orbax logs of a failure: it raises the same, and we report that.

  After a failure it stays hidden, because orbax's other threads still log then.
  """
  log = logging.getLogger("absl")
  level = log.level
  log.setLevel(logging.CRITICAL)
  yield
  log.setLevel(level)


def _set_damaged_aside(directory: Path) -> None:
  """Renames the steps whose files have changed; drops the last one if unfinished."""
  if not directory.is_dir():
    return
  found = {int(p.name): p for p in directory.iterdir() if p.name.isdecimal()}
  for step, folder in sorted(found.items()):
    if not folder.is_dir() or str(step) != folder.name:
      raise CheckpointError(f"{folder} is not a checkpoint; remove it.")
    if step == max(found) and not (folder / _MANIFEST).exists():
      # Killed between orbax's commit and ours, by all signs: the one before is whole.
      _log.warning("The checkpoint of step %d was not finished; it is dropped.", step)
      shutil.rmtree(folder)
    elif fault := _fault(folder):
      _log.warning(
        "The checkpoint of step %d is damaged (%s); going back to an earlier one.",
        step,
        fault,
      )
      aside = folder.with_name(folder.name + _ASIDE)
      shutil.rmtree(aside, ignore_errors=True)
      folder.rename(aside)


def _fault(folder: Path) -> str | None:
  """Returns what is wrong with the files of a step, or None."""
  try:
    kept = json_files.read(folder / _MANIFEST, _is_manifest, "")["files"]
  except WorkdirError as error:
    return str(error)
  found = _sums(folder)
  wrong = [name for name in sorted(kept) if found.get(name) != kept[name]]
  return f"{wrong[0]} is missing or has changed" if wrong else None


def _is_manifest(found: Any) -> bool:
  """Returns whether an object is a manifest, which lacks `spent` in older versions."""
  whole = json_files.fits(found, {"leaves": str, "files": {...: str}})
  return whole and (not found.get("spent") or json_files.fits(found["spent"], _SPENT))


def _sums(folder: Path) -> dict[str, str]:
  """Returns the hash of every file of a step but the manifest, by relative name."""
  files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
  return {
    str(path.relative_to(folder)): _sum(path)
    for path in files
    if path.name != _MANIFEST
  }


def _sum(path: Path) -> str:
  with path.open("rb") as file:
    return hashlib.file_digest(file, "blake2b").hexdigest()[:32]


def _abstract(tree: PyTree) -> PyTree:
  """Returns shapes, types and placement, so that orbax need not guess them."""
  return jax.tree.map(
    lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding),
    tree,
  )
