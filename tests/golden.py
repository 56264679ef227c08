"""Energies, losses and gradients of the released PyTorch networks at given weights."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

GOLDEN: dict[str, Any] = json.loads(
  (Path(__file__).parent / "golden_energies.json").read_text()
)


def golden_tensors(name: str) -> tuple[dict[str, np.ndarray], np.ndarray]:
  """Returns {tensor: array} and the input x of a golden network, in float64.

  One generator runs through all networks of the file in their order: weights uniform in
  +-1/sqrt(fan_in), the label embedding standard normal, then x.
  """
  rng = np.random.RandomState(GOLDEN["_seed"])
  for network in (key for key in GOLDEN if not key.startswith("_")):
    entry = GOLDEN[network]
    tensors = {tensor: _draw(rng, tensor, entry["shapes"]) for tensor in entry["order"]}
    if "input_size" in entry:
      x = rng.uniform(0, 1, (4, entry["input_size"]))
    else:
      x = rng.standard_normal((2, 3, 32, 32))
    if network == name:
      return tensors, x
  raise KeyError(name)


def assert_gradients(found: Mapping[str, Any], golden: Mapping[str, Any]) -> None:
  """Compares sum, sum of magnitudes and first elements in PyTorch's memory order."""
  assert found.keys() == golden.keys()
  for tensor, expected in golden.items():
    gradient = np.asarray(found[tensor])
    magnitude = np.abs(gradient).sum()
    got = [gradient.sum(), magnitude, *gradient.ravel()[:3]]
    want = [expected["sum"], expected["abs_sum"], *expected["first"]]
    # A sum that cancels is only as exact as what it sums.
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-12 * magnitude + 1e-15)


def _draw(
  rng: np.random.RandomState, tensor: str, shapes: dict[str, Any]
) -> np.ndarray:
  if tensor == "y_ebm.weight":
    return rng.standard_normal(shapes[tensor])
  fan_in = np.prod(shapes[tensor.split(".")[0] + ".weight"][1:])
  return rng.uniform(-(fan_in**-0.5), fan_in**-0.5, shapes[tensor])
