"""Docstrings of records: their fields as the source has them, with their comments."""

import inspect
import textwrap
from typing import Any

from sphinx.application import Sphinx


def skip(app: Any, kind: str, name: str, value: Any, skipped: bool, options: Any):
  """Leaves out the fields one by one, which have no text of their own."""
  del app, kind, name, options
  return True if _is_field(value) else None


def add_fields(
  app: Any, kind: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
  """Appends a record's fields to its docstring."""
  del app, name, options
  if kind == "class" and issubclass(value, tuple) and hasattr(value, "_fields"):
    fields = textwrap.indent(_fields(value), "   ")
    lines += ["", ".. code-block:: python", "", *fields.splitlines(), ""]


def _fields(record: type) -> str:
  """Returns the lines of a record between its docstring and its first method."""
  source = inspect.getsource(record)
  _, _, body = source.partition(":\n")
  text = record.__doc__ or ""
  body = body.partition('"""')[2].partition('"""')[2] if text in body else body
  for start in ("\n  def ", "\n  @"):
    body = body.partition(start)[0]
  return textwrap.dedent(body).strip()


def _is_field(value: Any) -> bool:
  return (inspect.getdoc(value) or "").startswith("Alias for field number")


def setup(app: Sphinx) -> dict[str, Any]:
  """Listens to autodoc."""
  app.connect("autodoc-skip-member", skip)
  app.connect("autodoc-process-docstring", add_fields)
  return {"parallel_read_safe": True, "parallel_write_safe": True}
