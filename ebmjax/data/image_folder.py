"""Reads a folder of image files by class: train/CLASS/*, test/CLASS/*, or CLASS/*."""

from pathlib import Path
from typing import Any

import numpy as np

from ebmjax.data.arrays import Split
from ebmjax.errors import DataError, first_line

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
_LAYOUT = "train/CLASS/*.png, or CLASS/*.png"
_GREY = ("1", "L", "LA")
_COLOUR = ("RGB", "RGBA", "P", "PA", "CMYK", "YCbCr", "HSV", "LAB")


def read(folder: Path) -> list[Split]:
  """Reads the training part of a folder and, if it has one, the test part.

  Images are [N, H, W] if all of them are grey, and [N, H, W, 3] otherwise; labels are
  the names of the class folders. Transparency is dropped.
  """
  roots = [folder]
  if (folder / "train").is_dir():
    test = folder / "test"
    roots = [folder / "train", *([test] if test.is_dir() else [])]
  files = [_files_by_class(root) for root in roots]
  mode = _common_mode([path for part in files for _, path in part])
  return [
    _read_part(part, mode, str(root)) for part, root in zip(files, roots, strict=True)
  ]


def read_images(folder: Path, mode: str) -> tuple[list[str], np.ndarray]:
  """Reads all images in a folder and its subfolders; returns their names and pixels.

  Pixels are [N, H, W] in mode "L" and [N, H, W, 3] in mode "RGB".
  """
  found = sorted(path for path in folder.rglob("*") if _is_image(path))
  paths = [path for path in found if not _is_hidden(path.relative_to(folder))]
  if not paths:
    raise DataError(
      f"{folder} holds no image ({', '.join(SUFFIXES)}): give a folder that does."
    )
  _common_mode(paths)
  names = [str(path.relative_to(folder)) for path in paths]
  return names, _read_part([("", path) for path in paths], mode, str(folder)).x


def _files_by_class(root: Path) -> list[tuple[str, Path]]:
  """Lists (class, file) of every image, sorted by class and name."""
  classes = [path for path in _sorted(root) if path.is_dir()]
  if not classes:
    raise DataError(
      f"{root} has no folders of images: give a folder with {_LAYOUT} (png, jpg, jpeg, "
      "bmp or webp), or an npz file, by config.data.dir."
    )
  found = []
  for folder in classes:
    of_class = [path for path in _sorted(folder) if _is_image(path)]
    if not of_class:
      raise DataError(
        f"{folder} holds no image ({', '.join(SUFFIXES)}), though each folder is a "
        "class: put images into it, or move it elsewhere."
      )
    found += [(folder.name, path) for path in of_class]
  return found


def _sorted(folder: Path) -> list[Path]:
  """Lists the paths in a folder, sorted, without hidden ones."""
  return sorted(path for path in folder.iterdir() if not _is_hidden(Path(path.name)))


def _is_hidden(path: Path) -> bool:
  return any(part.startswith(".") for part in path.parts)


def _is_image(path: Path) -> bool:
  return path.suffix.lower() in SUFFIXES


def _common_mode(paths: list[Path]) -> str:
  """Returns "L" or "RGB", or raises if the images have different sizes.

  Only headers are read, so an odd file is found before any image is decoded.
  """
  grey, first = True, (paths[0], (0, 0))
  for path in paths:
    with _opened(path) as image:
      size, mode = image.size, image.mode
    if path is paths[0]:
      first = path, size
    if size != first[1]:
      raise DataError(
        f"{path} is {_text(size)} pixels, but {first[0]} is {_text(first[1])}: resize "
        "all images to one size, or move the odd ones elsewhere."
      )
    if mode not in (*_GREY, *_COLOUR):
      raise DataError(
        f"{path} has pixels of more than 8 bits ({mode}): convert it to 8 bits, or "
        "give the images as an npz file."
      )
    grey = grey and mode in _GREY
  return "L" if grey else "RGB"


def _read_part(files: list[tuple[str, Path]], mode: str, name: str) -> Split:
  """Decodes all images of a part; labels are the names of their classes."""
  images: np.ndarray | None = None
  for i, (_, path) in enumerate(files):
    with _opened(path) as image:
      pixels = _decode(image, mode, path)
    if images is None:
      images = np.empty((len(files), *pixels.shape), np.uint8)
    images[i] = pixels
  assert images is not None
  classes = np.array([label for label, _ in files])
  return Split(images, classes, name, f"the folders of {name}")


def _opened(path: Path) -> Any:
  """Opens an image file, reading only its header."""
  from PIL import Image

  try:
    if path.is_fifo():  # opening it would block forever
      raise OSError("it is a pipe")
    return Image.open(path)
  except Exception as error:  # Pillow raises many types
    raise DataError(_unreadable(path, error)) from None


def _decode(image: Any, mode: str, path: Path) -> np.ndarray:
  """Decodes an open file to pixels [H, W] or [H, W, 3] uint8."""
  try:
    return np.asarray(image.convert(mode))
  except Exception as error:  # such as of a truncated file
    raise DataError(_unreadable(path, error)) from None


def _unreadable(path: Path, error: Exception) -> str:
  return (
    f"{path} cannot be read as an image ({first_line(error)}): replace it by a "
    "readable copy, or move it elsewhere."
  )


def _text(size: tuple[int, int]) -> str:
  return f"{size[0]}x{size[1]}"
