"""Runs several processes as one, on jax.distributed.

Every process runs the same program on its own devices. Process 0, the primary, alone
reads and writes the run's folder and prints. Small facts go through JAX's key-value
store, which needs no device and so also works while devices wait for each other. A
thread in every process watches that store: when a process fails or falls silent, all of
them end and the primary prints why. JAX's own heartbeats only serve as the last resort:
they abort the process with a stack trace.
"""

import itertools
import json
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from ebmjax.errors import ConfigError
from ebmjax.runtime import cluster

_T = TypeVar("_T")
_BEAT = 1.0  # seconds between two signs of life
_SILENCE = 30.0  # seconds without one, after which a process counts as dead
_GRACE = 5.0  # seconds that the primary waits for the others to end
_A_WEEK = 7 * 24 * 3600 * 1000  # milliseconds: the watch ends a wait that has no end
_CONNECTIONS = ("Gloo", "gloo", "NCCL", "Connection", "coordination")
WHEN = ("auto", "on", "off")


class _Team:
  """This process's part in the run; `client` is None where it runs alone."""

  client: Any = None
  index = 0
  count = 1
  said = 0  # how many facts the primary has sent to the others
  ending = threading.Lock()  # held by the thread that ends this process
  over = threading.Event()  # the run has ended, and the watch with it
  watch: threading.Thread


_team = _Team()


def start(when: str = "auto", timeout: int = 300) -> None:
  """Joins the other processes, if the environment or `when`, of WHEN, says so.

  JAX_NUM_PROCESSES, JAX_PROCESS_ID and JAX_COORDINATOR_ADDRESS name the processes.
  Without them JAX detects SLURM, Open MPI and TPU_WORKER_HOSTNAMES by itself. A Cloud
  TPU VM knows of the others only when asked: "on".
  """
  if when not in WHEN:
    raise ConfigError(
      f"--distributed={when} is unknown; the choices are {', '.join(WHEN)}."
    )
  if when == "off":
    return
  given = cluster.explicit_arguments(os.environ)
  if not (given or when == "on" or cluster.has_many_tasks(os.environ)):
    return
  import jax

  # It would handle SIGTERM as a request to save, and the process would outlive it.
  jax.config.update("jax_enable_preemption_service", False)
  try:
    jax.distributed.initialize(**(given or {}), initialization_timeout=timeout)
  except (RuntimeError, ValueError) as error:
    raise ConfigError(
      f"the processes of this run did not come together ({_line(error)}); check that "
      "all of them were started, know JAX_NUM_PROCESSES and JAX_PROCESS_ID and can "
      "reach JAX_COORDINATOR_ADDRESS, or give --distributed=off for a run of one."
    ) from error
  if jax.process_count() > 1:
    # The store is not a public part of JAX.
    from jax._src import distributed

    _team.client = distributed.global_state.client
    _team.index, _team.count = jax.process_index(), jax.process_count()
    _team.watch = threading.Thread(target=_watch, daemon=True)
    _team.watch.start()
  if not is_primary():
    logging.getLogger("ebmjax").setLevel(logging.ERROR)


def is_primary() -> bool:
  """Returns whether this process is process 0, which reads and writes for all."""
  return _team.index == 0


def is_multiprocess() -> bool:
  """Returns whether this process is one of several."""
  return _team.client is not None


def on_primary(make: Callable[[], Any]) -> Any:
  """Returns make() on process 0 and a no-op stand-in elsewhere."""
  return make() if is_primary() else _NoOp()


def broadcast_from_primary(make: Callable[[], _T]) -> _T:
  """Returns process 0's make() on every process; the value must survive JSON."""
  if _team.client is None:
    return make()
  _team.said += 1
  key = f"ebmjax/said/{_team.said}"
  if is_primary():
    value = make()
    _team.client.key_value_set(key, json.dumps(value))
    return value
  found: _T = json.loads(_team.client.blocking_key_value_get(key, _A_WEEK))
  return found


def primary_first(make: Callable[[], _T]) -> _T:
  """Returns make(), called on process 0 first and then on the others."""
  if not is_primary():
    wait_for_primary()
    return make()
  value = make()
  wait_for_primary()
  return value


def wait_for_primary() -> None:
  """Blocks until process 0 has come to this call, too."""
  broadcast_from_primary(lambda: None)


def _wait_for_all() -> None:
  if _team.client is not None:
    _team.said += 1
    _team.client.wait_at_barrier(f"ebmjax/met/{_team.said}", _A_WEEK)


