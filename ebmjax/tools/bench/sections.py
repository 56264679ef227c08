"""The sections of the benchmark: what is measured for which cases, and its table."""

from collections.abc import Callable
from typing import Any, NamedTuple

from ebmjax.tools.bench import (
  curves,
  evaluating,
  inference,
  runs,
  share,
  sweep,
  tables,
  training,
)
from ebmjax.tools.bench.cases import INFERENCE, TRAINING, quick
from ebmjax.tools.bench.measuring import Row


class Options(NamedTuple):
  """What holds for all cases."""

  peer: str | None  # an interpreter that has torch
  rounds: int
  quick: bool


class Section(NamedTuple):
  """A kind of measurement."""

  title: str
  cases: tuple[Any, ...]
  measure: Callable[[Any, Options], Row]
  table: Callable[[list[Row]], str]


def _work(case: Any, options: Options) -> Any:
  """Returns the case with the work that a round of it has."""
  return quick(case) if options.quick else case


SECTIONS: dict[str, Section] = {
  "training": Section(
    "Training, steps per second",
    TRAINING,
    lambda case, o: training.measure(_work(case, o), o.peer, o.rounds),
    tables.table,
  ),
  "inference": Section(
    "Inference, images per second",
    INFERENCE,
    lambda case, o: inference.measure(_work(case, o), o.peer, o.rounds),
    tables.table,
  ),
  "seeds": Section(
    "Several seeds in one process, seed-steps per second",
    TRAINING,
    lambda case, o: sweep.measure(_work(case, o), o.rounds),
    tables.seeds_table,
  ),
  "evaluation": Section(
    "Evaluation of the whole test set",
    TRAINING,
    lambda case, o: evaluating.measure(case, o.rounds),
    tables.evaluation_table,
  ),
  "share": Section(
    "Share of the machine's matrix products, GFLOP/s",
    TRAINING,
    lambda case, o: share.measure(_work(case, o), o.rounds),
    tables.share_table,
  ),
  "runs": Section(
    "Whole processes, and shares of a whole run",
    TRAINING,
    lambda case, o: runs.measure(case, o.quick),
    tables.runs_table,
  ),
  "curves": Section(
    "Growth with size, milliseconds a batch",
    curves.POINTS,
    lambda point, o: curves.measure(point, o.peer, o.rounds),
    tables.curves_table,
  ),
}
USUAL = tuple(name for name in SECTIONS if name != "curves")
