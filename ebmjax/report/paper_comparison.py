"""How a run compares with the paper's: its number, our command for it, what differs.

A number of the paper is found by method, data and setting; whether the run has the
configuration that the number belongs to is decided here.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ebmjax.config.identity import Difference, departures
from ebmjax.paper import commands
from ebmjax.paper.cells import Cell
from ebmjax.report.labels import listed, shown
from ebmjax.report.markup import Markup, element, table


class PaperComparison(NamedTuple):
  """A cell of the paper's tables, and where a run is not that of its command."""

  cell: Cell
  departures: tuple[Difference, ...]


def paper_comparison(results: Mapping[str, Any]) -> PaperComparison | None:
  """Returns the cell whose number is shown beside a run, None where none is."""
  cell = commands.cell_for(results["config"]) if results.get("paper") else None
  if cell is None:
    return None
  usual = commands.load(cell.command).to_dict()
  return PaperComparison(cell, departures(results["config"], usual))


def remarks(results: Mapping[str, Any]) -> list[str]:
  """Returns where a run differs from the paper's, empty where nothing is known to.

  For example ["stream.iterations=200 (there 2000)"].
  """
  found = paper_comparison(results)
  if found is None:
    return []
  reason = found.cell.reason
  return [*([reason] if reason else []), *map(_remark, found.departures)]


def note(results: Mapping[str, Any]) -> str | None:
  """Returns where a run differs from the paper's as a sentence, None if nowhere."""
  found, differing = paper_comparison(results), remarks(results)
  if found is None or not differing:
    return None
  return (
    f"this run is not that of the paper's figure, here {found.cell.command}: "
    f"{listed(differing)}."
  )


def sections(results: Mapping[str, Any]) -> list[Markup]:
  """Returns the part of a page on the paper's figure; nothing where there is none."""
  found = paper_comparison(results)
  if found is None:
    return []
  content = [
    element("p", f"Run by {found.cell.origin}."),
    *_command(found),
    *_listing(
      "What that command does otherwise than the published run:",
      found.cell.deviations,
    ),
  ]
  if found.cell.reason:
    text = f"No run of ours can be set against it: {found.cell.reason}."
    content.append(element("p", text))
  return [element("section", element("h2", "The paper's figure"), *content)]


def _command(found: PaperComparison) -> list[Markup]:
  cell = found.cell
  line = commands.command_line(cell.command, cell.seeds)
  return [
    element("p", "Our command for it:"),
    element("pre", element("code", line), tabindex=0),
    _departures(found.departures),
  ]


def _departures(found: tuple[Difference, ...]) -> Markup:
  if not found:
    return element("p", "This run has the configuration of that command.")
  rows = [(key, shown(value), _usual(usual)) for key, value, usual in found]
  caption = "Where this run departs from that command"
  return table(caption, ("key", "this run", "the command"), rows, "keys")


def _listing(heading: str, texts: Sequence[str]) -> list[Markup]:
  if not texts:
    return []
  return [
    element("p", heading),
    element("ul", *(element("li", text) for text in texts)),
  ]


def _remark(found: Difference) -> str:
  return f"{found.key}={shown(found.first)} (there {_usual(found.second)})"


def _usual(value: Any) -> str:
  return "no such key" if value is None else shown(value)
