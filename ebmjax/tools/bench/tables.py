"""Rows of figures as Markdown."""

from collections.abc import Callable, Sequence

from ebmjax.runtime import tabular
from ebmjax.tools.bench.measuring import Row, Spread

Cells = Callable[[Row], dict[str, str]]  # a row's cells by their columns' titles

_NAMES = {
  "ebm": "EBM",
  "sbc": "SBC",
  "plain_pass_per_label": "JAX, plain pass per label",
  "plain_shared": "JAX, plain shared",
  "pass_per_label": "PyTorch, pass per label",
  "shared": "PyTorch, shared",
}
_RATIOS = {"time_over_sbc": "time, EBM over SBC"}


def markdown(rows: Sequence[Row], *kinds: Cells) -> str:
  """Returns the tables of each kind; rows with the same columns share a table.

  A row without cells of a kind is left out there.
  """
  tables: dict[tuple[int, tuple[str, ...]], list[list[str]]] = {}
  for i, cells in enumerate(kinds):
    for row in rows:
      if found := cells(row):
        table = tables.setdefault((i, tuple(found)), [])
        table.append([row["case"], *found.values()])
  return "\n\n".join(
    tabular.markdown(["benchmark", *titles], lines)
    for (_, titles), lines in tables.items()
  )


def rates(row: Row) -> dict[str, str]:
  """Returns a row's rates, and its ratios with their range.

  Of a form that was run in several ways, the fastest is named.
  """
  shown = {}
  for name, spread in row["rate"].items():
    way = row.get("won", {}).get(name, "").partition("+")[2]
    text = number(spread["median"])
    shown[label(name)] = f"{text} ({_words(way)})" if way else text
  for name, spread in row["ratio"].items():
    title = _RATIOS.get(name, f"ratio, {_words(name)}")
    shown[title] = f"**{spread['median']:.2f}** ({span(spread, '{:.2f}'.format)})"
  return shown


def ways(row: Row) -> dict[str, str]:
  """Returns the rates of all ways in which a row's forms were run."""
  found = {name: number(s["median"]) for name, s in row.get("ways", {}).items()}
  found |= dict.fromkeys(row.get("failed", ()), "failed")
  return {_words(name): found[name] for name in sorted(found)}


def label(name: str) -> str:
  """Returns what a table calls something that was timed."""
  return _NAMES.get(name, name)


def median(spread: Spread) -> str:
  """Returns a spread's median."""
  return number(spread["median"])


def span(spread: Spread, write: Callable[[float], str]) -> str:
  """Returns a spread's range."""
  return f"{write(spread['min'])} to {write(spread['max'])}"


def number(value: float) -> str:
  """Returns a number with three digits at least."""
  return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def percent(share: float) -> str:
  """Returns a share in percent."""
  return f"{100 * share:.1f} %"


def _words(name: str) -> str:
  return name.replace("+", ", ").replace("_", " ")
