"""The continual-learning methods, by name."""

from collections.abc import Callable

from ebmjax.methods.finetune import finetune
from ebmjax.types import Learner

# Each takes (network, objective, tx, config.method) and returns a Learner.
METHODS: dict[str, Callable[..., Learner]] = {
  "finetune": finetune,
}
