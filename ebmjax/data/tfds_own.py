"""Reads any set that TFDS has prepared on disk, if it has an image and a label."""

import json
from pathlib import Path

import numpy as np

from ebmjax.data import tfds_prepare, tfds_source
from ebmjax.data.arrays import Split
from ebmjax.errors import DataError, first_line

_DEPTHS = ("", "*.*.*", "*/*.*.*", "*/*/*.*.*")  # version, set, config, data_dir


def find(folder: Path) -> Path | None:
  """Finds the version folder of the only prepared set in a folder, or None.

  If the set has several versions, this is the newest.
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
  """Reads the parts of a prepared set (training, test if any) and its class names.

  The examples are in the order of TFDS.
  """
  splits = [s["name"] for s in _described(folder)["splits"]]
  if "train" not in splits:
    raise DataError(
      f"{folder} has the splits {', '.join(splits)}, but none named train: set "
      "config.data.dir to a set that has one."
    )
  if not any(folder.glob("*.array_record*")):
    raise DataError(
      f"{folder} is not stored as array_record, so reading it needs TensorFlow: "
      "prepare the set again with file_format='array_record'."
    )
  parts = [_read_split(folder, s) for s in ("train", "test") if s in splits]
  return parts, _class_names(folder, parts[0].y)


def _read_split(folder: Path, name: str) -> Split:
  where = f"the {name} split in {folder}"
  try:
    prepared = tfds_source.Prepared(folder, ours=False)
    columns = tfds_source.read_columns(prepared, name)
  except KeyError as error:
    raise DataError(
      f"{where} has no {error.args[0]}: give a set whose examples have an image and a "
      "label."
    ) from None
  except Exception as error:  # TFDS and array_record raise many types
    raise DataError(
      f"{where} cannot be read ({first_line(error)}): give a complete set whose images "
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
  """Returns the names of the labels that occur, or None if TFDS has no names."""
  path = folder / "label.labels.txt"
  if not path.is_file():
    return None
  names = path.read_text().splitlines()
  if y.min() < 0 or y.max() >= len(names):  # some sets have a number for "no label"
    return None
  return tuple(names[label] for label in np.unique(y))
