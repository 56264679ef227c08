"""Stops a run whose numbers are no longer finite, with what to lower."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from ebmjax import methods
from ebmjax.config import lookup
from ebmjax.errors import DivergenceError

# Of config.method: what makes a run diverge where it is too large.
_RUN_AWAY = ("std_init", "step_size", "context_rate", "strength")


def check_losses(
  config: ConfigDict, seeds: Sequence[int], losses: np.ndarray, first: int
) -> None:
  """Raises where one of losses [R, S], of the steps from `first` on, is not finite."""
  bad = np.argwhere(~np.isfinite(losses))
  if bad.size:
    run, offset = bad[np.argmin(bad[:, 1])]
    raise _diverged(config, "the loss", seeds[run], f"at step {first + offset}")


def check_energies(
  config: ConfigDict,
  seeds: Sequence[int],
  counts: Iterable[Mapping[str, Any]],
  step: int,
) -> None:
  """Raises where an energy is not finite: what the last update did, no loss has seen.

  `counts` are those of each evaluated task, with energy_sum [R, C, C].
  """
  for found in counts:
    finite = np.isfinite(np.asarray(found["energy_sum"])).all(axis=(1, 2))
    if not finite.all():
      seed = seeds[int(np.argmin(finite))]
      raise _diverged(config, "an energy", seed, f"after step {step}")


def what_diverges(config: ConfigDict) -> str:
  """Returns the keys, with their values, whose size makes a method run away."""
  uses_optimiser = methods.find(config.method.name).uses_optimiser
  keys = ["optimiser.learning_rate"] * uses_optimiser
  keys += [f"method.{key}" for key in _RUN_AWAY if key in config.method]
  return " or ".join(f"config.{key} (now {lookup(config, key)})" for key in keys)


def _diverged(config: ConfigDict, what: str, seed: int, when: str) -> DivergenceError:
  return DivergenceError(
    f"{what} of {config.method.name} with seed {seed} is not finite {when}; lower "
    f"{what_diverges(config)} and use a new --workdir. The last checkpoint is kept."
  )
