"""What a training step asks of an accelerator: computed from its program, not measured.

FLOPs are those of `runtime.flops`. Bytes are the least that must pass through memory:
the factors and results of every product and convolution, and the state, once read and
once written; what is computed number by number in between counts as fused. The steps
per second are what the slower of the two allows: an upper bound, which launching
kernels alone keeps small steps away from.
"""

from typing import Any, NamedTuple

import jax

from ebmjax.config import flat_keys
from ebmjax.runtime import flops
from ebmjax.runtime.budget import batch_shapes
from ebmjax.runtime.memory import num_bytes
from ebmjax.tools.bench.cases import TRAINING, Training, load, make_training
from ebmjax.tools.bench.flops import products
from ebmjax.tools.bench.measuring import Options, Row
from ebmjax.tools.bench.tables import number

TITLE = "A step of one seed on accelerators, computed and not measured"
CASES = TRAINING


class Device(NamedTuple):
  """What its maker states."""

  name: str
  flops: float  # a second, of products in TF32, which JAX takes there by default
  bytes: float  # a second


DEVICES = (
  Device("NVIDIA A100 (40 GB)", 156e12, 1555e9),
  Device("NVIDIA H100 (SXM)", 495e12, 3350e9),
)


def measure(case: Training, options: Options) -> Row:
  """Returns the FLOPs and bytes of a step, and the steps a second of each device."""
  del options
  key = "network.conv_form"
  native = ((key, "native"),) if key in flat_keys(load(case.config)) else ()
  spec = make_training(case._replace(changes=(*case.changes, *native)))
  state = jax.eval_shape(spec.learner.init, spec.tables.key[0])
  arguments = (state, spec.tables.key[0], batch_shapes(spec))
  operations = flops.count(spec.learner.step, *arguments)
  jaxpr = jax.make_jaxpr(spec.learner.step)(*arguments).jaxpr
  passed = traffic(jaxpr) + 2 * num_bytes(state)
  return {
    "case": case.name,
    "flops": operations,
    "bytes": passed,
    "steps_per_second": {
      device.name: min(device.flops / operations, device.bytes / passed)
      for device in DEVICES
    },
    "bound": {device.name: _bound(device, operations, passed) for device in DEVICES},
  }


def traffic(jaxpr: Any) -> int:
  """Returns the bytes of the factors and results of all products, loops included."""
  return sum(
    times * num_bytes([v.aval for v in (*equation.invars, *equation.outvars)])
    for equation, times in products(jaxpr)
  )


def _bound(device: Device, operations: float, passed: float) -> str:
  by_memory = passed / device.bytes > operations / device.flops
  return "memory" if by_memory else "products"


def cells(row: Row) -> dict[str, str]:
  """Returns a row of the table."""
  shown = {
    "GFLOP a step": f"{row['flops'] / 1e9:.3g}",
    "MB a step": f"{row['bytes'] / 1e6:.3g}",
    "FLOP a byte": number(row["flops"] / row["bytes"]),
  }
  for name, rate in row["steps_per_second"].items():
    shown[f"{name}, steps per second"] = f"{number(rate)} ({row['bound'][name]})"
  return shown


TABLES = (cells,)
