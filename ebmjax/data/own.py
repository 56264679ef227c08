"""The user's own data: an npz file, images by class, or a set prepared by TFDS."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from ebmjax.config.schema import Range
from ebmjax.data import image_folder, npz, tfds_own
from ebmjax.data.arrays import Split
from ebmjax.data.assembly import assemble
from ebmjax.data.spec import DatasetSpec
from ebmjax.errors import DataError
from ebmjax.paths import expand
from ebmjax.types import Dataset

_KINDS = (
  "an npz file, a folder with one, a folder of images by class, or a set prepared by "
  "TFDS"
)
_REMEDY = "write it again with np.savez"


def load(
  *,
  dir: Annotated[
    str, "an npz file, a folder with one, or a folder of images by class"
  ] = "",
  range: Annotated[
    Sequence[float], "values of black and white; (): 0..1 or 0..255, whichever fits"
  ] = (),
  test_share: Annotated[
    float,
    Range(above=0.0, below=1.0),
    "share of each class to test on, if there is no test part",
  ] = 0.2,
) -> Dataset:
  """Loads the data in `dir`, named after its file or folder.

  `range` and `test_share` are as in `from_arrays`. A large npz with a test part stays
  on disk; without one, both parts are copied into memory.
  """
  if not dir:
    raise DataError(
      f"config.data.name=own needs config.data.dir, and it is not set: give {_KINDS}."
    )
  path = expand(dir).resolve()
  if not path.exists():
    raise DataError(f"{path} does not exist: set config.data.dir to {_KINDS}.")
  parts, name, origin, class_names = _read(path)
  return assemble(
    parts,
    name=name,
    origin=origin,
    class_names=class_names,
    test_share=test_share,
    value_range=range,
  )


OWN = DatasetSpec(name="own", title="own data", sources=("files",), load=load)


def _read(path: Path) -> tuple[list[Split], str, str, tuple[str, ...] | None]:
  """Reads the data at `path`; returns its parts, name, origin and class names."""
  if path.is_file():
    if path.suffix != ".npz":
      raise DataError(f"{path} is not an npz file: set config.data.dir to {_KINDS}.")
    return _read_npz(path), path.stem, f"the user's own {path.name}", None
  prepared = tfds_own.find(path)
  if prepared is not None:
    parts, class_names = tfds_own.read(prepared)
    name = prepared.parent.name
    return parts, name, f"TFDS {name} {prepared.name}", class_names
  archives = sorted(path.glob("*.npz"))
  if len(archives) > 1:
    raise DataError(
      f"{path} holds several npz files ({', '.join(p.name for p in archives)}): set "
      "config.data.dir to one of them."
    )
  if archives:
    return _read(archives[0])
  return image_folder.read(path), path.name, "the user's own folder of images", None


def _read_npz(path: Path) -> list[Split]:
  """Reads the training part of an npz file and, if it has one, the test part."""
  names = npz.names(path, _REMEDY)
  endings = ["_train" if "x_train" in names else ""]
  if "x_test" in names or "y_test" in names:
    endings.append("_test")
  form = "x_train and y_train (and x_test, y_test), or x and y"
  return npz.read_splits(path, endings, _REMEDY, form)
