"""What a figure is: the runs that it needs, and how it is drawn from them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ebmjax.report.history import History

if TYPE_CHECKING:
  from matplotlib.figure import Figure


# What a figure shows of a run: its final accuracies alone, its evaluations at the ends
# of tasks, or those within tasks too.
Shown = Literal["final", "ends", "within"]
Finished = tuple[Path, dict[str, Any]]  # where a run's results come from; results.json


class Role(NamedTuple):
  """A part that runs play in a figure: those whose configuration has these values."""

  name: str  # unlike all others of the figure, such as "SBC"
  says: str  # "SBC on split MNIST"
  keys: Mapping[str, Any]  # what a run must have: {"stream.tasks": 5}
  # FILE[:variants] that a run had best be of, or {value of `apart`: FILE[:variants]};
  # then those values alone count.
  chosen: str | Mapping[Any, str]
  make: str  # the command that makes it, without the workdir
  folder: str  # where under the folder of runs
  apart: str = ""  # a key by whose values runs are kept apart; "": a single run plays
  generated: bool = False  # images are drawn, so there is no full set to ask for
  exact: bool = False  # a run on the full data that departs from `chosen` is left out

  @property
  def values(self) -> tuple[Any, ...]:
    """Returns the values of `apart` that count, () for all."""
    return () if isinstance(self.chosen, str) else tuple(self.chosen)

  def file(self, value: Any) -> str:
    """Returns FILE[:variants] of runs whose key `apart` has this value."""
    return self.chosen if isinstance(self.chosen, str) else self.chosen[value]


class Run(NamedTuple):
  """A finished run, or several that differ in their seeds alone, as one."""

  paths: tuple[Path, ...]
  results: dict[str, Any]  # of the first; its seeds alone
  history: History  # of all seeds, as much of it as the figure shows
  per_seed: np.ndarray  # [R], the final average accuracy in percent
  value: Any  # of the role's key `apart`
  departures: tuple[str, ...]  # from the role's file: "stream.iterations=30"
  partial: bool  # trained on part of the data


Runs = Mapping[str, tuple[Run, ...]]  # by the names of roles


class FigureSpec(NamedTuple):
  """A figure that can be drawn from runs."""

  title: str
  caption: str
  roles: tuple[Role, ...]
  draw: "Callable[[Runs], Figure]"
  shown: Shown = "ends"
  some: bool = False  # can do without some of its runs
