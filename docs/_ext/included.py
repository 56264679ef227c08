"""Links of included files: to the page that shows their target, or to the file."""

import os
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
# Files of the repository that a page includes: the page.
PAGES = {
  "README.md": "docs/index.md",
  "BENCHMARKS.md": "docs/results.md",
  "CHANGELOG.md": "docs/changes.md",
  "launch/README.md": "docs/howto/clusters.md",
  ".github/CONTRIBUTING.md": "docs/contributing.md",
}
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")


def rewrite(app: Sphinx, path: Path, parent: str, content: list[str]) -> None:
  """Rewrites the relative links of an included file for the page that includes it."""
  del parent  # its last part alone, of a page in a folder
  here = Path(app.srcdir, app.env.docname).parent
  source = Path(app.srcdir, path).resolve().parent

  def moved(match: re.Match[str]) -> str:
    target = (source / match[1]).resolve()
    if not target.is_relative_to(ROOT):
      return match[1]
    name = target.relative_to(ROOT).as_posix()
    return os.path.relpath(ROOT / PAGES.get(name, name), here)

  if path.suffix == ".md":
    content[0] = _LINK.sub(moved, content[0])


def setup(app: Sphinx) -> dict[str, Any]:
  """Listens to what pages include."""
  app.connect("include-read", rewrite)
  return {"parallel_read_safe": True, "parallel_write_safe": True}
