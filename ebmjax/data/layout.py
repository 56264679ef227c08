"""What a form of the official files of a data set is, for every format."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from ebmjax.data.arrays import Split


class Layout(NamedTuple):
  """One form in which the official files of a set may lie in a folder."""

  kind: str  # for people: "idx files"
  names: tuple[str, ...]  # of all the files, without ".gz"
  read: Callable[[Mapping[str, Path]], tuple[Split, Split]]  # {name: path} -> splits
  folder: str = ""  # the folder that unpacking `archive` makes
  archive: str = ""  # the official archive of these files, where they come in one
