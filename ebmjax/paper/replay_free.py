"""The table of replay-free methods: accuracy, published figure, cost and rejection.

Besides its own rows it shows some of the paper's for comparison: the energy network in
both settings, and the softmax classifier.
"""

from ebmjax.paper import verdicts, wording
from ebmjax.paper.cells import REPLAY_FREE, Cell
from ebmjax.paper.ledger import Ledger, Measurement, Row
from ebmjax.report import labels
from ebmjax.report.budget import COSTS
from ebmjax.runtime import tabular

DATASETS = {
  "split_mnist": "split MNIST",
  "perm_mnist": "permuted MNIST",
  "cifar10": "CIFAR-10",
  "cifar100": "CIFAR-100",
}
# (table, row) of the paper -> the method's name here.
COMPARED = {
  ("boundary_aware_no_replay", "sbc"): "SBC",
  ("boundary_aware_no_replay", "ebm"): "EBM",
  ("boundary_free", "ebm"): "EBM, without boundaries",
}
_COSTS = {cost.name: cost for cost in COSTS}
_COLUMNS = (
  *("benchmark", "method", "CONFIG", "ours (n)", "95 % interval", "published", "by"),
  *("parameters", "kept", "training", "seconds", "AUROC", "FPR95", "commit"),
)


def name_of(cell: Cell) -> str | None:
  """Returns the table's name of a cell's method; None if the cell is not in it."""
  if cell.table == REPLAY_FREE:
    return cell.row
  return COMPARED.get((cell.table, cell.row))


def rows_of(ledger: Ledger, dataset: str) -> list[Row]:
  """Returns the measured rows of a benchmark, the most accurate first."""
  found = [
    row
    for row in ledger.rows
    if row.measured and row.cell.dataset == dataset and name_of(row.cell)
  ]
  return sorted(found, key=_accuracy, reverse=True)


def markdown(ledger: Ledger) -> str:
  """Returns the table as a block of BENCHMARKS.md."""
  lines = [
    [DATASETS[dataset], *_cells(row)]
    for dataset in DATASETS
    for row in rows_of(ledger, dataset)
  ]
  own = [row for row in ledger.rows if row.cell.table == REPLAY_FREE]
  waiting = wording.waiting(ledger, own)
  missing = [waiting, ""] if waiting else []
  return "\n".join([tabular.markdown(_COLUMNS, lines), "", *missing])


def _accuracy(row: Row) -> float:
  return row.measured.summary.mean if row.measured else 0.0


def _cells(row: Row) -> list[str]:
  measured, cell = row.measured, row.cell
  assert measured is not None
  deviations = f" ({'; '.join(cell.deviations)})" if cell.deviations else ""
  return [
    str(name_of(cell)),
    wording.config(cell.command),
    wording.mean(measured.summary),
    _interval(measured),
    wording.published(cell),
    "-" if cell.accuracy is None else cell.origin + deviations,
    *(_cost(measured, name) for name in ("parameters", "bytes_kept", "training_flops")),
    _seconds(measured),
    *(_share(measured, name) for name in ("auroc_lowest", "fpr95_lowest")),
    wording.commits(measured),
  ]


def _interval(measured: Measurement) -> str:
  mean, half = measured.summary.mean, verdicts.half_width(measured.summary)
  return "-" if half is None else f"[{mean - half:.2f}, {mean + half:.2f}]"


def _cost(measured: Measurement, name: str) -> str:
  if measured.budget is None:
    return "-"
  return labels.plain(labels.amount(measured.budget[name], _COSTS[name].unit))


def _seconds(measured: Measurement) -> str:
  return "-" if measured.seconds is None else f"{measured.seconds:.0f}"


def _share(measured: Measurement, name: str) -> str:
  found = (measured.rejection or {}).get(name)
  return "-" if found is None else f"{found:.1f}"
