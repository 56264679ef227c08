"""The table in README: eight rows over the four benchmarks, from the stored results."""

from ebmjax.metrics import Summary
from ebmjax.paper.cells import REPLAY_FREE
from ebmjax.paper.ledger import Ledger, Row
from ebmjax.paper.replay_free import DATASETS
from ebmjax.runtime import tabular

_ABSENT = "-"
_BLANK = "\u00a0"  # a figure stays on one line
_EBM = ("boundary_aware_no_replay", "ebm")
# (table, row) of the cells of a line, and the line's title.
_LINES = {
  ("boundary_aware_no_replay", "sbc"): "softmax (`sbc`)",
  ("boundary_aware_no_replay", "ewc"): "EWC on it (`ewc,sbc`)",
  _EBM: "the paper's EBM",
  (REPLAY_FREE, "PEC"): "prediction error (`pec`)",
  (REPLAY_FREE, "SLDA"): "shared covariance (`slda`)",
  (REPLAY_FREE, "SQDA"): "class covariances (`sqda`)",
  ("boundary_aware_replay", "sbc_er"): "stored images (`er,sbc`)",
}


def markdown(ledger: Ledger) -> str:
  """Returns the table for README.md, with the paper's figures below the EBM's."""
  rows = {(r.cell.table, r.cell.row, r.cell.dataset): r for r in ledger.rows}
  lines = []
  for place, title in _LINES.items():
    found = [rows.get((*place, dataset)) for dataset in DATASETS]
    lines.append([title, *map(_ours, found)])
    if place == _EBM:
      lines.append(["the EBM as published", *map(_published, found)])
  return f"{tabular.markdown(('', *DATASETS.values()), lines)}\n"


def _ours(row: Row | None) -> str:
  return _figure(row.measured.summary) if row and row.measured else _ABSENT


def _figure(found: Summary) -> str:
  """Returns mean, standard error and number of seeds, to a tenth of a percent."""
  error = "" if found.sem is None else f" \u00b1 {found.sem:.1f}"
  return f"{found.mean:.1f}{error} ({found.n})".replace(" ", _BLANK)


def _published(row: Row | None) -> str:
  return _ABSENT if row is None else f"{row.cell.accuracy:.1f}"
