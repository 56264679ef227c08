"""Runs ebmjax.main in this process and writes down what compiling took.

  python -m ebmjax.tools.bench.probe OUT.json SPAWNED [arguments of ebmjax.main]

SPAWNED is the time (seconds since the epoch) at which the process was started.
"""

import json
import resource
import sys
import time
from pathlib import Path

# What JAX tells the duration of: reading a compiled program back is part of the last.
_EVENTS = (
  "/jax/core/compile/jaxpr_trace_duration",
  "/jax/core/compile/jaxpr_to_mlir_module_duration",
  "/jax/core/compile/backend_compile_duration",
)


def main(arguments: list[str]) -> int:
  """Returns the exit code of the run."""
  out, spawned, *rest = arguments
  import jax.monitoring

  from ebmjax import experiment  # noqa: F401 -- its import is part of the start
  from ebmjax.main import main as run

  spans: list[tuple[float, float]] = []

  def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
    if event in _EVENTS:
      now = time.perf_counter()
      spans.append((now - duration_secs, now))

  jax.monitoring.register_event_duration_secs_listener(listen)
  before = time.time() - float(spawned)
  code = run(rest)
  found = {
    "seconds_before": before,
    "seconds_compiling": covered(spans),
    "peak_memory_mb": peak_memory(),
  }
  Path(out).write_text(json.dumps(found))
  return code


def peak_memory() -> float:
  """Returns the most megabytes that this process has held.

  Linux counts the memory of the process that started this one into ru_maxrss, so that
  its own account comes first.
  """
  status = Path("/proc/self/status")
  lines = status.read_text().splitlines() if status.exists() else []
  for line in lines:
    if line.startswith("VmHWM:"):
      return int(line.split()[1]) / 1024
  unit = 1024**2 if sys.platform == "darwin" else 1024
  return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def covered(spans: list[tuple[float, float]]) -> float:
  """Returns how much time the spans cover; what lies inside another counts once."""
  total, reached = 0.0, float("-inf")
  for begin, end in sorted(spans):
    total += max(0.0, end - max(begin, reached))
    reached = max(reached, end)
  return total


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
