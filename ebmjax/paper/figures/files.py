"""Draws a figure by its name, and writes it in three formats."""

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebmjax.config.schema import choices_sentence
from ebmjax.errors import UserError
from ebmjax.paper.figures import (
  accuracy,
  capacity,
  confusion,
  cost,
  forgetting,
  labels,
  landscapes,
  tasks,
)
from ebmjax.paper.figures.missing import caption, folders, runs_of
from ebmjax.paper.figures.panels import style
from ebmjax.paper.figures.pooling import found_in
from ebmjax.paper.figures.spec import FigureSpec, Runs
from ebmjax.paper.store import Entry
from ebmjax.report import plotting
from ebmjax.runtime import atomic, failures
from ebmjax.runtime.terminal import run_each

if TYPE_CHECKING:
  from matplotlib.figure import Figure

FIGURES: dict[str, FigureSpec] = {
  "accuracy_over_training": accuracy.SPEC,
  "energy_landscapes": landscapes.SPEC,
  "predicted_labels": labels.SPEC,
  "confusion": confusion.SPEC,
  "capacity": capacity.SPEC,
  "number_of_tasks": tasks.SPEC,
  "forgetting": forgetting.SPEC,
  "cost": cost.SPEC,
}
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
  """Draws a figure of `FIGURES`; returns its files NAME.svg, NAME.pdf and NAME.png.

  If a run is missing, raises a UserError with the command that makes it. Runs on part
  of the data are used only with `allow_partial`, and the figure's title says so. Only
  figures of final accuracies can use `stored` entries.
  """
  if name not in FIGURES:
    raise UserError(f"there is no figure {name!r}; {choices_sentence(name, FIGURES)}")
  root, spec = Path(runs_root), FIGURES[name]
  runs = runs_of(name, spec, root, found_in(root, stored), allow_partial)
  text = caption(spec, runs)
  with style():
    figure = spec.draw(runs)
    _mark_partial(figure, runs)
    named = {"Title": spec.title, "Description": text}
    content = {
      "svg": plotting.svg(figure, **named),
      "pdf": plotting.pdf(figure, Title=spec.title, Subject=text),
      "png": plotting.png(figure, dpi=DPI, **named),
    }
  paths = _write(Path(out_dir), name, content)
  _log.info("%s: %s", name, text)
  _log.info("Drawn from %s.", folders(runs))
  return paths


def draw_each(caller: str, names: Iterable[str], *args: Path, **options: Any) -> int:
  """Draws figures and prints their files; returns 1 if one could not be drawn."""

  def one(name: str) -> None:
    print(*draw(name, *args, **options), sep="\n")

  return run_each(caller, names, one)


def _mark_partial(figure: "Figure", runs: Runs) -> None:
  """Adds a title to a figure if some of its runs used only part of the data."""
  parts = [name for name, found in runs.items() if any(run.partial for run in found)]
  if parts:
    whose = "" if len(parts) == len(runs) else f" ({', '.join(parts)})"
    figure.suptitle(f"PART OF THE DATA ONLY{whose}", fontsize=9, color="#B00000")


def _write(folder: Path, name: str, content: dict[str, bytes]) -> list[Path]:
  with failures.explain_write_errors(folder, failures.ANOTHER):
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, data in content.items():
      atomic.write(folder / f"{name}.{suffix}", data)
  return [folder / f"{name}.{suffix}" for suffix in content]
