"""Checkpoints of the learners' states: thin over orbax, with a digest of the content.

Orbax commits a step by renaming a finished folder, so a killed save is never taken for
a whole one. Damage after the fact is found by the digest kept beside the state.
"""

import hashlib
import logging
import shutil
from pathlib import Path
from typing import Any

import jax
import numpy as np
from orbax.checkpoint import v1 as ocp

from ebmjax.errors import CheckpointError
from ebmjax.types import PyTree

_log = logging.getLogger("ebmjax")
_ASIDE = ".damaged"  # ends the name of a step that orbax cannot even list


class Checkpoints:
  """The latest `keep` states of a run, by step, in one folder."""

  def __init__(self, directory: Path, keep: int) -> None:
    self._directory = directory.absolute()
    # Orbax drops its own notes at every step; only its errors concern a user.
    logging.getLogger("absl").setLevel(logging.ERROR)
    try:
      self._keeper = self._open(keep)
    except Exception:  # orbax reads every step's metadata, and one damaged stops it
      self._set_aside_unreadable()
      self._keeper = self._open(keep)

  def save(self, step: int, states: PyTree) -> None:
    """Writes the states of `step`; when it returns, the step is whole on the disk."""
    found = {"digest": digest(states)}
    folder = self._directory / str(step)
    if folder.exists():  # a damaged one that a restart has passed over
      shutil.rmtree(folder)
      self._keeper.reload()
    if not self._keeper.save(step, states, force=True, custom_metadata=found):
      raise CheckpointError(
        f"the checkpoint of step {step} was not written to {self._directory}; check "
        "the space on the disk and start the same command again."
      )

  def restore(self, like: PyTree) -> tuple[int, PyTree] | None:
    """Returns (step, states) of the newest whole checkpoint, or None without any.

    `like` gives the structure, shapes and types. A damaged checkpoint is passed over
    with a warning; where all of them are damaged, CheckpointError.
    """
    steps = sorted((c.step for c in self._keeper.checkpoints), reverse=True)
    for step in steps:
      try:
        return step, self._read(step, like)
      except Exception as error:  # whatever a damaged file leads the reader to raise
        _warn(step, error)
    if steps or any(self._directory.glob(f"*{_ASIDE}")):
      raise CheckpointError(
        f"all checkpoints in {self._directory} are damaged; remove the workdir and "
        "start the run anew."
      )
    return None

  def close(self) -> None:
    """Waits for the disk."""
    self._keeper.close()

  def __enter__(self) -> "Checkpoints":
    return self

  def __exit__(self, *exception: object) -> None:
    self.close()

  def _open(self, keep: int) -> ocp.training.Checkpointer:
    return ocp.training.Checkpointer(
      self._directory,
      save_decision_policy=ocp.training.save_decision_policies.FixedIntervalPolicy(1),
      preservation_policy=ocp.training.preservation_policies.LatestN(keep),
      cleanup_tmp_directories=True,
    )

  def _set_aside_unreadable(self) -> None:
    """Renames the steps whose metadata cannot be read."""
    for folder in [path for path in self._directory.iterdir() if path.name.isdigit()]:
      try:
        ocp.metadata(folder)
      except Exception as error:  # whatever a damaged file leads the reader to raise
        _warn(int(folder.name), error)
        aside = folder.with_name(folder.name + _ASIDE)
        shutil.rmtree(aside, ignore_errors=True)
        folder.rename(aside)

  def _read(self, step: int, like: PyTree) -> PyTree:
    states = self._keeper.load(step, _abstract(like))
    kept: Any = self._keeper.metadata(step).custom_metadata
    if not kept or kept.get("digest") != digest(states):
      raise ValueError("its content differs from its digest")
    return states


def digest(tree: PyTree) -> str:
  """Returns a hash of the names, types, shapes and bits of all leaves."""
  found = hashlib.blake2b(digest_size=16)
  for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
    array = np.ascontiguousarray(jax.device_get(leaf))
    found.update(f"{jax.tree_util.keystr(path)} {array.dtype} {array.shape}".encode())
    found.update(array.tobytes())
  return found.hexdigest()


def _warn(step: int, error: Exception) -> None:
  _log.warning(
    "The checkpoint of step %d is damaged (%s); going back to an earlier one.",
    step,
    str(error).splitlines()[0][:120] if str(error) else type(error).__name__,
  )


def _abstract(tree: PyTree) -> PyTree:
  """Returns shapes, types and placement, so that orbax need not guess them."""
  return jax.tree.map(
    lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding),
    tree,
  )
