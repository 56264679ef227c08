"""Reads from the environment which processes make up a run, without importing JAX."""

from collections.abc import Mapping
from typing import Any

from ebmjax.errors import ConfigError

_VARIABLES = ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID")


def explicit_arguments(environ: Mapping[str, str]) -> dict[str, Any] | None:
  """Returns jax.distributed.initialize's arguments by the variables, None without."""
  if _VARIABLES[1] not in environ:  # JAX's own detection may read the others
    return None
  missing = [name for name in _VARIABLES if not environ.get(name)]
  if missing:
    raise ConfigError(f"JAX_NUM_PROCESSES is set, and {missing[0]} is not; set both.")
  address, *numbers = (environ[name] for name in _VARIABLES)
  host, _, port = address.rpartition(":")
  if not all(text.isdecimal() for text in (*numbers, port)) or not host:
    raise ConfigError(
      "JAX_NUM_PROCESSES and JAX_PROCESS_ID must be whole numbers and "
      f"JAX_COORDINATOR_ADDRESS a host:port, not {numbers[0]!r}, {numbers[1]!r} and "
      f"{address!r}."
    )
  count, index = map(int, numbers)
  if count == 0:
    raise ConfigError("JAX_NUM_PROCESSES=0 is too small; give 1 or more.")
  if index >= count:
    raise ConfigError(
      f"JAX_PROCESS_ID={index} is too large; give 0 to {count - 1} to the {count} "
      "processes."
    )
  return {
    "coordinator_address": address,
    "num_processes": count,
    "process_id": index,
  }


def has_many_tasks(environ: Mapping[str, str]) -> bool:
  """Returns whether a scheduler that JAX knows has started several processes."""
  hosts = environ.get("TPU_WORKER_HOSTNAMES", "")
  return (
    # Set by srun for its tasks, and not in the batch script around it.
    ("SLURM_STEP_NODELIST" in environ and _count(environ, "SLURM_NTASKS") > 1)
    or _count(environ, "OMPI_COMM_WORLD_SIZE") > 1
    or "," in hosts
    or "JAX_COORDINATOR_ADDRESS" in environ
  )


def _count(environ: Mapping[str, str], name: str) -> int:
  """Returns the number of processes in a scheduler's variable, 1 without it."""
  text = environ.get(name) or "1"
  try:
    return int(text)
  except ValueError as error:
    raise ConfigError(
      f"{name}={text!r} is not a number of processes; unset it, or give "
      "--distributed=off for a run of one process."
    ) from error
