"""The continual-learning methods, by name.

A method is one file with a factory, whose keyword-only parameters are its keys, and a
`MethodSpec`; a row of `METHODS` registers it. `find` also takes the import path of a
spec in another package.
"""

from typing import Any

from ebmjax.config.components import find_in
from ebmjax.methods._gradient import (
  Boundary,
  GradientState,
  Plugin,
  StepInputs,
  StepRecord,
  gradient_learner,
)
from ebmjax.methods.bgd import BGD
from ebmjax.methods.bir import BIR
from ebmjax.methods.ctn import CTN
from ebmjax.methods.dgr import DGR
from ebmjax.methods.er import ER
from ebmjax.methods.ewc import EWC, ONLINE_EWC
from ebmjax.methods.finetune import FINETUNE
from ebmjax.methods.generative import GENERATIVE
from ebmjax.methods.gss_greedy import GSS_GREEDY
from ebmjax.methods.icarl import ICARL
from ebmjax.methods.lwf import LWF
from ebmjax.methods.mas import MAS
from ebmjax.methods.ncm import NCM
from ebmjax.methods.pec import PEC
from ebmjax.methods.pgma import PGMA
from ebmjax.methods.ridge import RIDGE
from ebmjax.methods.si import SI
from ebmjax.methods.slda import SLDA
from ebmjax.methods.spec import MethodSpec, Setting, setting
from ebmjax.methods.sqda import SQDA
from ebmjax.types import Learner, Problem

__all__ = [
  "METHODS",
  "Boundary",
  "GradientState",
  "MethodSpec",
  "Plugin",
  "Setting",
  "StepInputs",
  "StepRecord",
  "find",
  "gradient_learner",
  "make",
  "setting",
]

METHODS: dict[str, MethodSpec] = {
  "finetune": FINETUNE,
  "ewc": EWC,
  "online_ewc": ONLINE_EWC,
  "si": SI,
  "lwf": LWF,
  "mas": MAS,
  "bgd": BGD,
  "er": ER,
  "gss_greedy": GSS_GREEDY,
  "icarl": ICARL,
  "ctn": CTN,
  "dgr": DGR,
  "bir": BIR,
  "pgma": PGMA,
  "ncm": NCM,
  "slda": SLDA,
  "sqda": SQDA,
  "ridge": RIDGE,
  "pec": PEC,
  "generative": GENERATIVE,
}


def find(name: str) -> MethodSpec:
  """Returns the spec of a method, by its name or the import path of its spec."""
  return find_in("method", METHODS, name, MethodSpec)


def make(name: str, problem: Problem, **settings: Any) -> Learner:
  """Returns a method with its defaults except for `settings`."""
  return find(name).make(problem, **settings)
