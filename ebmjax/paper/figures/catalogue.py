"""Every figure by its name."""

from ebmjax.paper.figures import (
  accuracy,
  capacity,
  confusion,
  forgetting,
  labels,
  landscapes,
  tasks,
)
from ebmjax.paper.figures.spec import FigureSpec

FIGURES: dict[str, FigureSpec] = {
  "accuracy_over_training": accuracy.SPEC,
  "energy_landscapes": landscapes.SPEC,
  "predicted_labels": labels.SPEC,
  "confusion": confusion.SPEC,
  "capacity": capacity.SPEC,
  "number_of_tasks": tasks.SPEC,
  "forgetting": forgetting.SPEC,
}
