"""An objective: negatives drawn for a batch, their energies, and a loss of them."""

from collections.abc import Callable
from typing import Protocol

import jax
from jax import Array

from ebmjax.config.schema import choices_sentence
from ebmjax.errors import ConfigError
from ebmjax.losses import LOSSES
from ebmjax.negatives import NEGATIVES
from ebmjax.types import Batch, PyTree

EnergiesOfLabels = Callable[[Array], tuple[Array, PyTree]]


class Objective(Protocol):
  """A training objective of one batch."""

  def __call__(
    self, energies: EnergiesOfLabels, key: Array, batch: Batch
  ) -> tuple[Array, PyTree]:
    """Returns losses [B] and the network's new state.

    `energies` maps candidate labels [B, K] to their energies [B, K] and that state.
    """
    ...


def make(name: str, negatives: str) -> Objective:
  """Returns the objective `name` over candidates drawn by `negatives`."""
  for given, known in ((name, LOSSES), (negatives, NEGATIVES)):
    if given not in known:
      raise ConfigError(f"{given!r} is unknown; {choices_sentence(given, known)}")
  draw, loss = NEGATIVES[negatives], LOSSES[name]
  takes_key = name == "joint_pairs"

  def objective(
    energies: EnergiesOfLabels, key: Array, batch: Batch
  ) -> tuple[Array, PyTree]:
    draw_key, loss_key = jax.random.split(key)
    labels, valid = draw(draw_key, batch)
    values, model_state = energies(labels)
    extra = {"key": loss_key} if takes_key else {}
    return loss(values, valid, **extra), model_state

  return objective
