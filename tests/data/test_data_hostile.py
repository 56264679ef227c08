"""Files made to take all memory or time: refused before they do."""

import gzip
import io
import pickle
import struct
import tarfile
import tracemalloc
import zipfile
from collections.abc import Iterator

import numpy as np
import pytest

from ebmjax.data import idx, npz, pickles, tar
from ebmjax.errors import DataError

MEGABYTES = 1 << 20


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
  """Asserts that a test needs no more than 100 MB at any time."""
  tracemalloc.start()
  yield
  peak = tracemalloc.get_traced_memory()[1]
  tracemalloc.stop()
  assert peak < 100 * MEGABYTES


def test_labels_nested_beyond_all_time():
  nested: list = [1]
  for _ in range(100):
    nested = [nested, nested]
  with pytest.raises(DataError, match="a list of lists"):
    pickles.load_dict(pickle.dumps({"labels": nested}), "a file")


@pytest.mark.parametrize("put", [b"r" + b"\xff" * 3 + b"\x7f", b"p2000000000\n"])
def test_numbers_that_reserve_memory(put):
  with pytest.raises(DataError, match="it numbers more objects than it holds"):
    pickles.load_dict(b"}" + put + b".", "a file")


def test_an_archive_that_unpacks_without_end(tmp_path, monkeypatch):
  path = tmp_path / "a.tar.gz"
  with tarfile.open(path, "w:gz") as archive:
    header = tarfile.TarInfo("data")
    header.size = 30 * MEGABYTES
    archive.addfile(header, io.BytesIO(bytes(header.size)))
  monkeypatch.setattr(tar, "_LARGEST_FILE", MEGABYTES)
  with pytest.raises(DataError, match="a file larger than any official one"):
    tar.read_members(path, ["data"])
  monkeypatch.setattr(tar, "_LARGEST", MEGABYTES)
  with pytest.raises(DataError, match="it is larger than any official one"):
    tar.read_members(path, ["other"])


def test_an_idx_file_that_unpacks_without_end(tmp_path, monkeypatch):
  monkeypatch.setattr(idx, "_LARGEST", MEGABYTES)
  path = tmp_path / "a.gz"
  path.write_bytes(gzip.compress(bytes(50 * MEGABYTES)))
  with pytest.raises(DataError, match="unpacks to more than 1 GB"):
    idx.unpack(path)


@pytest.mark.parametrize("shape", [(1 << 40,), (7, 1 << 50), (3,)])
def test_an_array_that_is_not_as_large_as_it_says(tmp_path, shape):
  content = io.BytesIO()
  header = {"descr": "|u1", "fortran_order": False, "shape": shape}
  np.lib.format.write_array_header_1_0(content, header)
  with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr("x.npy", content.getvalue() + bytes(50))
  with pytest.raises(DataError, match="has another size than its array"):
    npz.read(tmp_path / "a.npz", ["x"], "save it again")


@pytest.mark.parametrize("header", [b"{'descr': '|u1', (3,", b" {\n a", b"(" * 900])
def test_a_header_that_is_no_header(tmp_path, header):
  content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
  with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
    archive.writestr("x.npy", content + bytes(50))
  with pytest.raises(DataError, match=r"a\.npz is a damaged npz .*: save it again\."):
    npz.read(tmp_path / "a.npz", ["x"], "save it again")
