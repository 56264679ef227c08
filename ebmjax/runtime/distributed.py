"""Several processes as one run, on JAX's own distributed runtime.

Every process runs the same program on its own devices. The first alone writes: what
others would write is silently not written, and what it reads it tells the others. Small
facts go through the runtime's store of keys, which needs no device and so also works
while devices wait for each other. A thread in every process watches that store: when
any process stops on an error, or falls silent, all of them end, and the first says why.
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
from ebmjax.runtime import joining

_T = TypeVar("_T")
_BEAT = 1.0  # seconds between two signs of life
_SILENCE = 30.0  # seconds without one, after which a process is taken for dead
_GRACE = 5.0  # seconds that the first process waits for the others to end
_A_WEEK = 7 * 24 * 3600 * 1000  # milliseconds; the watch ends a wait that is in vain
_CONNECTIONS = ("Gloo", "gloo", "NCCL", "Connection", "coordination")
WHEN = ("auto", "on", "off")


class _Team:
  """This process's part in the run; `client` is None where it runs alone."""

  client: Any = None
  index = 0
  count = 1
  said = 0  # how often the first process has told the others something
  ending = threading.Lock()  # held by the thread that ends this process
  over = threading.Event()  # the run has come to its end, and the watch with it
  watch: threading.Thread


_team = _Team()


def start(when: str = "auto", timeout: int = 300) -> None:
  """Joins the other processes, if the environment or `when`, of WHEN, says so.

  With JAX_NUM_PROCESSES, JAX_PROCESS_ID and JAX_COORDINATOR_ADDRESS as they say; under
  SLURM and Open MPI, and where TPU_WORKER_HOSTNAMES names several, as JAX finds out by
  itself. A Cloud TPU VM tells of the others only when asked: "on".
  """
  if when not in WHEN:
    raise ConfigError(
      f"--distributed={when} is unknown; the choices are {', '.join(WHEN)}."
    )
  if when == "off":
    return
  given = joining.spelt_out(os.environ)
  if not (given or when == "on" or joining.many_tasks(os.environ)):
    return
  import jax

  # It would take SIGTERM for a wish to save, and the process would outlive it.
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
    # The store is no public part of JAX, whose version pyproject.toml bounds.
    from jax._src import distributed

    _team.client = distributed.global_state.client
    _team.index, _team.count = jax.process_index(), jax.process_count()
    _team.watch = threading.Thread(target=_watch, daemon=True)
    _team.watch.start()
  if not is_first():
    logging.getLogger("ebmjax").setLevel(logging.ERROR)


def is_first() -> bool:
  """Returns whether this process is the one that writes."""
  return _team.index == 0


def several() -> bool:
  """Returns whether this process is one of several."""
  return _team.client is not None


def only_first(make: Callable[[], Any]) -> Any:
  """Returns make() in the first process, and in others what takes any call in vain."""
  return make() if is_first() else _Silent()


def from_first(make: Callable[[], _T]) -> _T:
  """Returns make() of the first process, in all of them; it must go through JSON."""
  if _team.client is None:
    return make()
  _team.said += 1
  key = f"ebmjax/said/{_team.said}"
  if is_first():
    value = make()
    _team.client.key_value_set(key, json.dumps(value))
    return value
  found: _T = json.loads(_team.client.blocking_key_value_get(key, _A_WEEK))
  return found


def after_first(make: Callable[[], _T]) -> _T:
  """Returns make(), which the others call when the first process has finished it."""
  if not is_first():
    wait_for_first()
    return make()
  value = make()
  wait_for_first()
  return value


def wait_for_first() -> None:
  """Comes back when the first process has come to this place, too."""
  from_first(lambda: None)


def _wait_for_all() -> None:
  if _team.client is not None:
    _team.said += 1
    _team.client.wait_at_barrier(f"ebmjax/met/{_team.said}", _A_WEEK)


def require_same(facts: dict[str, Any]) -> None:
  """Refuses where a fact differs from the first process's."""
  mine = json.loads(json.dumps(facts))
  theirs = from_first(lambda: mine)
  for name in mine:
    if mine[name] != theirs.get(name):
      raise ConfigError(
        f"process {_team.index} has {name}={mine[name]!r}, and process 0 has "
        f"{theirs.get(name)!r}; give all processes the same command and the same data."
      )
  _wait_for_all()  # nor does the first go on before the others have agreed


def end() -> None:
  """Leaves the run in order, when all processes have come to their end."""
  if _team.client is not None:
    import jax

    _team.over.set()
    _team.watch.join()
    jax.distributed.shutdown()


def fail(sentence: str, code: int) -> int:
  """Returns `code` after printing the sentence; among others, ends all of them."""
  if _team.client is None:
    print(sentence, file=sys.stderr)
    return code
  _end_all(sentence, code)


def describe_fault(error: Exception) -> str:
  """Returns the sentence for an error that is no user's fault, after its traceback.

  A connection that broke needs none: the other end has died.
  """
  if any(name in str(error) for name in _CONNECTIONS):
    return f"ebmjax: {_lost('another process')}"
  traceback.print_exception(error)
  return (
    f"ebmjax: process {_team.index} failed ({_line(error)}); see its output. The same "
    "command goes on from the last checkpoint."
  )


class _Silent:
  """Stands where the first process has something that reads and writes."""

  def __getattr__(self, name: str) -> Callable[..., None]:
    return lambda *arguments, **named: None

  def __enter__(self) -> "_Silent":
    return self

  def __exit__(self, *exception: object) -> None:
    pass


def _watch() -> None:
  """Gives signs of life, and ends this process when another has stopped."""
  heard: dict[str, tuple[str, float]] = {}
  for beat in itertools.count():
    if _team.over.wait(_BEAT):
      return
    try:
      _look_around(beat, heard)
    except Exception:  # the store is gone, and with it the first process
      print(f"ebmjax: {_lost('process 0')}", file=sys.stderr, flush=True)
      os._exit(1)


def _look_around(beat: int, heard: dict[str, tuple[str, float]]) -> None:
  """Ends all if one has stopped, or if one has been silent; `heard` is kept by key."""
  client, now = _team.client, time.monotonic()
  client.key_value_set(f"ebmjax/beat/{_team.index}", str(beat), allow_overwrite=True)
  for _, stop in client.key_value_dir_get("ebmjax/stop/"):
    _end_all(*json.loads(stop))
  if not is_first():
    return
  for key, value in client.key_value_dir_get("ebmjax/beat/"):
    if key not in heard or heard[key][0] != value:
      heard[key] = (value, now)
    elif now - heard[key][1] > _SILENCE:
      lost = key.rsplit("/", 1)[-1]
      _end_all(f"ebmjax: {_lost(f'process {lost}')}", 1)


def _lost(process: str) -> str:
  return (
    f"{process} of the run has died or cannot be reached, so the run was stopped; the "
    "same command goes on from the last checkpoint."
  )


def _end_all(sentence: str, code: int) -> NoReturn:
  """Ends this process and, through their watches, the others; the first prints."""
  _team.ending.acquire()  # never released: a second thread waits here for the end
  client, me = _team.client, _team.index
  try:
    # Whoever stopped before knows the cause; this process perhaps its consequence.
    for _, earlier in client.key_value_dir_get("ebmjax/stop/"):
      sentence, code = json.loads(earlier)
    stop = json.dumps([sentence, code])
    client.key_value_set(f"ebmjax/stop/{me}", stop, allow_overwrite=True)
    client.key_value_set(f"ebmjax/gone/{me}", "", allow_overwrite=True)
    if is_first():
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
