"""What is known about a data set before it is read.

A new data set is one file with a `DatasetSpec`, and one line in `registry.DATASETS`. A
set of another package needs no line: it is named by its import path.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ebmjax.config.schema import Key, keys_of
from ebmjax.data.arrays import Pins, Split
from ebmjax.types import Dataset

_UNPINNED = Pins(size=0, x="", y="", rows="")


class Download(NamedTuple):
  """An official file as the server has it, compressed."""

  size: int  # bytes
  sha256: str


class Layout(NamedTuple):
  """One form that the official files of a set may have in a folder."""

  kind: str  # for people: "idx files"
  names: tuple[str, ...]  # of all the files, without ".gz"
  read: Callable[[Mapping[str, Path]], tuple[Split, Split]]  # {name: path} -> splits
  folder: str = ""  # the folder that unpacking `archive` makes
  archive: str = ""  # the official archive with these files, if there is one


class DatasetSpec(NamedTuple):
  """A data set: its properties and its sources.

  A set with official files has `train`, `test`, `url`, `downloads` and `layouts`. Any
  other set has `load`, a function whose keyword-only parameters are keys of
  config.data. It returns arrays (train_x, train_y, test_x, test_y) in any form that
  `from_arrays` accepts, or a whole Dataset.
  """

  name: str
  title: str  # for people: "CIFAR-10"
  # Any of the next four may be None: not known until the set is loaded. Their types are
  # Any, because code for official sets uses them without a check.
  image_shape: Any = None  # tuple[int, ...]: (H, W), (H, W, 3) or (F,)
  num_classes: Any = None  # int
  mean: Any = None  # tuple[float, ...], of each channel, of values from 0 to 1
  std: Any = None  # tuple[float, ...]
  class_names: tuple[str, ...] = ()  # by class; (): its number
  sources: tuple[str, ...] = ()  # values of config.data.source besides "auto"
  train: Pins = _UNPINNED
  test: Pins = _UNPINNED
  url: str = ""  # the folder with `downloads`
  mirrors: tuple[str, ...] = ()  # other folders with the same files
  downloads: dict[str, Download] = {}  # noqa: RUF012  by file name, never changed
  layouts: tuple[Layout, ...] = ()
  embedded: Callable[[Any], Dataset] | None = (
    None  # (spec) -> a subset that replaces it
  )
  load: Callable[..., Any] | None = None
  generated: bool = False  # nothing is stored: the network generates the images
  version: int = 1  # of the arrays; results of different versions are not comparable

  @property
  def keys(self) -> dict[str, Key]:
    """Returns the keys of config.data that `load` takes."""
    return {} if self.load is None else keys_of(self.load)

  def dataset(self, train: Split, test: Split, source: str, *, full: bool) -> Dataset:
    """Makes this set of two checked splits."""
    return Dataset(
      self.name,
      source,
      full,
      *(train.x, train.y, test.x, test.y),
      num_classes=self.num_classes,
      class_names=self.class_names,
    )

  @property
  def downloaded(self) -> Layout:
    """Returns the layout of the downloads, or else the first layout."""
    names = {name.removesuffix(".gz") for name in self.downloads}
    forms = [layout for layout in self.layouts if set(layout.names) == names]
    return [*forms, *self.layouts][0]

  @property
  def by_hand(self) -> str:
    """Returns how to get the set by hand, as part of a sentence."""
    get = f"download {', '.join(self.downloads)} from {self.url}"
    if not self.downloads:
      get = f"put {', '.join(self.downloaded.names)}"
    return (
      f"{get} into a folder and set config.data.source=files and config.data.dir to it"
    )
