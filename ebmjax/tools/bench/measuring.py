"""Rounds that alternate, and the figures made of them."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

Rate = Callable[[], float]  # runs one round and returns its rate, per second
Rates = dict[str, list[float]]  # of every round, by what was timed
Row = dict[str, Any]
Spread = dict[str, float]  # median, min and max

OURS = "ebmjax"
# What is added to the name of a form: its images' memory format, and how it is run.
CHANNELS_LAST = "+channels_last"
EAGER = "+eager"
COMPILED = "+compiled"


class Options(NamedTuple):
  """What holds for all cases."""

  peer: str | None = None  # an interpreter that has torch
  rounds: int = 1
  quick: bool = False


def timed(work: Callable[[], object], amount: float) -> Rate:
  """Returns a function that does `work`, `amount` of what its rate counts.

  It is done once here, to compile it.
  """
  work()

  def rate() -> float:
    begun = time.perf_counter()
    work()
    return amount / (time.perf_counter() - begun)

  return rate


def interleave(runners: dict[str, Rate], rounds: int) -> Rates:
  """Returns the rates of all runners, which take turns in every round."""
  rates: Rates = {name: [] for name in runners}
  for _ in range(rounds):
    for name, one_round in runners.items():
      rates[name].append(one_round())
  return rates


def spread(values: list[float]) -> Spread:
  """Returns median, min and max."""
  return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def compare(
  case: str, runners: dict[str, Rate], rounds: int, failed: Sequence[str] = ()
) -> Row:
  """Returns rates, and ratios of ours to each other, of the strictest peers.

  A form that was timed in several ways (memory formats, eager and compiled) counts with
  the fastest; the row then has the rates of all as `ways`, those that could not be run
  as `failed`, and which one won as `won`.
  """
  rates = interleave(runners, rounds)
  chosen = strictest(rates)
  ours = rates[OURS]
  row: Row = {
    "case": case,
    "rounds": rounds,
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


def strictest(rates: Rates) -> dict[str, str]:
  """Returns {form: name}: of every form the name with the highest median rate."""
  chosen: dict[str, str] = {}
  for name, values in rates.items():
    form = name.partition("+")[0]
    best = rates[chosen.setdefault(form, name)]
    if statistics.median(values) > statistics.median(best):
      chosen[form] = name
  return chosen
