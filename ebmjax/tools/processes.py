"""Runs an experiment in several processes on this machine, as if on several hosts.

  ebmjax launch --processes=2 --devices=2 -- \\
      --config=configs/splitmnist.py --config.seeds=4 --workdir=runs/split

Everything after `--` is the command line of `ebmjax run`. Each process gets --devices
devices: virtual ones on a CPU, or GPUs of this machine (by default an equal share of
those that CUDA_VISIBLE_DEVICES or the driver lists). The output of the first process is
shown; that of the others goes to --logs, and is shown if they fail. If a process dies,
the others are stopped; the same command resumes from the last checkpoint.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from ebmjax.config import loading
from ebmjax.errors import BusyError, ConfigError, UsageError, UserError
from ebmjax.paths import expand
from ebmjax.runtime import failures
from ebmjax.runtime.terminal import (
  Parser,
  run_cli,
  whole_number,
)

_PATIENCE = 15.0  # seconds that processes get to end by themselves
_TAIL = 20  # lines shown of a failed process's output
# Exit codes of a process that has explained its failure in a sentence.
_EXPLAINED = {kind.exit_code for kind in (UserError, UsageError, BusyError)}


def main(arguments: Sequence[str]) -> int:
  """Runs all processes and returns the overall exit code."""

  def work() -> int:
    given, rest = _parse(list(arguments))
    gpus = [] if given.platform == "cpu" else _gpus()
    environments = _environments(given.processes, given.devices, gpus)
    with tempfile.TemporaryDirectory() as folder:
      logs = _make_logs(given.logs or Path(folder), given.processes)
      return _Team(environments, rest, logs).run()

  return run_cli("launch", work)


class _Team:
  """Runs the processes and ends all of them if one fails."""

  def __init__(
    self, environments: list[dict[str, str]], rest: list[str], logs: list[Path]
  ) -> None:
    self._logs = logs
    self._asked = 0  # the signal that this launcher received
    self._members: list[subprocess.Popen[bytes]] = []
    for number in (signal.SIGINT, signal.SIGTERM):
      signal.signal(number, self._forward)
    command = [sys.executable, "-u", "-m", "ebmjax.main", *rest]
    for i, environment in enumerate(environments):
      log = self._logs[i].open("wb") if i > 0 else None
      # In a session of its own, it gets the terminal's signals from the launcher.
      self._members.append(
        subprocess.Popen(
          command,
          env=os.environ | environment,
          stdout=log or subprocess.PIPE,
          stderr=log,  # None: that of the launcher
          start_new_session=True,
        )
      )
      if log is not None:
        log.close()
    self._printer = threading.Thread(target=self._print_first, daemon=True)
    self._printer.start()

  def run(self) -> int:
    """Waits for all processes and returns the overall exit code."""
    while not self._failed() and any(code is None for code in self._codes()):
      time.sleep(0.05)
    failed = self._failed()
    if not failed:
      self._printer.join()
      return 0
    explained = self._end_the_others()
    if self._asked:
      return 128 + self._asked
    first, code = failed[0]
    if code in _EXPLAINED and explained:
      return code
    self._explain(first, code)
    return 1

  def _print_first(self) -> None:
    """Prints the first process's output, without the lines of Gloo."""
    output = self._members[0].stdout
    assert output is not None
    for line in output:
      if not line.startswith(b"[Gloo]"):
        sys.stdout.buffer.write(line)
        sys.stdout.flush()

  def _codes(self) -> list[int | None]:
    return [member.poll() for member in self._members]

  def _failed(self) -> list[tuple[int, int]]:
    return [(i, code) for i, code in enumerate(self._codes()) if code]

  def _end_the_others(self) -> bool:
    """Waits for the others, then kills them; returns whether the first said why."""
    codes = [code for _, code in self._failed()]
    crashed = any(code < 0 for code in codes)
    limit = time.monotonic() + (1.0 if crashed else _PATIENCE)
    while time.monotonic() < limit and None in self._codes():
      time.sleep(0.05)
    explained = not crashed and self._codes()[0] in _EXPLAINED
    for member in self._members:
      member.kill()
      member.wait()
    return explained

  def _explain(self, process: int, code: int) -> None:
    """Prints which process failed first, and how to continue."""
    if process > 0:
      lines = self._logs[process].read_text(errors="replace").splitlines()[-_TAIL:]
      for line in lines:
        print(f"[process {process}] {line}", file=sys.stderr)
    killed = f"was killed by {signal.Signals(-code).name}" if code < 0 else ""
    how = killed or f"failed with exit code {code}"
    print(
      f"launch: process {process} of {len(self._members)} {how}, and the others "
      "were stopped; the same command continues from the last checkpoint.",
      file=sys.stderr,
      flush=True,
    )

  def _forward(self, number: int, frame: object) -> None:
    del frame
    self._asked = number
    for member in self._members:  # has no effect on processes that have ended
      member.send_signal(number)


