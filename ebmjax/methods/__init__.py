"""The continual-learning methods, by name."""

from collections.abc import Callable
from typing import Any

from ebmjax.config import default
from ebmjax.methods._gradient import Addition, GradientState, Move, gradient_learner
from ebmjax.methods.bgd import bgd
from ebmjax.methods.bir import bir
from ebmjax.methods.ctn import ctn
from ebmjax.methods.dgr import dgr
from ebmjax.methods.er import er
from ebmjax.methods.ewc import ewc, online_ewc
from ebmjax.methods.finetune import finetune
from ebmjax.methods.gss_greedy import gss_greedy
from ebmjax.methods.icarl import icarl
from ebmjax.methods.lwf import lwf
from ebmjax.methods.mas import mas
from ebmjax.methods.pgma import pgma
from ebmjax.methods.si import si
from ebmjax.types import Learner, Problem

__all__ = [
  "METHODS",
  "Addition",
  "GradientState",
  "Move",
  "gradient_learner",
  "make",
]

# Each takes a Problem and config.method.
METHODS: dict[str, Callable[[Problem, Any], Learner]] = {
  "finetune": finetune,
  "ewc": ewc,
  "online_ewc": online_ewc,
  "si": si,
  "lwf": lwf,
  "mas": mas,
  "bgd": bgd,
  "er": er,
  "gss_greedy": gss_greedy,
  "icarl": icarl,
  "ctn": ctn,
  "dgr": dgr,
  "bir": bir,
  "pgma": pgma,
}


def make(name: str, problem: Problem, **settings: Any) -> Learner:
  """Returns a method with the defaults of config.method but for `settings`."""
  config = default().method.lock()
  config.update(settings)
  return METHODS[name](problem, config)
