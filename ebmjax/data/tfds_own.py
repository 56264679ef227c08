"""Reads any set that TFDS has prepared on the disk, if it has an image and a label."""

import json
from pathlib import Path

import numpy as np

from ebmjax.data import tfds_prepare, tfds_source
from ebmjax.data.arrays import Split
from ebmjax.errors import DataError, first_line

_DEPTHS = ("", "*.*.*", "*/*.*.*", "*/*/*.*.*")  # version, set, config, data_dir


def find(folder: Path) -> Path | None:
  """Returns the version folder of the only prepared set in a folder, or None.

  Of several versions of one set it is the newest.
  """
  for pattern in _DEPTHS:
    places = sorted(folder.glob(pattern)) if pattern else [folder]
    found = [place for place in places if tfds_prepare.is_prepared(place)]
    if len({place.parent for place in found}) > 1:
      names = ", ".join(str(place.relative_to(folder)) for place in found)
      raise DataError(
        f"{folder} holds several sets of TFDS ({names}): set config.data.dir to one of "
        "them."
      )
    if found:
      return found[-1]
  return None


def read(folder: Path) -> tuple[list[Split], tuple[str, ...] | None]:
  """Returns the training part of a prepared set, its test part if any, and its names.

  The order of the examples is TFDS' own.
  """
  splits = [s["name"] for s in _described(folder)["splits"]]
  if "train" not in splits:
    raise DataError(
      f"{folder} has the splits {', '.join(splits)}, and no split named train: give a "
      "set with one by config.data.dir."
    )
  if not any(folder.glob("*.array_record*")):
    raise DataError(
      f"{folder} is not stored as array_record, so reading it needs TensorFlow: "
      "prepare the set again with file_format='array_record'."
    )
  parts = [_read_split(folder, s) for s in ("train", "test") if s in splits]
  return parts, _class_names(folder, parts[0].y)


def _read_split(folder: Path, name: str) -> Split:
  """Returns the images and labels of one split."""
  where = f"the {name} split in {folder}"
  try:
    prepared = tfds_source.Prepared(folder, ours=False)
    columns = tfds_source.read_columns(prepared, name)
  except KeyError as error:
    raise DataError(
      f"{where} has no {error.args[0]}: give a set whose examples have an image and a "
      "label."
    ) from None
  except Exception as error:  # TFDS and array_record raise many kinds
    raise DataError(
      f"{where} cannot be read ({first_line(error)}): give a whole set whose images "
      "have one size."
    ) from None
  return Split(columns["image"], columns["label"], where, where)


def _described(folder: Path) -> dict:
  try:
    return json.loads((folder / "dataset_info.json").read_text())
  except ValueError as error:
    raise DataError(
      f"{folder} is not a complete TFDS set ({error}): prepare it again."
    ) from None


def _class_names(folder: Path, y: np.ndarray) -> tuple[str, ...] | None:
  """Returns the names of the labels that occur, where TFDS has names for them."""
  path = folder / "label.labels.txt"
  if not path.is_file():
    return None
  names = path.read_text().splitlines()
  if y.min() < 0 or y.max() >= len(names):  # some sets mark what has no label
    return None
  return tuple(names[label] for label in np.unique(y))
