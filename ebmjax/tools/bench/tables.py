"""Rows of figures as Markdown."""

from collections.abc import Callable, Hashable, Iterable

from ebmjax.tools.bench.measuring import OURS, Row

_RATES = {
  "ebm": "EBM",
  "sbc": "SBC",
  "plain_pass_per_label": "JAX, plain pass per label",
  "plain_shared": "JAX, plain shared",
  "pass_per_label": "PyTorch, pass per label",
  "shared": "PyTorch, shared",
}
_RATIOS = {"time_over_sbc": "time, EBM over SBC"}
Column = tuple[str, Callable[[Row], str]]  # a title, and a row's cell under it


def table(rows: list[Row]) -> str:
  """Returns Markdown of the rows: rates, and ratios with their range.

  Rows with the same columns share a table. Where a form was run in several ways, a
  further table has the rates of all of them.
  """
  several = [row for row in rows if row.get("ways")]
  return "\n\n".join(
    [
      *map(_rate_table, _alike(rows, _columns)),
      *map(_ways_table, _alike(several, _all_ways)),
    ]
  )


def seeds_table(rows: list[Row]) -> str:
  """Returns Markdown of seed-steps per second, and their ratio to one seed's."""
  return "\n\n".join(
    _rate_table(group, ours="1 seed") for group in _alike(rows, _columns)
  )


def evaluation_table(rows: list[Row]) -> str:
  """Returns Markdown of whole evaluations."""
  return _table(
    rows,
    ("images", lambda row: str(row["images"])),
    ("labels", lambda row: str(row["labels"])),
    ("seconds", lambda row: number(row["seconds"]["median"])),
    ("range", lambda row: _range(row["seconds"], number)),
    ("images per second", lambda row: number(row["rate"][OURS]["median"])),
  )


def share_table(rows: list[Row]) -> str:
  """Returns Markdown of what the steps reach of the machine's peak, in GFLOP/s."""
  return _table(
    rows,
    ("GFLOP a step", lambda row: f"{row['gflop_per_step']:.3g}"),
    ("reached", lambda row: number(row["achieved"]["median"])),
    ("peak", lambda row: number(row["peak"])),
    ("at its own shapes", lambda row: number(row["own_shapes"])),
    ("share of peak", lambda row: percent(row["share_of_peak"])),
    ("share of own shapes", lambda row: percent(row["share_of_own_shapes"])),
  )


def runs_table(rows: list[Row]) -> str:
  """Returns Markdown of what whole processes take, and a whole run's shares."""

  def seconds(start: str, name: str) -> Callable[[Row], str]:
    return lambda row: number(row[start][f"seconds_{name}"])

  def share(name: str) -> Callable[[Row], str]:
    return lambda row: percent(row["shares"][name])

  return _table(
    rows,
    ("compiling, cold (s)", seconds("cold", "compiling")),
    ("warm", seconds("warm", "compiling")),
    ("to the first chunk, cold (s)", seconds("cold", "to_first_chunk")),
    ("warm", seconds("warm", "to_first_chunk")),
    ("peak memory (MB)", lambda row: f"{row['cold']['peak_memory_mb']:.0f}"),
    ("whole run (s)", lambda row: number(sum(row["whole_run_seconds"].values()))),
    *[(name, share(name)) for name in rows[0]["shares"]],
  )


def curves_table(rows: list[Row]) -> str:
  """Returns Markdown of milliseconds a batch, a table for each set of columns."""

  def columns(row: Row) -> tuple[tuple[str, str], ...]:
    works = ("training", "inference")
    return tuple((work, name) for work in works for name in row[work])

  def median(work: str, name: str) -> Column:
    title = f"{work}: {_RATES.get(name, name)}"
    return title, lambda row: number(row[work][name]["median"])

  return "\n\n".join(
    _table(group, *[median(*column) for column in columns(group[0])])
    for group in _alike(rows, columns)
  )


def _alike(rows: list[Row], key: Callable[[Row], Hashable]) -> Iterable[list[Row]]:
  """Returns the rows by what `key` says of them, in the order of their first ones."""
  groups: dict[Hashable, list[Row]] = {}
  for row in rows:
    groups.setdefault(key(row), []).append(row)
  return groups.values()


def _rate_table(rows: list[Row], ours: str = "ebmjax") -> str:
  titles = _RATES | {OURS: ours}

  def rate(name: str) -> Column:
    return titles.get(name, name), lambda row: _rate(row, name)

  def ratio(name: str) -> Column:
    title = _RATIOS.get(name, f"ratio, {_words(name)}")
    return title, lambda row: _ratio(row["ratio"][name])

  first = rows[0]
  return _table(rows, *map(rate, first["rate"]), *map(ratio, first["ratio"]))


def _ways_table(rows: list[Row]) -> str:
  def column(way: str) -> Column:
    return _words(way), lambda row: _way(row, way)

  return _table(rows, *map(column, _all_ways(rows[0])))


def _table(rows: list[Row], *columns: Column) -> str:
  titles = ["benchmark", *(title for title, _ in columns)]
  lines = [_line(titles), _line(["---"] * len(titles))]
  for row in rows:
    lines.append(_line([row["case"], *(cell(row) for _, cell in columns)]))
  return "\n".join(lines)


def _columns(row: Row) -> tuple[str, ...]:
  return (*row["rate"], *row["ratio"])


def _all_ways(row: Row) -> tuple[str, ...]:
  return tuple(sorted([*row["ways"], *row["failed"]]))


def _way(row: Row, way: str) -> str:
  return "failed" if way in row["failed"] else number(row["ways"][way]["median"])


def _rate(row: Row, name: str) -> str:
  """Returns a rate, and, of a form that was run in several ways, which was fastest."""
  text = number(row["rate"][name]["median"])
  way = row.get("won", {}).get(name, "").partition("+")[2]
  return f"{text} ({_words(way)})" if way else text


def _ratio(spread: dict[str, float]) -> str:
  return f"**{spread['median']:.2f}** ({_range(spread, '{:.2f}'.format)})"


def _range(spread: dict[str, float], write: Callable[[float], str]) -> str:
  return f"{write(spread['min'])} to {write(spread['max'])}"


def number(value: float) -> str:
  """Returns a number with three digits at least."""
  return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def percent(share: float) -> str:
  """Returns a share in percent."""
  return f"{100 * share:.1f} %"


def _words(name: str) -> str:
  return name.replace("+", ", ").replace("_", " ")


def _line(cells: list[str]) -> str:
  return f"| {' | '.join(cells)} |"
