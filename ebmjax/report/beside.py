"""What a run has to do with the figure of the paper that is set beside it.

A figure is found by method, data and setting; whether the run is the one that it
belongs to is said here.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ebmjax.paper import protocols
from ebmjax.paper.cells import Cell, cell_of
from ebmjax.paper.departures import Departure, departures, listed, shown
from ebmjax.report.markup import Markup, element, table


class Beside(NamedTuple):
  """A cell of the paper's tables, and where a run is not that of its command."""

  cell: Cell
  departures: tuple[Departure, ...]


def beside(results: Mapping[str, Any]) -> Beside | None:
  """Returns the cell whose figure stands beside a run, None where none does."""
  cell = cell_of(results["config"]) if results.get("paper") else None
  if cell is None:
    return None
  return Beside(cell, departures(cell.chosen, results["config"]))


def departures_told(results: Mapping[str, Any]) -> list[str]:
  """Returns ["stream.iterations=200 (there 2000)", ...], empty for the cell's own."""
  found = beside(results)
  return [] if found is None else list(map(_told, found.departures))


def note(results: Mapping[str, Any]) -> str | None:
  """Returns how a run departs from the command of its figure, None if it does not."""
  found = beside(results)
  if found is None or not found.departures:
    return None
  return (
    f"the command of the paper's figure is --config={found.cell.chosen}, and this run "
    f"departs from it: {listed(map(_told, found.departures))}."
  )


def sections(results: Mapping[str, Any]) -> list[Markup]:
  """Returns the part of a page on the paper's figure; nothing where there is none."""
  found = beside(results)
  if found is None:
    return []
  command = f"python -m ebmjax.main --config={found.cell.chosen}"
  content = [
    element("p", f"Run by {protocols.origin(found.cell.id)}. Its command here:"),
    element("pre", element("code", command), tabindex=0),
    _departures(found.departures),
    *_deviations(protocols.deviations(found.cell.id)),
  ]
  return [element("section", element("h2", "The paper's figure"), *content)]


def _departures(found: tuple[Departure, ...]) -> Markup:
  if not found:
    return element("p", "This run has the configuration of that command.")
  rows = [(key, shown(value), shown(usual)) for key, value, usual in found]
  caption = "Where this run departs from that command"
  return table(caption, ("key", "this run", "the command"), rows, "keys")


def _deviations(told: list[str]) -> list[Markup]:
  if not told:
    return []
  items = (element("li", text) for text in told)
  heading = "What that command does otherwise than the published run:"
  return [element("p", heading), element("ul", *items)]


def _told(found: Departure) -> str:
  return f"{found.key}={shown(found.value)} (there {shown(found.usual)})"
