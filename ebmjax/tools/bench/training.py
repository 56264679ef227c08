"""Times training steps, ours and the peer's."""

import time
from contextlib import ExitStack

from ebmjax.runtime import scan
from ebmjax.runtime.trainer import RunSpec, Trainer
from ebmjax.tools.bench import peer
from ebmjax.tools.bench.cases import Training, make_training
from ebmjax.tools.bench.measuring import OURS, Rate, Row, interleave, make_row


def ours(spec: RunSpec, steps: int) -> Rate:
  """Returns a function that trains all seeds `steps` steps, to seed-steps a second."""
  machine = Trainer(spec)
  chunk = next(scan.chunks(spec.stream, 0, steps, steps))
  machine.train(chunk)  # compiles

  def rate() -> float:
    begun = time.perf_counter()
    machine.train(chunk)
    return len(spec.seeds) * steps / (time.perf_counter() - begun)

  return rate


def measure(case: Training, peer_python: str | None, rounds: int) -> Row:
  """Returns the case's rates in steps per second, and the ratios of its rounds."""
  spec = make_training(case)
  with ExitStack() as until:
    runners, failed = {OURS: ours(spec, case.steps)}, list[str]()
    if peer_python:
      others, failed = peer.start(peer_python, spec, "training", case.steps, until)
      runners |= others
    return make_row(case.name, interleave(runners, rounds), failed)
