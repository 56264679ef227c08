"""The JSON files of a run: written whole, with a checksum; read back in a stated form.

A form is a type, `[form]` for a list, `{name: form}` for an object that has these names
at least, or `{...: form}` for one whose values all have it.
"""

import json
import math
import stat
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ebmjax.errors import WorkdirError, printable
from ebmjax.runtime import atomic

CHECKSUM = "checksum"  # of all else in a file; those of earlier versions have none
_LARGEST = 1 << 28  # bytes
_HOLDS = {"run": "facts"}  # by a file's stem, where that does not say it
Form = Any  # or a function that says whether a value has it


def number(value: Any) -> bool:
  """Returns whether a value is a finite number: a form."""
  whole = isinstance(value, int | float) and not isinstance(value, bool)
  return whole and math.isfinite(value)


def write(path: Path, content: Mapping[str, Any]) -> None:
  """Writes an object to a file, atomically."""
  plain = json.loads(json.dumps(content))
  signed = plain | {CHECKSUM: checksum(plain)}
  atomic.write(path, json.dumps(signed, indent=1) + "\n")


def read(path: Path, form: Form, remedy: str) -> dict[str, Any]:
  """Returns the object that `write` wrote, or raises WorkdirError with the remedy."""

  def damaged(fault: str) -> WorkdirError:
    return WorkdirError(f"{path} {fault}; {remedy}." if remedy else f"{path} {fault}")

  try:
    content = json.loads(read_bytes(path))
  except (OSError, ValueError, RecursionError) as error:
    raise damaged("cannot be read as JSON") from error
  if not isinstance(content, dict):
    raise damaged(f"is not the {_HOLDS.get(path.stem, path.stem)} of a run")
  if content.pop(CHECKSUM, found := checksum(content)) != found:
    raise damaged("has changed since it was written")
  if not fits(content, form):
    raise damaged(f"is not the {_HOLDS.get(path.stem, path.stem)} of a run")
  printed: dict[str, Any] = printable(content)
  return printed


def read_bytes(path: Path) -> bytes:
  """Returns the content of a file that is a file: reading a pipe would never end."""
  status = path.stat()
  if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
    raise OSError(f"{path} is not a file of a run")
  return path.read_bytes()


def checksum(content: Mapping[str, Any]) -> str:
  """Returns a hash of an object of JSON, its own checksum left out."""
  rest = {key: value for key, value in content.items() if key != CHECKSUM}
  return blake2b(json.dumps(rest, sort_keys=True).encode(), digest_size=8).hexdigest()


def fits(value: Any, form: Form) -> bool:
  """Returns whether a value that JSON can hold has a form."""
  if isinstance(form, type):
    return isinstance(value, form)
  if isinstance(form, list):
    return isinstance(value, list) and all(fits(each, form[0]) for each in value)
  if not isinstance(form, dict):
    return bool(form(value))
  if not isinstance(value, dict):
    return False
  names = value if ... in form else form
  return all(k in value and fits(value[k], form.get(k, form.get(...))) for k in names)
