"""Loads the data set a configuration asks for, whole and verified, or raises."""

import sys
import textwrap
from pathlib import Path
from typing import Any, TextIO

from ebmjax.data import embedded, files, generated, held_out, tfds_prepare, tfds_source
from ebmjax.data.arrays import check_classes, digest
from ebmjax.data.registry import DATASETS, DatasetInfo, find
from ebmjax.errors import DataError
from ebmjax.types import Dataset

SOURCES = ("auto", "tfds", "files", "embedded")

__all__ = ["DATASETS", "SOURCES", "DatasetInfo", "banner", "digest", "load"]


def load(config: Any) -> Dataset:
  """Returns the data set that `config` names.

  Attributes of config: `name`; `source`, where to look; `dir`, the folder with the
  files or the TFDS sets ("" is TFDS' default folder, and no folder of files);
  `require_full`, to accept nothing but the full official set. May be absent: `download`
  (True), which allows the network; `validation` (0), how many training images of each
  class take the place of the test images; `images` (0: all), how many of the others to
  train on; and `memorise` (False), which puts random labels on them and makes them the
  test images.
  """
  info = find(config.name)
  try:
    dataset = _load_from(info, config)
  except OSError as error:
    raise DataError(
      f"config.data.dir cannot be read ({error}): make it a folder that can be read."
    ) from None
  loaded = dataset
  validation = int(getattr(config, "validation", 0))
  if validation:
    dataset = held_out.hold_out(dataset, validation)
  dataset = generated.choose(
    dataset, images=_images(config), memorise=getattr(config, "memorise", False)
  )
  if config.require_full and not dataset.full:
    raise DataError(_not_full(info, f"this is {dataset.source}"))
  if not loaded.full:
    check_classes(loaded)
  return dataset


def _load_from(info: DatasetInfo, config: Any) -> Dataset:
  """Returns the data set of the source that `config` names."""
  if info.generated:
    return generated.load(info, _images(config))
  download = bool(getattr(config, "download", True))
  if config.source == "embedded":
    return embedded.load(info)
  if config.source == "files":
    return files.load(info, _files_folder(config.dir))
  if config.source == "tfds":
    return tfds_source.load(info, _tfds_folder(config.dir), download)
  if config.source == "auto":
    return _load_best(info, config.dir, download, config.require_full)
  raise DataError(
    f"config.data.source must be one of {', '.join(SOURCES)}, but is "
    f"{config.source!r}: choose one of them."
  )


def _images(config: Any) -> int:
  """Returns how many training images are asked for; 0: all."""
  return int(getattr(config, "images", 0))


def banner(dataset: Dataset, reason: str, stream: TextIO | None = None) -> None:
  """Prints, so that nobody can miss it, that a subset stands in for the full set."""
  count = len(dataset.train_x) + len(dataset.test_x)
  lines = [
    f"WARNING: ONLY {count:,} IMAGES OF {dataset.name.upper()}, NOT THE FULL SET.",
    "Results of this run are NOT comparable with the paper.",
    f"Used:     {dataset.source}",
    f"Because:  {reason}",
    "Full set: go online, or put the official files into a folder and set "
    "config.data.source=files and config.data.dir to it; then run again with another "
    "--workdir.",
    "Set config.data.require_full=True to stop here instead of going on with the "
    "subset.",
  ]
  rule = "!" * 80
  wrapped = [part for line in lines for part in _wrap(line)]
  text = "\n".join([rule, *wrapped, rule])
  print(f"\n{text}\n", file=stream or sys.stderr, flush=True)


def _load_best(
  info: DatasetInfo, folder: str, download: bool, require_full: bool
) -> Dataset:
  """Returns the set at hand or for download, or else the embedded one with a banner.

  Only a set that cannot be had leads to the embedded one: damaged files raise.
  """
  if folder and files.at_hand(info, _files_folder(folder)):
    return files.load(info, _files_folder(folder))
  data_dir = _tfds_folder(folder)
  prepared = tfds_source.find_prepared(info, data_dir)
  if prepared is not None:
    return tfds_source.read(info, prepared)
  reason = f"no full set is in {data_dir}, and config.data.download is false"
  if download:
    try:
      return tfds_source.load(info, data_dir, download)
    except tfds_prepare.UnavailableError as error:
      reason = f"no full set is in {data_dir}, and {error.problem}"
  if require_full or info.name != "mnist":
    raise DataError(_not_full(info, reason))
  dataset = embedded.load(info)
  banner(dataset, reason)
  return dataset


def _wrap(line: str) -> list[str]:
  """Returns a line of the banner as lines of at most 80 columns."""
  indent = "!!" + " " * 11
  return textwrap.wrap(
    line,
    width=80,
    initial_indent="!! ",
    subsequent_indent=indent,
    break_long_words=False,
  )


def _files_folder(folder: str) -> Path:
  """Returns the folder of the files, which has no default."""
  if not folder:
    raise DataError(
      "config.data.source=files needs the folder of the files, but config.data.dir is "
      '"": set config.data.dir.'
    )
  return _expanded(folder)


def _tfds_folder(folder: str) -> Path:
  """Returns the folder of the TFDS sets."""
  return _expanded(folder or tfds_source.default_dir())


def _expanded(folder: str) -> Path:
  try:
    return Path(folder).expanduser()
  except RuntimeError as error:  # the home of a user that there is not
    raise DataError(
      f"the folder {folder!r} is in the home of an unknown user: set config.data.dir "
      "to one that exists."
    ) from error


def _not_full(info: DatasetInfo, reason: str) -> str:
  """Returns the sentence for a full set that cannot be had."""
  return (
    f"the full {info.name} set is required, but {reason}: go online and set "
    f"config.data.source=tfds, or {info.by_hand}."
  )
