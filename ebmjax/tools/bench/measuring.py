"""Rounds that alternate, and the figures made of them."""

import statistics
from collections.abc import Callable, Sequence
from typing import Any

Rate = Callable[[], float]  # runs one round and returns its rate, per second
Rates = dict[str, list[float]]  # of every round, by what was timed
Row = dict[str, Any]

OURS = "ebmjax"
# What is added to the name of a form: its images' memory format, and how it is run.
CHANNELS_LAST = "+channels_last"
EAGER = "+eager"
COMPILED = "+compiled"


def interleave(runners: dict[str, Rate], rounds: int) -> Rates:
  """Returns the rates of all runners, which take turns in every round."""
  rates: Rates = {name: [] for name in runners}
  for _ in range(rounds):
    for name, one_round in runners.items():
      rates[name].append(one_round())
  return rates


def spread(values: list[float]) -> dict[str, float]:
  """Returns median, min and max."""
  return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def lasting(one_round: Rate, amount: float, seconds: float) -> Rate:
  """Returns `one_round` as often as fills `seconds`; to the rate over all of them.

  A round does `amount` of what its rate counts. One is run here to see how long it is.
  """
  times = max(1, round(seconds * one_round() / amount))
  return lambda: statistics.harmonic_mean([one_round() for _ in range(times)])


def make_row(case: str, rates: Rates, failed: Sequence[str] = ()) -> Row:
  """Returns rates, and ratios of ours to each other, of the strictest peers.

  A form that was timed in several ways (memory formats, eager and compiled) counts with
  the fastest; the row then has the rates of all as `ways`, those that could not be run
  as `failed`, and which one won as `won`.
  """
  chosen = strictest(rates)
  ours = rates[OURS]
  row: Row = {
    "case": case,
    "rounds": len(ours),
    "rate": {form: spread(rates[name]) for form, name in chosen.items()},
    "ratio": {
      form: spread([a / b for a, b in zip(ours, rates[name], strict=True)])
      for form, name in chosen.items()
      if form != OURS
    },
  }
  if any("+" in name for name in rates):
    row["won"] = {form: name for form, name in chosen.items() if "+" in name}
    row["ways"] = {name: spread(rates[name]) for name in rates if "+" in name}
    row["failed"] = list(failed)
  return row


def make_time_row(case: str, rates: Rates) -> Row:
  """Returns rates of two, and the ratio of the first one's time to the second's."""
  (_, first), (name, second) = rates.items()
  times = [b / a for a, b in zip(first, second, strict=True)]
  return {
    "case": case,
    "rounds": len(first),
    "rate": {name: spread(values) for name, values in rates.items()},
    "ratio": {f"time_over_{name}": spread(times)},
  }


def strictest(rates: Rates) -> dict[str, str]:
  """Returns {form: name}: of every form the name with the highest median rate."""
  chosen: dict[str, str] = {}
  for name, values in rates.items():
    form = name.partition("+")[0]
    best = rates[chosen.setdefault(form, name)]
    if statistics.median(values) > statistics.median(best):
      chosen[form] = name
  return chosen
