"""What is to be known of each method before it is made, in one table."""

from typing import NamedTuple


class Traits(NamedTuple):
  """What the rules of a configuration and the machinery ask about a method."""

  # What it reads of config.method, beside its name and `consolidate_every`, which has a
  # rule of its own; None: not known.
  keys: tuple[str, ...] | None = None
  boundaries: bool = False  # it consolidates where a task ends
  periodic: bool = False  # or every so many steps, where no end is told
  mixes: bool = False  # its batches hold several tasks, with one set of candidates
  joins: bool = False  # old rows stand in the batch itself, where negatives are sought
  optimiser: bool = True  # it reads config.optimiser


TRAITS: dict[str, Traits] = {
  "finetune": Traits(()),
  "ewc": Traits(("strength", "fisher", "fisher_samples"), boundaries=True),
  "online_ewc": Traits(
    ("strength", "decay", "fisher", "fisher_samples"), boundaries=True, periodic=True
  ),
  "si": Traits(
    ("strength", "damping", "path_gradient"), boundaries=True, periodic=True
  ),
  "lwf": Traits(("temperature", "distillation"), boundaries=True, periodic=True),
  "mas": Traits(("strength", "importance"), boundaries=True, periodic=True),
  "bgd": Traits(("std_init", "step_size", "draws"), optimiser=False),
  "er": Traits(
    ("budget", "quota", "replay_weights"),
    boundaries=True,
    periodic=True,
    mixes=True,
    joins=True,
  ),
  "gss_greedy": Traits(("budget", "repeats", "directions"), mixes=True),
  "icarl": Traits(("temperature", "budget"), boundaries=True, mixes=True, joins=True),
  "ctn": Traits(
    ("strength", "temperature", "budget", "repeats", "inner_steps", "context_rate"),
    boundaries=True,
  ),
  "dgr": Traits(
    ("generator_hidden", "latent"), boundaries=True, mixes=True, joins=True
  ),
  "bir": Traits(
    ("temperature", "generator_hidden", "latent", "gate_off"),
    boundaries=True,
    mixes=True,
  ),
  "pgma": Traits(
    (
      *("strength", "repeats", "adapted", "dreams", "latent"),
      *("generator", "generator_hidden", "generator_channels"),
    ),
    boundaries=True,
  ),
}


def traits(method: str) -> Traits:
  """Returns the traits of `method`; of one that is not in the table, the defaults."""
  return TRAITS.get(method, Traits())
