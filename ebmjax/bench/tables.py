"""Rows of figures as Markdown."""

from itertools import groupby

from ebmjax.bench.measuring import OURS, Row

_RATES = {
  OURS: "ebmjax",
  "ebm": "EBM",
  "sbc": "SBC",
  "plain_pass_per_label": "JAX, plain pass per label",
  "plain_shared": "JAX, plain shared",
  "pass_per_label": "PyTorch, pass per label",
  "shared": "PyTorch, shared",
}
_RATIOS = {"time_over_sbc": "time, EBM over SBC"}


def table(rows: list[Row]) -> str:
  """Returns Markdown of the rows: rates, and ratios with their range.

  Neighbours with the same columns share a table.
  """
  parts = [_one_table(list(group)) for _, group in groupby(rows, key=_columns)]
  return "\n\n".join(parts)


def _columns(row: Row) -> tuple[str, ...]:
  return (*row["rate"], *row["ratio"])


def _one_table(rows: list[Row]) -> str:
  titles = ["benchmark", *(_RATES[name] for name in rows[0]["rate"])]
  titles += [_RATIOS.get(name, f"ratio, {_words(name)}") for name in rows[0]["ratio"]]
  lines = [_line(titles), _line(["---"] * len(titles))]
  for row in rows:
    lines.append(_line([row["case"], *_rates(row), *_ratios(row)]))
  return "\n".join(lines)


def _rates(row: Row) -> list[str]:
  won = row.get("channels_last", [])
  return [
    _number(spread["median"]) + (" (channels last)" if name in won else "")
    for name, spread in row["rate"].items()
  ]


def _ratios(row: Row) -> list[str]:
  return [
    f"**{spread['median']:.2f}** ({spread['min']:.2f} to {spread['max']:.2f})"
    for spread in row["ratio"].values()
  ]


def _number(rate: float) -> str:
  """Returns a rate with three digits at least."""
  return f"{rate:.0f}" if rate >= 100 else f"{rate:.3g}"


def _words(name: str) -> str:
  return name.replace("_", " ")


def _line(cells: list[str]) -> str:
  return f"| {' | '.join(cells)} |"
