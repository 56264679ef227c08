"""Stored runs of the paper's commands, made up, and the ledger's row of a cell."""

from typing import Any

from ml_collections import ConfigDict

from ebmjax.config.identity import decisive
from ebmjax.paper import commands, ledger
from ebmjax.paper.cells import all_cells
from ebmjax.paper.ledger import Ledger
from ebmjax.paper.store import Entry

EBM = "boundary_aware_no_replay/ebm/split_mnist"
CELLS = {cell.id: cell for cell in all_cells()}


def changed(chosen: str, **changes: Any) -> dict[str, Any]:
  """Returns the recorded configuration of FILE[:variants] with other values."""
  config = ConfigDict(commands.load(chosen).to_dict())
  config.update_from_flattened_dict(
    {key.replace("__", "."): value for key, value in changes.items()}
  )
  return decisive(config.to_dict())


def entry(chosen: str, accuracies: dict[int, float], **changes: Any) -> Entry:
  """Returns a finished run of FILE[:variants] with these accuracies by seed."""
  config = decisive(commands.load(chosen).to_dict())
  made = Entry(
    cell=None,
    command=chosen,
    seeds=list(accuracies),
    accuracies=list(accuracies.values()),
    data_source="mnist, full",
    data_digest="abc",
    data_full=True,
    commit="0123456789ab",
    jax="0.10.2",
    device="cpu",
    steps=10_000,
    steps_per_second=100.0,
    wall_time=20.0 * len(accuracies),
    finished="2026-01-01T00:00:00Z",
    config=config,
  )
  return made._replace(**changes)


def row_of(cell_id: str, *entries: Entry) -> ledger.Row:
  return Ledger([CELLS[cell_id]], entries).rows[0]
