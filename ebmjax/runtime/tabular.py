"""Tables as CSV, as Markdown, and as columns of plain text."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
  """Returns a line for the header and one for each row; None is an empty cell."""
  buffer = io.StringIO()
  writer = csv.writer(buffer, lineterminator="\n")
  writer.writerow(header)
  writer.writerows(rows)
  return buffer.getvalue()


def markdown(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
  """Returns a table of Markdown."""
  lines = [header, *rows]
  head, *body = (f"| {' | '.join(map(str, line))} |" for line in lines)
  return "\n".join([head, "|---" * len(header) + "|", *body])


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
  """Returns a line for each row, its cells in columns of equal width."""
  widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
  return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