def _make_logs(folder: Path, processes: int) -> list[Path]:
  """Empties the log files of all processes but the first; returns all paths."""
  paths = [folder / f"process-{i}.log" for i in range(processes)]
  with failures.explain_write_errors(folder, "or give another with --logs"):
    folder.mkdir(parents=True, exist_ok=True)
    for path in paths[1:]:
      path.write_bytes(b"")
  return paths


def _environments(
  processes: int, devices: int | None, gpus: list[str]
) -> list[dict[str, str]]:
  """Lists the environment variables to add for each process."""
  address = f"localhost:{_free_port()}"
  shared = {"JAX_COORDINATOR_ADDRESS": address, "JAX_NUM_PROCESSES": str(processes)}
  shared["PYTHONPATH"] = loading.python_path()
  each = devices or (len(gpus) // processes if gpus else 1)
  if gpus and not 0 < each * processes <= len(gpus):
    raise ConfigError(
      f"{processes} processes of {max(each, 1)} devices need "
      f"{processes * max(each, 1)} GPUs, and there are {len(gpus)}; lower --processes "
      "or --devices, or use --platform=cpu."
    )
  out = []
  for i in range(processes):
    if gpus:
      own = {"CUDA_VISIBLE_DEVICES": ",".join(gpus[i * each : (i + 1) * each])}
    else:
      flags = f"--xla_force_host_platform_device_count={each}"
      own = {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip(),
      }
    out.append(shared | own | {"JAX_PROCESS_ID": str(i)})
  return out


def _gpus() -> list[str]:
  """Returns the GPUs of this machine by the names that CUDA uses."""
  visible = os.environ.get("CUDA_VISIBLE_DEVICES")
  if visible is not None:
    return [name for name in visible.split(",") if name]
  try:
    found = subprocess.run(
      ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"],
      capture_output=True,
      text=True,
      timeout=30,
      check=True,
    )
  except (OSError, subprocess.SubprocessError):
    return []
  return found.stdout.split()


def _free_port() -> int:
  with socket.socket() as probe:
    probe.bind(("localhost", 0))
    port: int = probe.getsockname()[1]
    return port


def _parse(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
  """Splits the command line into the launcher's arguments and those after `--`."""
  cut = argv.index("--") if "--" in argv else len(argv)
  parser = Parser(
    prog="launch",
    usage="ebmjax launch [flags] -- [flags of ebmjax run]",
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  text = "number of processes (default: %(default)s)"
  parser.add_argument("--processes", type=whole_number, default=2, help=text)
  text = "devices of each process (default: 1, or its share of the GPUs)"
  parser.add_argument("--devices", type=whole_number, help=text)
  text = "cpu: do not use GPUs (default: %(default)s)"
  parser.add_argument("--platform", choices=("auto", "cpu"), default="auto", help=text)
  parser.add_argument(
    "--logs", type=expand, help="folder for the output of the other processes"
  )
  arguments = parser.parse_args(argv[:cut])
  if not argv[cut + 1 :]:
    parser.error("nothing to run: give the flags of `ebmjax run` after `--`")
  return arguments, argv[cut + 1 :]
