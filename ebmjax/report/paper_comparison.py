"""How a run compares with the paper's: the figure, our command for it, what differs.

Everything comes from results["paper"]: the figure (cell, accuracy, sem) and, since
schema 2, its provenance (origin, command, command_line, deviations, reason) and the
run's departures from that command: keys, each with the run's value and the command's.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ebmjax.report.labels import listed, shown
from ebmjax.report.markup import Markup, element, section, table

Departure = tuple[str, Any, Any]  # a key, the run's value and the command's


def figure(results: Mapping[str, Any]) -> dict[str, Any] | None:
  """Returns the paper's figure for a run; None if there is none."""
  paper = results.get("paper")
  return paper and {name: paper.get(name) for name in ("cell", "accuracy", "sem")}


def remarks(results: Mapping[str, Any]) -> list[str]:
  """Returns how a run differs from the paper's; empty if no difference is known.

  For example ["stream.iterations=200 (there 2000)"].
  """
  paper = results.get("paper") or {}
  reason = paper.get("reason")
  departures = paper.get("departures", ())
  return [*([reason] if reason else []), *(_remark(*found) for found in departures)]


def note(results: Mapping[str, Any]) -> str | None:
  """Returns a sentence on how a run differs from the paper's; None if it does not."""
  differing = remarks(results)
  if not differing:
    return None
  return (
    f"this run differs from the command for the paper's figure, "
    f"{results['paper']['command']}: "
    f"{listed(differing)}."
  )


def sections(results: Mapping[str, Any]) -> list[Markup]:
  """Returns the section of a page on the paper's figure, if there is one."""
  paper = results.get("paper") or {}
  if "command" not in paper:  # none, or one that an older version stored
    return []
  content = [
    element("p", f"Run by {paper['origin']}."),
    element("p", "Our command for it:"),
    element("pre", element("code", paper["command_line"]), tabindex=0),
    _departures(paper["departures"]),
  ]
  if deviations := paper["deviations"]:
    lead = "Where that command differs from the published run:"
    listing = element("ul", *(element("li", text) for text in deviations))
    content += [element("p", lead), listing]
  if paper["reason"]:
    text = f"No run can be compared with it: {paper['reason']}."
    content.append(element("p", text))
  return [section("The paper's figure", *content)]


def _departures(found: Sequence[Departure]) -> Markup:
  if not found:
    return element("p", "This run has the configuration of that command.")
  rows = [(key, shown(value), _usual(usual)) for key, value, usual in found]
  caption = "Where this run differs from that command"
  return table(caption, ("key", "this run", "the command"), rows, "keys")


def _remark(key: str, value: Any, usual: Any) -> str:
  return f"{key}={shown(value)} (there {_usual(usual)})"


def _usual(value: Any) -> str:
  return "no such key" if value is None else shown(value)
