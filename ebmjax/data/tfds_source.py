"""Reads a set that TFDS has prepared as array_record, and prepares a missing one.

Two preparations are read: our own (`ebmjax_<name>`), which keeps the official order and
is verified bit for bit; and the stock one of TFDS (`<name>`) if it is stored as
array_record, whose content is verified, but whose order is that of TFDS.
"""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ebmjax.data import tfds_prepare
from ebmjax.data.arrays import Pins, Split, check_pins, check_split
from ebmjax.data.spec import DatasetSpec
from ebmjax.errors import DataError, first_line
from ebmjax.types import Dataset

_BLOCK = 2000  # examples per read; reading one by one takes five times as long


class Prepared(NamedTuple):
  """A version folder with a complete set."""

  folder: Path  # <data_dir>/<name>/<version>
  ours: bool  # whether it has the index that restores the official order


def default_dir() -> str:
  """Returns TFDS' default folder without importing TFDS."""
  return os.environ.get("TFDS_DATA_DIR") or "~/tensorflow_datasets"


def find_prepared(spec: DatasetSpec, data_dir: Path) -> Prepared | None:
  """Finds our own prepared set, or else a stock one, or None."""
  own = tfds_prepare.own_folder(spec, data_dir)
  if tfds_prepare.is_prepared(own):
    return Prepared(own, ours=True)
  for folder in sorted((data_dir / spec.name).glob("*.*.*"), reverse=True):
    if tfds_prepare.is_prepared(folder) and any(folder.glob("*.array_record*")):
      return Prepared(folder, ours=False)
  return None


def load(spec: DatasetSpec, data_dir: Path, download: bool) -> Dataset:
  """Reads the set of TFDS; prepares a missing one if `download` allows it."""
  prepared = find_prepared(spec, data_dir)
  if prepared is None:
    if not download:
      raise DataError(
        f"TFDS has no array_record set of {spec.name} in {data_dir}, and "
        "config.data.download is false: set config.data.download=True, or set "
        "config.data.dir to a folder that has one."
      )
    folder = tfds_prepare.own_folder(spec, data_dir)
    tfds_prepare.prepare(spec, folder)
    prepared = Prepared(folder, ours=True)
  return read(spec, prepared)


def read(spec: DatasetSpec, prepared: Prepared) -> Dataset:
  """Reads a prepared set and verifies its size and content."""
  train = _read_split(spec, prepared, "train", spec.train)
  test = _read_split(spec, prepared, "test", spec.test)
  folder = prepared.folder
  source = f"{spec.name}, full, TFDS {folder.parent.name} {folder.name}"
  return spec.dataset(train, test, source, full=True)


def _read_split(spec: DatasetSpec, prepared: Prepared, name: str, pins: Pins) -> Split:
  """Reads one split of a prepared set, in the official order if that is stored."""
  remedy = f"delete {prepared.folder} and run again"
  where = f"the {name} split in {prepared.folder}"
  try:
    columns = read_columns(prepared, name)
  except ImportError as error:  # the set itself is fine
    raise DataError(
      f"{where} cannot be read ({error}): pip install array_record."
    ) from None
  except Exception as error:  # TFDS and array_record raise many types
    raise DataError(
      f"{where} cannot be read ({first_line(error)}): {remedy}."
    ) from None
  x, y = columns["image"], columns["label"]
  if x.shape[1:] == (*spec.image_shape, 1):
    x = x[..., 0]  # stock sets have an axis for the single channel
  if prepared.ours:
    order = _official_order(columns["index"], where, remedy)
    x, y = x[order], y[order]
  split = Split(x, y, where, where)
  split = check_split(split, spec.image_shape, spec.num_classes, remedy)
  check_pins(split, pins, ordered=prepared.ours, remedy=remedy)
  return split


def _official_order(index: np.ndarray, where: str, remedy: str) -> np.ndarray:
  """Returns the row numbers [N] sorted by index [N], which must be 0 to N - 1."""
  order = np.argsort(index, kind="stable")
  if not np.array_equal(index[order], np.arange(len(index))):
    raise DataError(f"{where} has lost the official order: {remedy}.")
  return order


def read_columns(prepared: Prepared, name: str) -> dict[str, np.ndarray]:
  """Reads the features of a split as arrays [N, ...], in the order on disk."""
  with tfds_prepare.quiet_tfds() as tfds:
    builder = tfds.builder_from_directory(prepared.folder)
    source = builder.as_data_source(split=name, file_format="array_record")
    keys = ("image", "label", "index") if prepared.ours else ("image", "label")
    columns: dict[str, np.ndarray] = {}
    for start in range(0, len(source), _BLOCK):
      stop = min(start + _BLOCK, len(source))
      block = source.__getitems__(list(range(start, stop)))
      for key in keys:
        values = np.asarray([example[key] for example in block])
        if values.dtype == object:  # array_record gives None for some lost records
          raise ValueError("examples are missing")
        if key not in columns:
          columns[key] = np.empty((len(source), *values.shape[1:]), values.dtype)
        columns[key][start:stop] = values
    return columns
