"""Loads the data set of a configuration, complete and verified, or raises."""

import sys
import textwrap
from inspect import signature
from pathlib import Path
from typing import Any, TextIO

from ebmjax.data import files, held_out, selection, tfds_prepare, tfds_source
from ebmjax.data.arrays import check_classes, digest
from ebmjax.data.assembly import from_arrays
from ebmjax.data.moments import statistics
from ebmjax.data.registry import DATASETS, find
from ebmjax.data.spec import DatasetSpec
from ebmjax.errors import DataError
from ebmjax.paths import expand
from ebmjax.types import Dataset

SOURCES = ("auto", "tfds", "files", "embedded")

__all__ = [
  "DATASETS",
  "SOURCES",
  "DatasetSpec",
  "banner",
  "digest",
  "find",
  "from_arrays",
  "load",
  "statistics",
]


def load(config: Any) -> Dataset:
  """Loads the data set that `config` names.

  Attributes of config: `name`; `source`, where to look; `dir`, the folder with the
  files or the TFDS sets ("": TFDS' default folder, and no folder of files);
  `require_full`, to accept only the full official set. Optional are `download` (True),
  which permits downloads; `validation` (0), the number of training images of each class
  that replace the test images; `images` (0: all), how many of the others to train on;
  `memorise` (False), which gives them random labels and also tests on them; and the
  parameters of the set's own `load`.
  """
  spec = find(config.name)
  try:
    dataset = _load_from(spec, config)
  except OSError as error:
    raise DataError(
      f"config.data.dir cannot be read ({error}): make it a folder that can be read."
    ) from None
  loaded = dataset
  validation = int(getattr(config, "validation", 0))
  if validation:
    dataset = held_out.hold_out(dataset, validation)
  dataset = selection.choose(
    dataset,
    images=int(getattr(config, "images", 0)),
    memorise=getattr(config, "memorise", False),
  )
  if config.require_full and not dataset.full:
    raise DataError(_not_full(spec, f"this is {dataset.source}"))
  if not loaded.full:
    check_classes(loaded)
  return dataset


def _load_from(spec: DatasetSpec, config: Any) -> Dataset:
  """Loads the set from `config.source`, or by the spec's own `load`."""
  if config.source not in SOURCES:
    raise DataError(
      f"config.data.source must be one of {', '.join(SOURCES)}, but is "
      f"{config.source!r}: choose one of them."
    )
  if config.source not in ("auto", *spec.sources):
    raise DataError(
      f"{spec.name} is not available from config.data.source={config.source}: set it "
      f"to {' or '.join(('auto', *spec.sources))}."
    )
  if spec.load is not None:
    return _make(spec, config)
  if not spec.layouts:
    raise DataError(
      f"the DatasetSpec {config.name} has neither load nor layouts: give it a load."
    )
  download = bool(getattr(config, "download", True))
  if config.source == "embedded" and spec.embedded is not None:
    return spec.embedded(spec)
  if config.source == "files":
    return files.load(spec, _files_folder(config.dir))
  if config.source == "tfds":
    return tfds_source.load(spec, _tfds_folder(config.dir), download)
  return _load_best(spec, config.dir, download, config.require_full)


def _make(spec: DatasetSpec, config: Any) -> Dataset:
  """Calls a spec's own `load` and checks what it returns against the spec."""
  assert spec.load is not None
  known = [name for name in signature(spec.load).parameters if hasattr(config, name)]
  made = spec.load(**{name: getattr(config, name) for name in known})
  if isinstance(made, Dataset):
    return made._replace(class_names=made.class_names or spec.class_names)
  dataset = from_arrays(*made, name=spec.name, class_names=spec.class_names)
  for stated, found, what in (
    (spec.image_shape, dataset.shape, "image_shape"),
    (spec.num_classes, dataset.num_classes, "num_classes"),
  ):
    if stated is not None and stated != found:
      raise DataError(
        f"{config.name} states {what}={stated}, but its load returns {found}: correct "
        "the DatasetSpec or its load."
      )
  return dataset


def banner(dataset: Dataset, reason: str, stream: TextIO | None = None) -> None:
  """Prints, in a conspicuous frame, that a subset replaces the full set."""
  count = len(dataset.train_x) + len(dataset.test_x)
  lines = [
    f"WARNING: ONLY {count:,} IMAGES OF {dataset.name.upper()}, NOT THE FULL SET.",
    "Results of this run are NOT comparable with the paper.",
    f"Used:     {dataset.source}",
    f"Because:  {reason}",
    "Full set: go online, or put the official files into a folder and set "
    "config.data.source=files and config.data.dir to it; then run again with another "
    "--workdir.",
    "Set config.data.require_full=True to stop here instead of using the subset.",
  ]
  rule, indent = "!" * 80, "!!" + " " * 11
  fill = textwrap.TextWrapper(80, "!! ", indent, break_long_words=False).fill
  text = "\n".join([rule, *map(fill, lines), rule])
  print(f"\n{text}\n", file=stream or sys.stderr, flush=True)


def _load_best(
  spec: DatasetSpec, folder: str, download: bool, require_full: bool
) -> Dataset:
  """Loads the set from disk or by download, or else the embedded subset.

  The subset, with a banner, only replaces a set that is not available: damaged files
  raise.
  """
  if folder and files.at_hand(spec, _files_folder(folder)):
    return files.load(spec, _files_folder(folder))
  if "tfds" not in spec.sources:
    raise DataError(_not_full(spec, "none of its files is in config.data.dir"))
  data_dir = _tfds_folder(folder)
  prepared = tfds_source.find_prepared(spec, data_dir)
  if prepared is not None:
    return tfds_source.read(spec, prepared)
  reason = f"no full set is in {data_dir}, and config.data.download is false"
  if download:
    try:
      return tfds_source.load(spec, data_dir, download)
    except tfds_prepare.UnavailableError as error:
      reason = f"no full set is in {data_dir}, and {error.problem}"
  if require_full or spec.embedded is None:
    raise DataError(_not_full(spec, reason))
  dataset = spec.embedded(spec)
  banner(dataset, reason)
  return dataset


def _files_folder(folder: str) -> Path:
  if not folder:
    raise DataError(
      "config.data.source=files needs the folder of the files, but config.data.dir is "
      '"": set config.data.dir.'
    )
  return expand(folder)


def _tfds_folder(folder: str) -> Path:
  return expand(folder or tfds_source.default_dir())


def _not_full(spec: DatasetSpec, reason: str) -> str:
  if "tfds" not in spec.sources:
    remedy = spec.by_hand if spec.layouts else "set config.data.require_full=False"
    return f"the full {spec.name} set is required, but {reason}: {remedy}."
  return (
    f"the full {spec.name} set is required, but {reason}: go online and set "
    f"config.data.source=tfds, or {spec.by_hand}."
  )
