"""Small synthetic CIFAR sets in all the forms of the official files."""

import gzip
import hashlib
import io
import pickle
import struct
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ebmjax.data import cifar_files
from ebmjax.data.arrays import Pins, content_sha256, rows_sha256
from ebmjax.data.registry import DATASETS
from ebmjax.data.spec import DatasetSpec, Download

FORMS = {
  "cifar10": cifar_files.CIFAR10._replace(per_train=4, per_test=6),
  "cifar100": cifar_files.CIFAR100._replace(per_train=20, per_test=6),
}
NAMES = tuple(FORMS)
STYLES = ("python2", "protocol2", "protocol4")  # of pickles


class TinyCifar(NamedTuple):
  """20 training and 6 test images that stand for an official set during a test."""

  info: DatasetSpec
  form: cifar_files.Form
  arrays: dict[str, np.ndarray]  # the fields of a Dataset
  coarse: dict[str, np.ndarray]  # "train" and "test": labels that nobody reads

  def tables(self) -> dict[str, tuple[np.ndarray, list[np.ndarray]]]:
    """Returns by file the data [n, 3072] and the kinds of labels, each [n]."""
    found = {}
    for split, names in (("train", self.form.train), ("test", (self.form.test,))):
      x = self.arrays[f"{split}_x"].transpose(0, 3, 1, 2).reshape(-1, 3072)
      labels = [self.coarse[split], self.arrays[f"{split}_y"]]
      columns = [x, *labels[-len(self.form.labels) :]]
      parts = [np.array_split(values, len(names)) for values in columns]
      for name, data, *of_file in zip(names, *parts, strict=True):
        found[name] = (data, of_file)
    return found

  def binary(self) -> dict[str, bytes]:
    """Returns the files of the binary archive by name."""
    return {
      f"{name}.bin": np.column_stack([*labels, data]).astype(np.uint8).tobytes()
      for name, (data, labels) in self.tables().items()
    }

  def python(self, style: str = "python2", **changes: Any) -> dict[str, bytes]:
    """Returns the files of the python archive by name, with some values changed."""
    files = {}
    for name, (data, labels) in self.tables().items():
      values: dict[str, Any] = {"batch_label": "a batch", "data": data}
      values |= zip(self.form.labels, (part.tolist() for part in labels), strict=True)
      values |= {"filenames": ["one.png"] * len(data)} | changes
      files[name] = dump(values, style)
    return files

  def files(self, kind: str) -> dict[str, bytes]:
    """Returns the files of the archive of a kind."""
    return self.binary() if kind == "binary" else self.python()

  def archive(self, kind: str, **changes: bytes) -> bytes:
    """Returns an official archive, with some files changed."""
    return pack_tar(self.files(kind) | changes, self.form.folders[kind])

  def assert_holds(self, dataset: Any) -> None:
    """Asserts that a data set has exactly these arrays in this order."""
    for field, values in self.arrays.items():
      np.testing.assert_array_equal(getattr(dataset, field), values)
    assert dataset.train_x.dtype == dataset.test_x.dtype == np.uint8
    assert dataset.train_y.dtype == dataset.test_y.dtype == np.int32


def make_cifar(name: str, url: str = "http://127.0.0.1/") -> TinyCifar:
  """Returns a small set; every pixel and label of it is random."""
  random = np.random.default_rng(7)
  form, row = FORMS[name], DATASETS[name]
  arrays, coarse = {}, {}
  for split, size in (("train", 20), ("test", 6)):
    arrays[f"{split}_x"] = random.integers(0, 256, (size, 32, 32, 3), np.uint8)
    arrays[f"{split}_y"] = random.integers(0, row.num_classes, size, np.uint8)
    coarse[split] = random.integers(0, 20, size, np.uint8)
  tiny = TinyCifar(row, form, arrays, coarse)
  content = tiny.archive("binary")
  download = Download(len(content), hashlib.sha256(content).hexdigest())
  info = row._replace(
    train=make_pins(arrays["train_x"], arrays["train_y"], row.train),
    test=make_pins(arrays["test_x"], arrays["test_y"], row.test),
    url=url,
    downloads=dict.fromkeys(row.downloads, download),
    layouts=cifar_files.layouts(form),
  )
  return tiny._replace(info=info)


def make_pins(x: np.ndarray, y: np.ndarray, real: Pins) -> Pins:
  """Returns the pins of a split, without those that the real set lacks."""
  ordered = (content_sha256(x), content_sha256(y)) if real.x else ("", "")
  return Pins(len(x), *ordered, rows_sha256(x, y))


def write(folder: Path, files: dict[str, bytes]) -> Path:
  """Returns a folder after writing files into it."""
  folder.mkdir(parents=True, exist_ok=True)
  for name, content in files.items():
    (folder / name).write_bytes(content)
  return folder


def pack_tar(files: dict[str, bytes], folder: str) -> bytes:
  """Returns a packed archive of files in a folder, always with the same bytes."""
  target = io.BytesIO()
  with tarfile.open(fileobj=target, mode="w") as archive:
    directory = tarfile.TarInfo(folder)
    directory.type = tarfile.DIRTYPE
    archive.addfile(directory)
    for name, content in {"readme.html": b"<html>", **files}.items():
      member = tarfile.TarInfo(f"{folder}/{name}")
      member.size = len(content)
      archive.addfile(member, io.BytesIO(content))
  return gzip.compress(target.getvalue(), mtime=0)


def dump(values: dict[str, Any], style: str) -> bytes:
  """Returns a pickle as Python 2 with numpy 1, or as this Python, would write it."""
  if style != "python2":
    return pickle.dumps(values, int(style[-1]))
  items = b"".join(_dump2(key) + _dump2(value) for key, value in values.items())
  return b"\x80\x02}(" + items + b"u."


def _dump2(value: Any) -> bytes:
  """Returns a value in the opcodes that Python 2 chooses, but for the memo."""
  if isinstance(value, str | bytes):
    content = value.encode() if isinstance(value, str) else value
    return b"T" + struct.pack("<i", len(content)) + content  # BINSTRING
  if isinstance(value, int):
    return b"J" + struct.pack("<i", value)
  if isinstance(value, list):
    return b"](" + b"".join(map(_dump2, value)) + b"e"
  if not isinstance(value, np.ndarray):
    return pickle.dumps(value, 2)[2:-1]
  kind = value.dtype.str.lstrip("<>|")
  empty = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85U\x01b\x87R"
  dtype = b"cnumpy\ndtype\n" + _dump2(kind) + b"K\0K\x01\x87R"
  dtype += b"(K\x03" + _dump2(value.dtype.str[0]) + b"NNN" + b"J\xff\xff\xff\xff" * 2
  fortran = not value.flags.c_contiguous
  shape = b"(" + b"".join(map(_dump2, value.shape)) + b"t"
  content = _dump2(value.tobytes("F" if fortran else "C"))
  flag = b"\x88" if fortran else b"\x89"
  return empty + b"(K\x01" + shape + dtype + b"K\0tb" + flag + content + b"tb"
