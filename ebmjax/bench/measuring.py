"""Rounds that alternate, and the figures made of them."""

import statistics
from collections.abc import Callable
from typing import Any

Rate = Callable[[], float]  # runs one round and returns its rate, per second
Rates = dict[str, list[float]]  # of every round, by what was timed
Row = dict[str, Any]

OURS = "ebmjax"
# What the name of a peer ends in where its images have this memory format.
CHANNELS_LAST = "+channels_last"


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


def make_row(case: str, rates: Rates) -> Row:
  """Returns rates, and ratios of ours to each other, of the strictest peers.

  A form that was timed in two memory formats counts with the faster one; the row then
  has the rates of all as `formats`, and lists where that format won as `channels_last`.
  """
  chosen = _strictest(rates)
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
  if any(name.endswith(CHANNELS_LAST) for name in rates):
    row["channels_last"] = [
      form for form, name in chosen.items() if name.endswith(CHANNELS_LAST)
    ]
    row["formats"] = {name: spread(rates[name]) for name in rates if name != OURS}
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


def _strictest(rates: Rates) -> dict[str, str]:
  """Returns {form: name}: of every form the name with the highest median rate."""
  chosen: dict[str, str] = {}
  for name, values in rates.items():
    form = name.removesuffix(CHANNELS_LAST)
    best = rates[chosen.setdefault(form, name)]
    if statistics.median(values) > statistics.median(best):
      chosen[form] = name
  return chosen
