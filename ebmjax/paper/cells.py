"""The cells of the paper's tables, and of the table of replay-free methods, as data.

Each record says what was published and by whom, which command here measures it, and
how that command differs from the published run.
"""

import functools
import json
from importlib import resources
from typing import Any, NamedTuple

# The digest of the pre-trained weights behind the paper's figures on CIFAR-100.
PUBLISHED_TRUNK = "8194a2c351392103"
REPLAY_FREE = "replay_free"  # our own table, not one of the paper's
CAPACITY = "capacity"  # the table of accuracies on training images


class Cell(NamedTuple):
  """A published figure and what reproduces it."""

  id: str
  table: str
  row: str  # the paper's name of the method
  dataset: str
  accuracy: float | None  # percent; None: not published
  sem: float | None
  seeds: int  # of the published figure; in our own table, how many are asked for
  command: str  # FILE[:variants], to be given as --config
  origin: str = "unknown"  # who ran it
  deviations: tuple[str, ...] = ()  # where the command differs from the published run
  reason: str = ""  # why not comparable; empty: comparable
  sem_doubtful: bool = False  # probably printed as a fraction: no verdict rests on it
  note: str = ""  # beside the verdict, such as "see 3" of BENCHMARKS.md
  floor: float | None = None  # percent, of a predictor that knows only the last task

  @property
  def short_id(self) -> str:
    """The id within its table."""
    return self.id.split("/", 1)[1]


class PaperClaim(NamedTuple):
  """A sentence of the paper: in each pair of cells the first is above the second."""

  claim: str
  pairs: tuple[tuple[str, str], ...]  # ids


@functools.cache
def all_cells() -> tuple[Cell, ...]:
  """Returns the paper's 115 cells of the tables and two of the capacity study."""
  return tuple(map(_cell, _content("cells")["cells"]))


@functools.cache
def every_cell() -> tuple[Cell, ...]:
  """Returns the paper's cells and those of the replay-free methods."""
  return (*all_cells(), *map(_cell, _content(REPLAY_FREE)["cells"]))


def _cell(record: dict[str, Any]) -> Cell:
  return Cell(**record | {"deviations": tuple(record.get("deviations", ()))})


@functools.cache
def claims() -> tuple[PaperClaim, ...]:
  """Returns the paper's claims, each as pairs of cells."""
  return tuple(
    PaperClaim(record["claim"], tuple((a, b) for a, b in record["pairs"]))
    for record in _content("cells")["claims"]
  )


@functools.cache
def _content(name: str) -> dict[str, Any]:
  text = resources.files("ebmjax.paper").joinpath(f"{name}.json").read_text("utf-8")
  content: dict[str, Any] = json.loads(text)
  return content
