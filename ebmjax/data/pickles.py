"""Reads a pickled dictionary of arrays without running any code that it names.

`pickle.load` imports and calls any function that a file names. Here the few names that
a pickled array needs are replaced by inert objects, and all other names are refused.
NumPy's own unpickling is not used either, so arrays of objects are impossible.
"""

import io
import pickle
import pickletools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from ebmjax.data.official import REMEDY
from ebmjax.errors import DataError, first_line

_ITEM_TYPES = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8")


def load_dict(content: bytes, name: str) -> dict[str, Any]:
  """Loads the dictionary of a pickle, with NumPy arrays and with keys as str.

  The official files were written by Python 2, whose strings are read as bytes.
  """
  file = io.BytesIO(content)
  try:
    _require_small_memo(content)
    loaded = _Unpickler(file, encoding="bytes").load()
    if file.read(1):
      raise pickle.UnpicklingError("it is too long")
    if type(loaded) is not dict:
      raise pickle.UnpicklingError("it holds no dictionary")
    return {_text(key): _plain(value) for key, value in loaded.items()}
  except EOFError:
    raise DataError(f"{name} is truncated: {REMEDY}.") from None
  except Exception as error:  # a damaged pickle raises nearly any type
    raise DataError(
      f"{name} is not the pickle of an official file ({first_line(error)}): {REMEDY}."
    ) from None


def _require_small_memo(content: bytes) -> None:
  """Refuses memo indices that would make Python allocate gigabytes."""
  with suppress(ValueError):  # not a pickle: loading refuses it
    for opcode, number, _ in pickletools.genops(content):
      if opcode.name in ("PUT", "LONG_BINPUT") and int(number or 0) > len(content):
        raise pickle.UnpicklingError("it numbers more objects than it holds")


class _Unpickler(pickle.Unpickler):
  """Resolves only the names that have stand-ins."""

  def find_class(self, module: str, name: str) -> Any:
    if (module, name) not in _STAND_INS:
      raise pickle.UnpicklingError(f"it names {f'{module}.{name}'!r}")
    return _STAND_INS[module, name]


class _StandIn:
  """A callable that a pickle cannot change.

  A pickle can set attributes of plain functions and classes, which would persist.
  """

  __slots__ = ("_call",)

  def __init__(self, call: Callable[..., Any]):
    self._call = call

  def __call__(self, *args: Any) -> Any:
    return self._call(*args)

  def __setstate__(self, state: Any) -> None:
    raise pickle.UnpicklingError("it changes a function")


class _Dtype:
  """Stands for a numpy.dtype of integers."""

  __slots__ = ("code", "dtype")

  def __init__(self, code: Any, align: Any, copy: Any):
    self.code = _text(code)
    if self.code not in _ITEM_TYPES:
      raise pickle.UnpicklingError(f"it holds an array of type {self.code!r}")
    self.dtype = np.dtype(self.code)

  def __setstate__(self, state: Any) -> None:
    """Takes the byte order; the rest of an integer type's state is empty."""
    order = _text(state[1])
    if order not in ("|", "<", ">"):
      raise pickle.UnpicklingError(f"it holds an array of byte order {order!r}")
    self.dtype = np.dtype(order + self.code)


class _Array:
  """Stands for a numpy.ndarray while a pickle is read."""

  __slots__ = ("values",)

  def __setstate__(self, state: Any) -> None:
    """Takes (version, shape, dtype, whether in Fortran order, bytes)."""
    _, shape, dtype, fortran, content = state
    if type(dtype) is not _Dtype or type(content) is not bytes:
      raise pickle.UnpicklingError("it holds an array that is not made of bytes")
    flat = np.frombuffer(content, dtype.dtype)
    self.values = flat.reshape(shape, order="F" if fortran else "C")


def _reconstruct(array_type: Any, shape: Any, code: Any) -> _Array:
  """Returns an array without values, which `__setstate__` adds."""
  if array_type is not _NDARRAY:
    raise pickle.UnpicklingError("it reconstructs an object that is not an array")
  return _Array()


def _encode(text: Any, encoding: Any) -> bytes:
  """Returns bytes, which Python 3 writes as text under protocol 2."""
  if type(text) is not str or encoding != "latin1":
    raise pickle.UnpicklingError("it encodes an object that is not bytes")
  return text.encode("latin1")


def _refuse(*args: Any) -> None:
  raise pickle.UnpicklingError("it calls numpy.ndarray")


def _text(value: Any) -> str:
  """Decodes a string of Python 2 or 3."""
  if type(value) is bytes:
    return value.decode("latin1")
  if type(value) is not str:
    raise pickle.UnpicklingError(f"it holds {type(value).__name__} for a string")
  return value


def _plain(value: Any) -> Any:
  """Returns the array of a stand-in, or the value itself.

  Lists must be flat: a few bytes can nest a list in itself so often that reading it
  would never end.
  """
  if type(value) is list and any(type(each) in (list, tuple, dict) for each in value):
    raise pickle.UnpicklingError("it holds a list of lists")
  return value.values if type(value) is _Array else value


_NDARRAY = _StandIn(_refuse)  # only named as the type to reconstruct, never called
_STAND_INS = {
  ("numpy", "ndarray"): _NDARRAY,
  ("numpy", "dtype"): _StandIn(_Dtype),
  ("numpy.core.multiarray", "_reconstruct"): _StandIn(_reconstruct),  # numpy 1
  ("numpy._core.multiarray", "_reconstruct"): _StandIn(_reconstruct),  # numpy 2
  ("_codecs", "encode"): _StandIn(_encode),
}
