"""What a figure is: the runs that it needs, and how it is drawn from them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ebmjax.paper.commands import PROBLEM
from ebmjax.report.history import History

if TYPE_CHECKING:
  from matplotlib.figure import Figure


# What a figure needs of a run: only its final accuracies, its last evaluation, those at
# the ends of tasks, or those within tasks too.
Needs = Literal["final", "last", "ends", "within"]
STREAMS = {"split": "splitmnist", "permuted": "permmnist"}
VARIANTS = {"SBC": "sbc", "SBC*": "contrastive,sbc", "EBM": ""}
SPELLED = {"SBC*": "SBC with the contrastive objective (SBC*)"}


class Role(NamedTuple):
  """A place in a figure, for runs that share some keys with one of our commands."""

  name: str  # unique in the figure, such as "SBC"
  description: str  # "SBC on split MNIST"
  # FILE[:variants], or {value of `split_by`: FILE[:variants]}: then only these values
  # count, and on full data only runs of exactly the command's configuration.
  command: str | Mapping[Any, str]
  make: str = ""  # what makes a run, without --workdir; "": `command` alone
  folder: str = ""  # the name of the run's folder; "": the default of `command`
  split_by: str = ""  # a key with a run for each of its values; "": a single run
  keys: tuple[str, ...] = (*PROBLEM, "objective")  # shared, except `split_by`

  @property
  def values(self) -> tuple[Any, ...]:
    """The values of `split_by` that count; () for all."""
    return () if isinstance(self.command, str) else tuple(self.command)

  def file(self, value: Any) -> str:
    """Returns FILE[:variants] of runs whose key `split_by` has this value."""
    return self.command if isinstance(self.command, str) else self.command[value]


def mnist(network: str, stream: str, flags: str = "") -> Role:
  """Returns the role of a network ("SBC", "SBC*", "EBM") on a stream of MNIST.

  `flags` are added to the command that makes its run.
  """
  command = config_file(STREAMS[stream], VARIANTS[network])
  return Role(
    name=f"{network}, {stream}",
    description=f"{SPELLED.get(network, network)} on {stream} MNIST",
    command=command,
    make=f"python -m ebmjax.main --config={command}{flags}",
  )


def config_file(name: str, variants: str) -> str:
  """Returns FILE[:variants], such as configs/splitmnist.py:sbc."""
  return f"configs/{name}.py" + (f":{variants}" if variants else "")


class Run(NamedTuple):
  """Finished runs that differ in their seeds alone, pooled seed by seed."""

  paths: tuple[Path, ...]
  config: dict[str, Any]  # nested
  source: str  # of the data
  history: History  # of all seeds, as much of it as the figure needs
  per_seed: np.ndarray  # [R], the final average accuracy in percent
  value: Any  # of the role's key `split_by`
  differences: tuple[str, ...]  # from the role's command: "stream.iterations=30"
  partial: bool  # trained on part of the data
  budget: dict[str, int] | None = None  # of a seed; None: not known


Runs = Mapping[str, tuple[Run, ...]]  # by the names of roles


class FigureSpec(NamedTuple):
  """A figure that can be drawn from runs."""

  title: str
  caption: str
  roles: tuple[Role, ...]
  draw: "Callable[[Runs], Figure]"
  needs: Needs = "ends"
  allow_missing: bool = False  # whether some of its runs may be missing
