"""Draws a figure by its name, and writes it in three formats."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ebmjax.config.schema import choices_sentence
from ebmjax.errors import UserError
from ebmjax.paper.figures.catalogue import FIGURES
from ebmjax.paper.figures.missing import caption, folders, runs_of
from ebmjax.paper.figures.panels import style
from ebmjax.paper.figures.pooling import scan
from ebmjax.paper.figures.spec import Runs
from ebmjax.paper.store import Entry
from ebmjax.report import plotting
from ebmjax.runtime import atomic
from ebmjax.runtime.terminal import explain_out_errors

if TYPE_CHECKING:
  from matplotlib.figure import Figure

DPI = 200
_log = logging.getLogger(__name__)


def draw(
  name: str,
  runs_root: str | Path,
  out_dir: str | Path,
  *,
  allow_partial: bool = False,
  stored: Sequence[Entry] = (),
) -> list[Path]:
  """Returns the files NAME.svg, NAME.pdf and NAME.png of a figure of `FIGURES`.

  UserError where a run is missing; the sentence has the command that makes it. Runs on
  part of the data are only taken with `allow_partial`, and the figure's title says so.
  A figure of final accuracies is drawn from `stored` entries, too.
  """
  if name not in FIGURES:
    raise UserError(f"there is no figure {name!r}; {choices_sentence(name, FIGURES)}")
  root, spec = Path(runs_root), FIGURES[name]
  found = [] if stored and not root.is_dir() else scan(root)
  runs = runs_of(name, spec, root, [*found, *stored], allow_partial)
  text = caption(spec, runs)
  with style():
    figure = spec.draw(runs)
    _mark_partial(figure, runs)
    content = rendered(figure, spec.title, text)
  paths = _write(Path(out_dir), name, content)
  _log.info("%s: %s", name, text)
  _log.info("Drawn from %s.", folders(runs))
  return paths


def rendered(figure: "Figure", title: str, text: str) -> dict[str, bytes]:
  """Returns {"svg": bytes, ...} of a figure, with its caption inside."""
  return {
    "svg": plotting.svg(figure, Title=title, Description=text),
    "pdf": plotting.pdf(figure, Title=title, Subject=text),
    "png": plotting.png(figure, dpi=DPI, Title=title, Description=text),
  }


def _mark_partial(figure: "Figure", runs: Runs) -> None:
  """Puts a title over a figure of which some runs saw part of the data only."""
  parts = [name for name, found in runs.items() if any(run.partial for run in found)]
  if parts:
    whose = "" if len(parts) == len(runs) else f" ({', '.join(parts)})"
    figure.suptitle(f"PART OF THE DATA ONLY{whose}", fontsize=9, color="#B00000")


def _write(folder: Path, name: str, content: dict[str, bytes]) -> list[Path]:
  with explain_out_errors(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, data in content.items():
      atomic.write(folder / f"{name}.{suffix}", data)
  return [folder / f"{name}.{suffix}" for suffix in content]
