"""The learners of the battery's small problem, by (method, network, ...)."""

from typing import Any

from ebmjax import methods
from ebmjax.testing.methods import ADAM, Trial, make_learner, make_trial

# Of the methods that have these keys.
_SIZES: dict[str, Any] = {
  "budget": 12,
  "std_init": 0.05,
  "generator_hidden": 8,
  "latent": 3,
  "num_generated_units": 5,
  "replay_batch": 6,
}


def trial_of(case: tuple[str, ...], **settings: Any) -> Trial:
  """Returns the trial of (method, network[, objective, negatives])."""
  spec = methods.find(case[0])
  sizes = {name: value for name, value in _SIZES.items() if name in spec.keys}
  return make_trial(spec, *case[1:], **sizes | settings)


def make(case: tuple[str, ...], tx: Any = ADAM, **settings: Any) -> Any:
  """Returns the learner of (method, network[, objective, negatives])."""
  return make_learner(trial_of(case, **settings), tx)
