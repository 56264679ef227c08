"""Pickles: arrays are read, and nothing that a file names is ever run."""

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebmjax import data
from ebmjax.data import pickles
from ebmjax.errors import DataError
from tests.data.cifar import STYLES, dump, make_cifar, write

# Written by Python 2.7.18 with numpy 1.16.6: {"data": arange(6) as uint8 [2, 3]}.
PYTHON2 = (
  b"\x80\x02}q\x01U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\n"
  b"ndarray\nq\x04K\x00\x85U\x01b\x87Rq\x05(K\x01K\x02K\x03\x86cnumpy\ndtype\nq\x06U"
  b"\x02u1K\x00K\x01\x87Rq\x07(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
  b"\x89U\x06\x00\x01\x02\x03\x04\x05tbs."
)
RECONSTRUCT = b"cnumpy.core.multiarray\n_reconstruct\n"


class Calls:
  """Is pickled as the call of a function."""

  def __init__(self, function: Any, *args: Any):
    self.call = (function, args)

  def __reduce__(self) -> Any:
    return self.call


def test_genuine_pickle_of_python_2():
  (values,) = pickles.load_dict(PYTHON2, "file").values()
  np.testing.assert_array_equal(values, np.arange(6).reshape(2, 3))
  assert values.dtype == np.uint8


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("dtype", ["u1", "<i8", ">i4"])
def test_arrays_of_every_age(style, dtype):
  values = np.arange(200, 206).astype(dtype).reshape(2, 3)
  loaded = {"data": values, "fortran": values.T, "labels": [1, 2]}
  found = pickles.load_dict(dump(loaded, style), "file")
  for key in ("data", "fortran"):
    np.testing.assert_array_equal(found[key], loaded[key])
    assert found[key].dtype == values.dtype
  assert found["labels"] == [1, 2]


@pytest.mark.parametrize("protocol", range(6))
def test_system_call_is_refused(
  tmp_path: Path, config, monkeypatch, protocol, sentence
):
  tiny = make_cifar("cifar10")
  monkeypatch.setitem(data.DATASETS, "cifar10", tiny.info)
  mark = tmp_path / "mark"
  evil = pickle.dumps({"data": Calls(os.system, f"touch {mark}")}, protocol)
  path = write(tmp_path, tiny.python() | {"data_batch_3": evil}) / "data_batch_3"
  with pytest.raises(DataError) as caught:
    data.load(config("files", tmp_path, name="cifar10"))
  text = sentence(caught)
  assert text.startswith(f"{path} is not the pickle of an official file")
  assert f"'{os.system.__module__}.system'" in text
  assert not mark.exists()
  pickle.loads(evil)  # The test can fail: the pickle does what it should not.
  assert mark.exists()


def call(module: str, name: str, *args: Any) -> bytes:
  """Returns a pickle with the call of a function that is found by name."""
  values = pickle.dumps(args, 2)[2:-1]
  return b"\x80\x02}U\x04data" + f"c{module}\n{name}\n".encode() + values + b"Rs."


def held(value: bytes) -> bytes:
  """Returns a pickle of a dictionary with a value given as opcodes."""
  return b"\x80\x04}U\x04data" + value + b"s."


@pytest.mark.parametrize(
  "content",
  [
    call("builtins", "eval", "1 + 1"),
    call("__builtin__", "eval", "1 + 1"),
    call("builtins", "getattr", 1, "real"),
    call("copyreg", "_reconstructor", 1, 2, 3),
    call("copy_reg", "_reconstructor", 1, 2, 3),
    call("functools", "partial", 1),
    call("numpy", "load", "file", None, True),
    call("numpy.core.multiarray", "scalar", 1),
    call("numpy", "ndarray", 3),
    call("numpy", "dtype", "O8", 0, 1),
    call("numpy", "dtype", "V8", 0, 1),
    call("numpy", "dtype", [("a", "u1")], 0, 1),
    call("_codecs", "encode", "a", "rot13"),
    call("_codecs", "encode", "a", "zip"),
    call("_codecs", "lookup", "latin1"),
    # The names are the right ones, but what is done with them is not.
    held(RECONSTRUCT + b"cnumpy\ndtype\nK\0\x85U\x01b\x87R"),
    held(RECONSTRUCT + RECONSTRUCT + b"K\0\x85U\x01b\x87R"),
    held(RECONSTRUCT + b"}U\x01aK\x01sb"),  # attributes for a function
    held(b"cnumpy\nndarray\nN}U\x0c__setstate__K\x01s\x86b"),  # and for a class
    held(b"cnumpy\nndarray\n)\x81"),  # ndarray.__new__
    held(RECONSTRUCT + b"cnumpy\nndarray\nK\0\x85U\x01b\x87R"),  # without values
    # Names with dots, which reach the attributes of what is allowed.
    held(b"\x8c\x05numpy\x8c\x0ddtype.__class\x93"),
    held(b"\x8c\x05numpy\x8c\x0cndarray.dump\x93"),
    held(b"\x8c\x05numpy\x8c\x03a\nb\x93"),  # a line break for the error
    held(b"(ios\nsystem\n"),  # the INST opcode
    held(b"\x82\x01"),  # the extension registry
    held(b"P1\n"),  # a persistent id
  ],
)
def test_gadgets_are_refused(content, sentence):
  with pytest.raises(DataError) as caught:
    pickles.load_dict(content, "the-file")
  text = sentence(caught)
  assert text.startswith("the-file is not the pickle of an official file (")
  assert "download it again" in text
  # And nothing of it stays.
  (values,) = pickles.load_dict(PYTHON2, "file").values()
  assert values.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("style", STYLES[1:])
@pytest.mark.parametrize("value", [1, Calls(os.getpid)])
def test_object_arrays_are_refused(style, value, sentence):
  content = dump({"data": np.array([value, None], object)}, style)
  with pytest.raises(DataError) as caught:
    pickles.load_dict(content, "file")
  assert "file is not the pickle of an official file (it " in sentence(caught)


def test_object_values_under_an_honest_dtype_are_refused(sentence):
  (raw,) = [PYTHON2.replace(b"U\x06\x00\x01\x02\x03\x04\x05", b"](K\x01K\x02e")]
  with pytest.raises(DataError) as caught:
    pickles.load_dict(raw, "file")
  assert "that is not made of bytes" in sentence(caught)


@pytest.mark.parametrize(
  ("content", "problem"),
  [
    (b"", "file is truncated"),
    (PYTHON2[:-1], "truncated"),
    (PYTHON2[:60], "truncated"),
    (PYTHON2 + b"\0", "too long"),
    (PYTHON2.replace(b"K\x02K\x03\x86", b"K\x02K\x04\x86"), "reshape"),
    (PYTHON2.replace(b"U\x01|", b"U\x01!"), "byte order '!'"),
    (PYTHON2.replace(b"ndarray", b"dtype"), "reconstructs an object that is not"),
    (pickle.dumps([1]), "no dictionary"),
    (pickle.dumps({1: 2}), "int for a string"),
    (b"<html>", "not the pickle"),
  ],
)
def test_damage_is_refused(content, problem, sentence):
  with pytest.raises(DataError) as caught:
    pickles.load_dict(content, "file")
  text = sentence(caught)
  assert problem in text
  assert text.startswith("file is ")
