"""idx files are read whole or not at all."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from ebmjax.data import idx
from ebmjax.errors import DataError

VALUES = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
CONTENT = struct.pack(">BBBB3I", 0, 0, 8, 3, 2, 3, 4) + VALUES.tobytes()
# Announces 2 ** 64 bytes, which 64 bits take for none, and holds none.
OVERFLOW = struct.pack(">BBBB3I", 0, 0, 8, 3, 2**22, 2**22, 2**20)


def test_parse_returns_a_writable_array():
  parsed = idx.parse(CONTENT, 3, "file")
  np.testing.assert_array_equal(parsed, VALUES)
  assert parsed.dtype == np.uint8
  parsed[0, 0, 0] = 1


@pytest.mark.parametrize(
  ("content", "problem"),
  [
    (b"", "truncated within its header"),
    (CONTENT[:15], "truncated within its header"),
    (CONTENT[:16], "truncated, it announces 24 bytes of data and holds 0"),
    (CONTENT[:-1], "truncated, it announces 24 bytes of data and holds 23"),
    (CONTENT + b"\0", "too long, it announces 24 bytes of data and holds 25"),
    (b"\1" + CONTENT[1:], "begins with 01000803"),
    (b"\0\0\x0d" + CONTENT[3:], "begins with 00000d03"),  # floats
    (b"\0\0\x08\1" + CONTENT[4:], "begins with 00000801"),  # labels for images
    (b"<html>" + CONTENT, "begins with 3c68746d"),
    (OVERFLOW, "truncated, it announces 18446744073709551616 bytes"),
  ],
)
def test_parse_refuses(content, problem, sentence):
  with pytest.raises(DataError) as caught:
    idx.parse(content, 3, "the-file")
  text = sentence(caught)
  assert problem in text
  assert text.startswith("the-file ")
  assert "download it again" in text


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", ["images", "images.gz"])
def test_unpack_goes_by_the_content_not_the_name(tmp_path: Path, packed, name):
  path = tmp_path / name
  path.write_bytes(gzip.compress(CONTENT) if packed else CONTENT)
  assert idx.unpack(path) == CONTENT


PACKED = gzip.compress(CONTENT, mtime=0)


def damage(position: int) -> bytes:
  """Returns the packed content with one byte changed."""
  content = bytearray(gzip.compress(CONTENT * 50, mtime=0))
  content[position] ^= 0xFF
  return bytes(content)


@pytest.mark.parametrize(
  ("content", "problem"),
  [
    (PACKED[:-9], "truncated"),
    (PACKED[:-1], "truncated"),
    (PACKED[:5], "truncated"),
    (damage(30), "damaged gzip"),
    (damage(-5), "damaged gzip"),  # its own checksum
    (PACKED + b"more", "damaged gzip"),
  ],
  ids=["no checksum", "no end", "no content", "a byte", "checksum", "more"],
)
def test_unpack_refuses(tmp_path: Path, content, problem, sentence):
  path = tmp_path / "images.gz"
  path.write_bytes(content)
  with pytest.raises(DataError) as caught:
    idx.unpack(path)
  text = sentence(caught)
  assert problem in text
  assert str(path) in text


def test_unpack_tells_what_cannot_be_read(tmp_path: Path, sentence):
  with pytest.raises(DataError) as caught:
    idx.unpack(tmp_path)
  assert "cannot be read" in sentence(caught)
