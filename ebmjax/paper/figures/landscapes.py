"""Energies of all labels for all classes, after each of the last two tasks."""

from typing import TYPE_CHECKING

from ebmjax.paper.figures.panels import heat_map, panels
from ebmjax.paper.figures.spec import FigureSpec, Runs, mnist
from ebmjax.report.history import mean_energies, num_tasks, task_ends

if TYPE_CHECKING:
  from matplotlib.figure import Figure

NETWORKS = ("SBC", "EBM")


def landscapes(runs: Runs) -> "Figure":
  """Draws one row per network and one column per task, all in the same colours."""
  figure, grid = panels(2, 2, 5.9, sharex=True, sharey=True)
  for row, name in zip(grid, NETWORKS, strict=True):
    history = runs[f"{name}, permuted"][0].history
    ends, tasks = task_ends(history), num_tasks(history)
    classes = len(history.class_names)
    for axes, task in zip(row, (tasks - 1, tasks), strict=True):
      energies = mean_energies(history, ends[task])
      image = heat_map(axes, energies, 1, classes // tasks)
      axes.set_title(f"{name}, after task {task}")
    row[0].set_ylabel("true class")
  for axes in grid[-1]:
    axes.set_xlabel("label")
  bar = figure.colorbar(image, ax=grid, shrink=0.6, aspect=30)
  bar.set_label("energy, scaled per image (0: lowest and preferred)")
  return figure


SPEC = FigureSpec(
  title="Energy landscapes, permuted MNIST",
  caption="Mean energy of each label (columns) for the test images of each class "
  "(rows) after the last task but one and after the last of permuted MNIST; the "
  "darker the diagonal, the less is forgotten. Energies are scaled to 0..1 for each "
  "image over all labels and averaged over images and seeds; those of the classifier "
  "are minus its logits, where the paper takes minus its probabilities. Grey: classes "
  "not yet shown.",
  roles=tuple(mnist(name, "permuted") for name in NETWORKS),
  draw=landscapes,
)
