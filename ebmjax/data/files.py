"""Reads a data set from the official files, or one npz, in a folder of the user's.

A set of the official size must be the official set, bit for bit: anything else is an
error, because a damaged download is far likelier than a user's own set of exactly that
size. A set of any other size in the same format is the user's own, and is not `full`;
a format that does not tell its own length admits no other size.
"""

from pathlib import Path

from ebmjax.data import npz
from ebmjax.data.arrays import Split, check_pins, check_split
from ebmjax.data.official import REMEDY
from ebmjax.data.spec import DatasetSpec, Layout
from ebmjax.errors import DataError
from ebmjax.types import Dataset


def at_hand(spec: DatasetSpec, folder: Path) -> bool:
  """Returns whether a folder holds any file of the set, whole or not."""
  return bool(_find_files(spec, folder)[1]) or (folder / f"{spec.name}.npz").is_file()


def load(spec: DatasetSpec, folder: Path) -> Dataset:
  """Returns the set in a folder; official files go before an npz."""
  layout, paths = _find_files(spec, folder)
  npz_path = folder / f"{spec.name}.npz"
  if paths or not npz_path.is_file():
    _require_all(spec, folder, layout, paths)
    return build(spec, *layout.read(paths), kind=layout.kind)
  train, test = npz.read_splits(npz_path, ("_train", "_test"), REMEDY)
  return build(spec, train, test, kind="images in an npz file")


def build(spec: DatasetSpec, train: Split, test: Split, kind: str) -> Dataset:
  """Returns two splits as a verified data set whose `source` tells the kind of file."""
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
  """Returns the names a file may have on disk, the unpacked ones first."""
  plain = [name, name.replace("-idx", ".idx")]
  return plain + [f"{spelling}.gz" for spelling in plain]


def _find_files(spec: DatasetSpec, folder: Path) -> tuple[Layout, dict[str, Path]]:
  """Returns the layout of the official files in a folder, and the path of each file.

  Of several layouts it is the most complete one, the first of equals; where there is
  no official file, it is that of the downloads.
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
  """Returns the path of each file of a layout that is in a folder."""
  found: dict[str, Path] = {}
  for name in layout.names:
    for path in map(place.joinpath, _spellings(name)):
      if path.is_file():
        found.setdefault(name, path)
  return found


def _require_all(
  spec: DatasetSpec, folder: Path, layout: Layout, paths: dict[str, Path]
) -> None:
  """Raises where a file of a layout is missing, naming all that are."""
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
