"""The table of README: eight rows over the four benchmarks, from the stored results."""

from collections.abc import Mapping
from typing import NamedTuple

from ebmjax.metrics import Summary
from ebmjax.paper.ledger import Ledger
from ebmjax.runtime import tabular

_BENCHMARKS = {
  "splitmnist": ("split MNIST", "split_mnist"),
  "permmnist": ("permuted MNIST", "perm_mnist"),
  "cifar10": ("CIFAR-10", "cifar10"),
  "cifar100": ("CIFAR-100", "cifar100"),
}
_ABSENT = "-"
_BLANK = "\u00a0"  # a figure stays on one line


class Headline(NamedTuple):
  """A method, and the variants with which it was run on each benchmark."""

  title: str
  variants: Mapping[str, str]  # by the name of the configuration file


def _everywhere(variants: str, **others: str) -> dict[str, str]:
  """Returns the variants of all benchmarks, with those of `others` instead."""
  return dict.fromkeys(_BENCHMARKS, variants) | others


_EBM = Headline("the paper's EBM", _everywhere("", cifar100="fixed"))
_ROWS = (
  Headline(
    "softmax (`sbc`)",
    _everywhere("sbc", permmnist="sbc,source", cifar100="sbc,fixed"),
  ),
  Headline(
    "EWC on it (`ewc,sbc`)",
    _everywhere("ewc,sbc,source", cifar10="ewc,sbc", cifar100="ewc,sbc,fixed,source"),
  ),
  _EBM,
  Headline("prediction error (`pec`)", _everywhere("pec", cifar10="pec,source")),
  Headline("shared covariance (`slda`)", _everywhere("slda,source")),
  Headline(
    "class covariances (`sqda`)",
    _everywhere(
      "patches_sqda,source", permmnist="fourier_sqda,source", cifar100="sqda,source"
    ),
  ),
  Headline(
    "stored images (`er,sbc`)",
    _everywhere("er,sbc", cifar100="er,sbc,fixed"),
  ),
)


def markdown(ledger: Ledger) -> str:
  """Returns the table as a block of README.md, the paper's row below the EBM's."""
  rows = []
  for row in _ROWS:
    rows.append([row.title, *(_ours(ledger, *run) for run in row.variants.items())])
    if row is _EBM:
      rows.append(["the EBM as published", *_published(ledger)])
  header = ("", *(title for title, _ in _BENCHMARKS.values()))
  return f"\n{tabular.markdown(header, rows)}\n"


def _ours(ledger: Ledger, benchmark: str, variants: str) -> str:
  command = f"configs/{benchmark}.py" + (f":{variants}" if variants else "")
  found = ledger.measurement(command)
  return _figure(found.summary) if found else _ABSENT


def _figure(found: Summary) -> str:
  """Returns mean, standard error and number of seeds, to a tenth of a percent."""
  error = "" if found.sem is None else f" \u00b1 {found.sem:.1f}"
  return f"{found.mean:.1f}{error} ({found.n})".replace(" ", _BLANK)


def _published(ledger: Ledger) -> list[str]:
  cells = {row.cell.id: row.cell for row in ledger.rows}
  names = (name for _, name in _BENCHMARKS.values())
  found = (cells.get(f"boundary_aware_no_replay/ebm/{name}") for name in names)
  return [f"{cell.accuracy:.1f}" if cell else _ABSENT for cell in found]
