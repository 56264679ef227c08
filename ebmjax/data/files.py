"""Reads a data set from official files, or from an npz, in a folder of the user.

A set of the official size must be the official set, bit for bit: a damaged download is
far likelier than a user's own set of exactly that size. A set of any other size in the
same format is the user's own and not `full`; formats that do not state their length
admit only the official size.
"""

from pathlib import Path

from ebmjax.data import npz
from ebmjax.data.arrays import Split, check_pins, check_split
from ebmjax.data.official import REMEDY
from ebmjax.data.spec import DatasetSpec, Layout
from ebmjax.errors import DataError
from ebmjax.types import Dataset


def at_hand(spec: DatasetSpec, folder: Path) -> bool:
  """Returns whether a folder holds any file of the set, even an incomplete one."""
  return bool(_find_files(spec, folder)[1]) or (folder / f"{spec.name}.npz").is_file()


def load(spec: DatasetSpec, folder: Path) -> Dataset:
  """Loads the set in a folder, from official files if there are any, else an npz."""
  layout, paths = _find_files(spec, folder)
  npz_path = folder / f"{spec.name}.npz"
  if paths or not npz_path.is_file():
    _require_all(spec, folder, layout, paths)
    return build(spec, *layout.read(paths), kind=layout.kind)
  train, test = npz.read_splits(npz_path, ("_train", "_test"), REMEDY)
  return build(spec, train, test, kind="images in an npz file")


def build(spec: DatasetSpec, train: Split, test: Split, kind: str) -> Dataset:
  """Verifies two splits and makes a data set whose `source` states the file kind."""
  train = check_split(train, spec.image_shape, spec.num_classes, REMEDY)
  test = check_split(test, spec.image_shape, spec.num_classes, REMEDY)
  full = (len(train.x), len(test.x)) == (spec.train.size, spec.test.size)
  if full:
    check_pins(train, spec.train, ordered=True, remedy=REMEDY)
    check_pins(test, spec.test, ordered=True, remedy=REMEDY)
    order = "" if spec.train.x else ", in an order that is not verified"
    source = f"{spec.name}, full, official {kind}{order}"
  else:
    sizes = f"{len(train.x)} training and {len(test.x)} test images"
    source = f"{spec.name}, not the official set: {sizes} of the user's own {kind}"
  return spec.dataset(train, test, source, full=full)


def _spellings(name: str) -> list[str]:
  """Lists the names that a file may have on disk, unpacked ones first."""
  plain = [name, name.replace("-idx", ".idx")]
  return plain + [f"{spelling}.gz" for spelling in plain]


def _find_files(spec: DatasetSpec, folder: Path) -> tuple[Layout, dict[str, Path]]:
  """Finds the layout of the official files in a folder, and the path of each file.

  This is the first of the most complete layouts, or that of the downloads if there is
  no official file.
  """
  best = (0.0, spec.downloaded, dict[str, Path]())
  for layout in spec.layouts:
    for place in dict.fromkeys((folder, folder / layout.folder)):
      paths = _find_layout(layout, place)
      share = len(paths) / len(layout.names)
      if share > best[0]:
        best = (share, layout, paths)
  return best[1:]


def _find_layout(layout: Layout, place: Path) -> dict[str, Path]:
  found: dict[str, Path] = {}
  for name in layout.names:
    for path in map(place.joinpath, _spellings(name)):
      if path.is_file():
        found.setdefault(name, path)
  return found


def _require_all(
  spec: DatasetSpec, folder: Path, layout: Layout, paths: dict[str, Path]
) -> None:
  """Raises if files of a layout are missing, and names all of them."""
  missing = [name for name in layout.names if name not in paths]
  if not missing:
    return
  if not folder.is_dir():
    raise DataError(
      f"config.data.dir must be the folder with the files of {spec.name}, but {folder} "
      "is not a folder: correct config.data.dir."
    )
  get = f"unpack {layout.archive}" if layout.archive else "download what is missing"
  raise DataError(
    f"{folder} lacks {', '.join(missing)} (plain or .gz): {get} from {spec.url} into "
    f"it, or put {spec.name}.npz there."
  )
