"""The figures of a run, as PNG bytes."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ebmjax import metrics
from ebmjax.report import drawing
from ebmjax.report.history import History, num_tasks, task_ends

if TYPE_CHECKING:
  from matplotlib.figure import Figure

MAX_MARKERS = 40  # evaluations that are marked one by one on a line
MAX_POINTS = 400  # of a loss curve; beyond them it shows the means of bins


def draw(
  history: History, scalars: Sequence[Mapping[str, Any]] = ()
) -> dict[str, bytes]:
  """Returns {name: PNG} of every figure; "loss" only where `scalars` hold losses."""
  figures = {
    "accuracy_per_task": accuracy_per_task(history),
    "confusion": confusion(history),
    "predicted_labels": predicted_labels(history),
    "energies": energies(history),
  }
  losses = losses_by_seed(scalars)
  if losses:
    figures["loss"] = loss(losses)
  return {name: drawing.png(figure) for name, figure in figures.items()}


def accuracy_per_task(history: History) -> "Figure":
  """Returns the accuracy of each task over training, mean and SEM over seeds."""
  figure, axes = drawing.new_figure(8.0, 4.8)
  steps = np.asarray(history.steps)
  accuracy = 100 * np.asarray(history.evaluations.accuracy)  # [E, R, T]
  for end in task_ends(history).values():
    axes.axvline(steps[end], color="0.85", linewidth=0.8, zorder=0)
  colours = drawing.task_colours(figure, axes, num_tasks(history))
  listed = len(colours) <= len(drawing.PALETTE)  # otherwise the colour bar tells
  marker = "o" if len(steps) <= MAX_MARKERS else ""
  for task, colour in enumerate(colours):
    label = f"task {task + 1}" if listed else None
    drawing.mean_line(
      axes, steps, accuracy[:, :, task], color=colour, marker=marker, label=label
    )
  if len(colours) > 1:
    drawing.mean_line(
      axes, steps, mean_so_far(accuracy), color="black", ls="--", label="mean so far"
    )
  drawing.step_axis(axes, int(steps.max()))
  axes.set(ylabel=f"{history.evaluated_on} accuracy (%)", ylim=(-3, 103))
  axes.set_title("Accuracy of each task (band: SEM over seeds; grey: ends of tasks)")
  figure.legend(loc="outside lower center", ncols=7, frameon=False, columnspacing=1.2)
  return figure


def confusion(history: History) -> "Figure":
  """Returns what each class was taken for at the end, mean over seeds."""
  rates = metrics.normalise_rows(history.evaluations.confusion[-1]).mean(axis=0)
  return drawing.class_map(
    100 * rates,
    history.class_names,
    title="Confusion at the end of training",
    column="predicted class",
    scale="share of the true class (%)",
    highest=100 * max(float(rates.max()), 0.01),
  )


def energies(history: History) -> "Figure":
  """Returns the energy of each label for each class at the end, mean over seeds.

  Evaluations hold energies scaled to 0..1 for each image, which makes them comparable
  between networks and seeds. Classes without an evaluated image are left empty.
  """
  evaluated = history.evaluations.confusion[-1].sum(axis=-1) > 0  # [R, C]
  values = np.where(evaluated[..., None], history.evaluations.energies[-1], np.nan)
  return drawing.class_map(
    values.mean(axis=0),
    history.class_names,
    title="Mean energies at the end of training",
    column="label",
    scale="energy, scaled per image (0: lowest and preferred, 1: highest)",
    highest=1,
  )


def predicted_labels(history: History) -> "Figure":
  """Returns the share of each label among the predictions, one row per task end."""
  from matplotlib.colors import PowerNorm

  ends = task_ends(history) or {0: len(history.steps) - 1}
  names = [f"task {task}" if task else "last step" for task in sorted(ends)]
  counts = history.evaluations.confusion[[ends[task] for task in sorted(ends)]]
  shares = 100 * metrics.predicted_label_share(counts).mean(axis=1)  # [rows, C]
  height = float(np.clip(2.0 + 0.3 * len(names), 3.0, 8.0))
  figure, axes = drawing.new_figure(9.0, height)
  top = max(float(shares.max()), 1.0)
  # The root lifts small shares: late rows spread over many more labels than early ones.
  scale = PowerNorm(0.5, vmin=0, vmax=top)
  image = axes.imshow(shares, cmap="viridis", norm=scale, aspect="auto")
  drawing.name_ticks(axes.xaxis, history.class_names, turn=True)
  drawing.name_ticks(axes.yaxis, names)
  axes.set(xlabel="predicted label", ylabel="after")
  axes.set_title("Predicted labels at the end of each task")
  if max(shares.shape) <= drawing.MAX_TICKS:
    drawing.annotate(axes, shares, decimals=0)
  figure.colorbar(image, ax=axes, label="share of predictions (%)")
  return figure


def loss(losses: Mapping[int, np.ndarray]) -> "Figure":
  """Returns the training loss of each seed, from {seed: [N, 2] of step and loss}."""
  figure, axes = drawing.new_figure(8.0, 4.8)
  colours = drawing.PALETTE
  for position, seed in enumerate(sorted(losses)):
    curve = binned(losses[seed])
    axes.plot(
      curve[:, 0],
      curve[:, 1],
      color=colours[position % len(colours)],
      linestyle=("-", "--")[position // len(colours) % 2],
      marker="o" if len(curve) == 1 else "",
      linewidth=1.0,
      label=f"seed {seed}",
    )
  drawing.step_axis(axes, int(max(points[-1, 0] for points in losses.values())))
  axes.set(ylabel="training loss", title="Training loss")
  figure.legend(loc="outside lower center", ncols=min(len(losses), 6), frameon=False)
  return figure


def losses_by_seed(scalars: Sequence[Mapping[str, Any]]) -> dict[int, np.ndarray]:
  """Returns {seed: [N, 2] of step and loss}, by step, of the points with a loss."""
  points: dict[int, list[tuple[float, float]]] = defaultdict(list)
  for scalar in scalars:
    value = scalar.get("loss")
    if value is not None and np.isfinite(value):
      points[int(scalar["seed"])].append((float(scalar["step"]), float(value)))
  return {seed: np.array(sorted(pairs)) for seed, pairs in points.items()}


def binned(points: np.ndarray, most: int = MAX_POINTS) -> np.ndarray:
  """Returns at most `most` means of neighbouring `points` [N, 2]."""
  bins = np.array_split(points, min(len(points), most))
  return np.array([part.mean(axis=0) for part in bins])


def mean_so_far(accuracy: np.ndarray) -> np.ndarray:
  """Returns [E, R], the mean of `accuracy` [E, R, T] over the tasks evaluated."""
  known = ~np.isnan(accuracy)
  count = known.sum(axis=-1)
  total = np.where(known, accuracy, 0).sum(axis=-1)
  return np.where(count > 0, total / np.maximum(count, 1), np.nan)
