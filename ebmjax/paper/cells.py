"""The cells of the paper's tables, read from cells.json.

Each record says what the paper prints, the command here that measures it, who ran the
published figure and where the command differs from that run.
"""

import functools
import json
from importlib import resources
from typing import Any, NamedTuple


class Cell(NamedTuple):
  """A published figure and what reproduces it."""

  id: str
  table: str
  row: str  # the paper's name of the method
  dataset: str
  setting: str
  accuracy: float  # percent
  sem: float | None
  seeds: int  # the paper's number of them
  command: str  # FILE[:variants], to be given as --config
  origin: str = "unknown"  # who ran it
  deviations: tuple[str, ...] = ()  # where the command differs from the published run
  comparable: bool = True
  reason: str = ""  # why not comparable
  sem_doubtful: bool = False  # probably printed as a fraction: no verdict rests on it
  floor: float | None = None  # percent of a predictor that knows the last task alone

  @property
  def short_id(self) -> str:
    """Returns the id within its table."""
    return self.id.split("/", 1)[1]


class PaperClaim(NamedTuple):
  """A sentence of the paper: in each pair of cells the first is above the second."""

  claim: str
  pairs: tuple[tuple[str, str], ...]  # ids


@functools.cache
def all_cells() -> tuple[Cell, ...]:
  """Returns the 115 cells of the tables and the two of the capacity study."""
  return tuple(
    Cell(**record | {"deviations": tuple(record.get("deviations", ()))})
    for record in _content()["cells"]
  )


@functools.cache
def claims() -> tuple[PaperClaim, ...]:
  """Returns the paper's claims, each as pairs of cells."""
  return tuple(
    PaperClaim(record["claim"], tuple((a, b) for a, b in record["pairs"]))
    for record in _content()["claims"]
  )


@functools.cache
def _content() -> dict[str, Any]:
  text = resources.files("ebmjax.paper").joinpath("cells.json").read_text("utf-8")
  content: dict[str, Any] = json.loads(text)
  return content
