"""Reads the official files of CIFAR-10 and CIFAR-100, binary and pickled.

Neither format states its length, so half a file is a valid file. Therefore every file
must hold exactly the official number of images; a user's own set goes into an npz.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ebmjax.data import idx, pickles, tar
from ebmjax.data.arrays import Split, check_split
from ebmjax.data.official import REMEDY
from ebmjax.data.spec import Layout
from ebmjax.errors import DataError

IMAGE_SHAPE = (32, 32, 3)
_PIXELS = 3 * 32 * 32

# From the name of a file to its content and its name in error messages.
Fetch = Callable[[str], tuple[bytes, str]]


class Form(NamedTuple):
  """How the files of a CIFAR set are named and what they hold."""

  archive: str  # the archives are <archive>-binary.tar and <archive>-python.tar
  folders: dict[str, str]  # in each of them
  train: tuple[str, ...]  # files, which end with ".bin" in the binary archive
  test: str
  labels: dict[str, int]  # each kind of labels and its classes; the last one is used
  per_train: int  # images of each training file
  per_test: int


CIFAR10 = Form(
  archive="cifar-10",
  folders={"binary": "cifar-10-batches-bin", "python": "cifar-10-batches-py"},
  train=tuple(f"data_batch_{i}" for i in range(1, 6)),
  test="test_batch",
  labels={"labels": 10},
  per_train=10000,
  per_test=10000,
)

CIFAR100 = Form(
  archive="cifar-100",
  folders={"binary": "cifar-100-binary", "python": "cifar-100-python"},
  train=("train",),
  test="test",
  labels={"coarse_labels": 20, "fine_labels": 100},
  per_train=50000,
  per_test=10000,
)


def layouts(form: Form) -> tuple[Layout, ...]:
  """Lists all layouts of a set: the unpacked files first, then the archives."""
  files, archives = [], []
  for kind in _FORMATS:
    archive = f"{form.archive}-{kind}.tar"
    names = tuple(_file_name(name, kind) for name in (*form.train, form.test))
    read = functools.partial(_read_files, form, kind)
    folder = form.folders[kind]
    files.append(Layout(f"{kind} files", names, read, folder, f"{archive}.gz"))
    read = functools.partial(_read_archive, form, kind)
    archives.append(Layout(f"{kind} archive", (archive,), read))
  return (*files, *archives)


def parse_binary(form: Form, content: bytes, name: str, count: int) -> Split:
  """Parses the `count` images [N, 32, 32, 3] and labels [N] of a binary file.

  A record is the label bytes, then the channels [3, 32, 32].
  """
  width = len(form.labels) + _PIXELS
  if len(content) != count * width:
    problem = "truncated" if len(content) < count * width else "too long"
    raise DataError(
      f"{name} is {problem}, it must hold {count * width} bytes and holds "
      f"{len(content)}: {REMEDY}."
    )
  table = np.frombuffer(content, np.uint8).reshape(count, width)
  labels = [table[:, i] for i in range(len(form.labels))]
  return _make_split(form, table[:, len(labels) :], labels, name)


def parse_python(form: Form, content: bytes, name: str, count: int) -> Split:
  """Parses the `count` images [N, 32, 32, 3] and labels [N] of a pickled file."""
  values = pickles.load_dict(content, name)
  missing = [key for key in ("data", *form.labels) if key not in values]
  if missing:
    raise DataError(f"{name} lacks {', '.join(missing)}: {REMEDY}.")
  data = values["data"]
  found = (getattr(data, "dtype", type(data).__name__), getattr(data, "shape", ()))
  if found != (np.uint8, (count, _PIXELS)):
    raise DataError(
      f"{name} must hold data of type uint8 and shape {(count, _PIXELS)}, but holds "
      f"{found[0]} of shape {found[1]}: {REMEDY}."
    )
  labels = [np.asarray(values[key]) for key in form.labels]
  return _make_split(form, data, labels, name)


# The kinds of the official archives; file names end in ".bin" in the binary one.
_FORMATS = {"binary": parse_binary, "python": parse_python}


def _file_name(name: str, kind: str) -> str:
  return f"{name}.bin" if kind == "binary" else name


def _read_files(
  form: Form, kind: str, paths: Mapping[str, Path]
) -> tuple[Split, Split]:
  return _read(form, kind, lambda name: (idx.unpack(paths[name]), str(paths[name])))


def _read_archive(
  form: Form, kind: str, paths: Mapping[str, Path]
) -> tuple[Split, Split]:
  (path,) = paths.values()
  names = [_file_name(name, kind) for name in (*form.train, form.test)]
  contents = tar.read_members(path, names)
  return _read(form, kind, lambda name: (contents.pop(name), f"{path}[{name}]"))


def _read(form: Form, kind: str, fetch: Fetch) -> tuple[Split, Split]:
  parse = _FORMATS[kind]
  names = [_file_name(name, kind) for name in form.train]
  train = [parse(form, *fetch(name), form.per_train) for name in names]
  test = parse(form, *fetch(_file_name(form.test, kind)), form.per_test)
  return _join(train), test


def _join(parts: Sequence[Split]) -> Split:
  """Joins the training files, in their order."""
  if len(parts) == 1:
    return parts[0]
  name = f"one of {parts[0].x_from} to {parts[-1].x_from}"
  x, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
  return Split(x, y, name, name)


def _make_split(
  form: Form, data: np.ndarray, labels: Sequence[np.ndarray], name: str
) -> Split:
  """Returns images, given as channels [N, 3 * 32 * 32], with the last kind of labels.

  All labels are checked here, file by file, because the file name is lost later.
  """
  x = np.ascontiguousarray(data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
  for y, num_classes in zip(labels, form.labels.values(), strict=True):
    split = check_split(Split(x, y, name, name), IMAGE_SHAPE, num_classes, REMEDY)
  return split
