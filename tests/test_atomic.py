"""Files are written whole or not at all."""

import os

import pytest

from ebmjax.runtime import atomic


def test_text_and_bytes_replace_what_was_there(tmp_path):
  path = tmp_path / "file"
  atomic.write(path, "a longer first content")
  atomic.write(path, b"second")
  assert path.read_bytes() == b"second"


def test_failed_write_leaves_the_old_file_and_no_rest(tmp_path, monkeypatch):
  path = tmp_path / "file"
  atomic.write(path, b"old")

  def fail(source, target):
    raise OSError("disk")

  monkeypatch.setattr(os, "replace", fail)
  with pytest.raises(OSError, match="disk"):
    atomic.write(path, b"new")
  assert path.read_bytes() == b"old"
  assert list(tmp_path.iterdir()) == [path]
