"""What a run has to do with the figure of the paper that is set beside it.

A figure is found by method, data and setting; whether the run is the one that it
belongs to is said here.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ebmjax.errors import ConfigError
from ebmjax.paper import commands, protocols
from ebmjax.paper.cells import Cell, cell_of
from ebmjax.paper.departures import Departure, departures, listed, shown
from ebmjax.report.markup import Markup, element, table


class Beside(NamedTuple):
  """A cell of the paper's tables, and where a run is not that of its command."""

  cell: Cell
  departures: tuple[Departure, ...]
  unreadable: str  # why the command is not known; empty where it is


def beside(results: Mapping[str, Any]) -> Beside | None:
  """Returns the cell whose figure stands beside a run, None where none does."""
  cell = cell_of(results["config"]) if results.get("paper") else None
  if cell is None:
    return None
  try:
    return Beside(cell, departures(cell.chosen, results["config"]), "")
  except ConfigError as error:  # the file was changed: no reason to lose a run's page
    return Beside(cell, (), str(error).rstrip("."))


def remarks(results: Mapping[str, Any]) -> list[str]:
  """Returns what parts a run from the figure's, empty where nothing is known to.

  For example ["stream.iterations=200 (there 2000)"].
  """
  found = beside(results)
  if found is None:
    return []
  protocol, why = _protocol(found.cell), found.unreadable
  return [
    *([f"another protocol ({protocol})"] if protocol else []),
    *([f"our command for it cannot be read ({why})"] if why else []),
    *map(_told, found.departures),
  ]


def note(results: Mapping[str, Any]) -> str | None:
  """Returns what parts a run from the figure's as a sentence, None if nothing does."""
  found, told = beside(results), remarks(results)
  if found is None or not told:
    return None
  return (
    f"this run is not that of the paper's figure, here {found.cell.chosen}: "
    f"{listed(told)}."
  )


def sections(results: Mapping[str, Any]) -> list[Markup]:
  """Returns the part of a page on the paper's figure; nothing where there is none."""
  found = beside(results)
  if found is None:
    return []
  content = [
    element("p", f"Run by {protocols.origin(found.cell.id)}."),
    *_command(found),
    *_listing(
      "What that command does otherwise than the published run:",
      protocols.deviations(found.cell.id),
    ),
  ]
  protocol = _protocol(found.cell)
  if protocol:
    told = f"No run of ours can be set against it: another protocol ({protocol})."
    content.append(element("p", told))
  return [element("section", element("h2", "The paper's figure"), *content)]


def _command(found: Beside) -> list[Markup]:
  cell = found.cell
  if found.unreadable:
    told = f"Our command for it, of {cell.chosen}, cannot be read: {found.unreadable}."
    return [element("p", told)]
  line = commands.command_line(cell.chosen, cell.seeds)
  return [
    element("p", "Our command for it:"),
    element("pre", element("code", line), tabindex=0),
    _departures(found.departures),
  ]


def _departures(found: tuple[Departure, ...]) -> Markup:
  if not found:
    return element("p", "This run has the configuration of that command.")
  rows = [(key, shown(value), _usual(usual)) for key, value, usual in found]
  caption = "Where this run departs from that command"
  return table(caption, ("key", "this run", "the command"), rows, "keys")


def _listing(heading: str, told: list[str]) -> list[Markup]:
  if not told:
    return []
  return [element("p", heading), element("ul", *(element("li", t) for t in told))]


def _protocol(cell: Cell) -> str | None:
  """Returns why no run of ours can be set against a cell, None where one can."""
  return protocols.OTHER_PROTOCOL.get((cell.method, cell.dataset))


def _told(found: Departure) -> str:
  return f"{found.key}={shown(found.value)} (there {_usual(found.usual)})"


def _usual(value: Any) -> str:
  return "no such key now" if value is None else shown(value)