def require_same(facts: dict[str, Any]) -> None:
  """Refuses facts that differ from those of process 0."""
  mine = json.loads(json.dumps(facts))
  theirs = broadcast_from_primary(lambda: mine)
  for name in mine:
    if mine[name] != theirs.get(name):
      raise ConfigError(
        f"process {_team.index} has {name}={mine[name]!r}, and process 0 has "
        f"{theirs.get(name)!r}; give all processes the same command and the same data."
      )
  _wait_for_all()  # process 0 continues only when the others have agreed


def end() -> None:
  """Leaves the run in order, when all processes have ended."""
  if _team.client is not None:
    import jax

    _team.over.set()
    _team.watch.join()
    jax.distributed.shutdown()


def fail(sentence: str, code: int) -> int:
  """Prints the sentence and returns `code`; of several processes, ends all."""
  if _team.client is None:
    print(sentence, file=sys.stderr)
    return code
  _end_all(sentence, code)


def describe_fault(error: Exception) -> str:
  """Prints the traceback of a fault in the program and returns a sentence on it.

  A broken connection needs no traceback: the other end has died.
  """
  if any(name in str(error) for name in _CONNECTIONS):
    return f"ebmjax: {_lost('another process')}"
  traceback.print_exception(error)
  return (
    f"ebmjax: process {_team.index} failed ({_line(error)}); see its output. The same "
    "command continues from the last checkpoint."
  )


class _NoOp:
  """Accepts any call and does nothing, in place of what reads and writes."""

  def __getattr__(self, name: str) -> Callable[..., None]:
    return lambda *arguments, **named: None

  def __enter__(self) -> "_NoOp":
    return self

  def __exit__(self, *exception: object) -> None:
    pass


def _watch() -> None:
  """Sends signs of life, and ends this process when another one has stopped."""
  heard: dict[str, tuple[str, float]] = {}
  for beat in itertools.count():
    if _team.over.wait(_BEAT):
      return
    try:
      _check_others(beat, heard)
    except Exception:  # the store is gone, and with it process 0
      print(f"ebmjax: {_lost('process 0')}", file=sys.stderr, flush=True)
      os._exit(1)


def _check_others(beat: int, heard: dict[str, tuple[str, float]]) -> None:
  """Ends all processes if one has failed or fallen silent.

  `heard` holds the last sign of life of each process, and when it came.
  """
  client, now = _team.client, time.monotonic()
  client.key_value_set(f"ebmjax/beat/{_team.index}", str(beat), allow_overwrite=True)
  for _, stop in client.key_value_dir_get("ebmjax/stop/"):
    _end_all(*json.loads(stop))
  if not is_primary():
    return
  for key, value in client.key_value_dir_get("ebmjax/beat/"):
    if key not in heard or heard[key][0] != value:
      heard[key] = (value, now)
    elif now - heard[key][1] > _SILENCE:
      silent = key.rsplit("/", 1)[-1]
      _end_all(f"ebmjax: {_lost(f'process {silent}')}", 1)


def _lost(process: str) -> str:
  return (
    f"{process} of the run has died or cannot be reached, so the run was stopped; the "
    "same command continues from the last checkpoint."
  )


def _end_all(sentence: str, code: int) -> NoReturn:
  """Ends this process and, through their watches, the others; process 0 prints."""
  _team.ending.acquire()  # never released: a second thread waits here for the end
  client, me = _team.client, _team.index
  try:
    # Whoever stopped before knows the cause; this process perhaps its consequence.
    for _, earlier in client.key_value_dir_get("ebmjax/stop/"):
      sentence, code = json.loads(earlier)
    stop = json.dumps([sentence, code])
    client.key_value_set(f"ebmjax/stop/{me}", stop, allow_overwrite=True)
    client.key_value_set(f"ebmjax/gone/{me}", "", allow_overwrite=True)
    if is_primary():
      print(sentence, file=sys.stderr, flush=True)
      # The store is in this process: the others must have read it before it goes.
      limit = time.monotonic() + _GRACE
      while time.monotonic() < limit:
        if len(client.key_value_dir_get("ebmjax/gone/")) == _team.count:
          break
        time.sleep(_BEAT / 10)
  finally:
    sys.stdout.flush()
    # Not by sys.exit: a collective that others have left would never let it go.
    os._exit(code)


def _line(error: BaseException) -> str:
  return f"{type(error).__name__}: {' '.join(str(error).split())[:200].rstrip('. ')}"
