"""The budget of a run, as every output shows it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ebmjax.report import labels


class Cost(NamedTuple):
  """One number in a run's budget."""

  name: str  # its key in the budget of results.json
  title: str
  unit: str
  definition: str  # one sentence


COSTS = (
  Cost("parameters", "Parameters", "", "Numbers that training changes."),
  Cost(
    "training_flops",
    "Training",
    "FLOP",
    "All training of one seed, including the work at the end of tasks.",
  ),
  Cost(
    "bytes_kept",
    "Kept between tasks",
    "B",
    "State other than the network and its optimiser: stored images, importances, old "
    "networks, generators, class statistics.",
  ),
  Cost(
    "inference_flops",
    "Prediction",
    "FLOP",
    "To compute the energies of all labels of one image.",
  ),
)


def rows(results: Mapping[str, Any]) -> dict[Cost, str]:
  """Returns the costs in results, such as "1.69 TFLOP"; older results lack them."""
  found = results.get("budget")
  known = found if isinstance(found, Mapping) else {}
  return {
    cost: labels.amount(known[cost.name], cost.unit)
    for cost in COSTS
    if isinstance(known.get(cost.name), int)
  }
