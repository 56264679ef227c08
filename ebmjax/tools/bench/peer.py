"""PyTorch processes that take their turn on request (launch/torch_peer)."""

import importlib.util
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ebmjax import networks
from ebmjax.errors import UserError
from ebmjax.runtime.trainer import RunSpec
from ebmjax.tools.bench.measuring import CHANNELS_LAST, COMPILED, EAGER

# The folder of launch/: the repository, or a folder of the installed package that holds
# nothing else, because PyTorch's Python finds every module in it.
_INSTALLED = Path(__file__).parents[2] / "peer"
_ROOT = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[3]
# How a PyTorch user may write it: the released code's way, and the lean one. For a
# classifier, which takes no label, the two are the same.
FORMS = {"ebm": ("pass_per_label", "shared"), "sbc": ("shared",)}
RUNS = {EAGER: "eager", COMPILED: "compiled"}
VARIABLE = "EBMJAX_TORCH_PYTHON"


class CompileError(Exception):
  """The peer could not compile its step."""


class Peer:
  """A process that makes `steps` PyTorch steps a call and returns their rate.

  The rate is counted in steps of training or in images of inference, by `work`.
  """

  def __init__(self, python: str, flags: dict[str, str], steps: int) -> None:
    given = [f"--{name}={value}" for name, value in flags.items()]
    self._process = subprocess.Popen(
      [python, "-m", "launch.torch_peer", *given],
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      text=True,
      cwd=_ROOT,
    )
    self._steps = steps
    self._in_images = flags["work"] == "inference"
    self._batch = int(flags["batch"])
    state, *details = self._ask(None).split()  # it says when it is ready
    if state == "failed":
      self.close()
      raise CompileError(" ".join(details))

  def __call__(self) -> float:
    seconds = float(self._ask(f"{self._steps}\n"))
    return self._steps * (self._batch if self._in_images else 1) / seconds

  def last(self, seconds: float) -> None:
    """Makes later calls last about so long, after one call to find how many steps."""
    each = float(self._ask(f"{self._steps}\n")) / self._steps
    self._steps = max(1, round(seconds / each))

  def close(self) -> None:
    """Ends the process."""
    self._process.kill()
    self._process.communicate()

  def _ask(self, line: str | None) -> str:
    assert self._process.stdin is not None and self._process.stdout is not None
    if line:
      self._process.stdin.write(line)
      self._process.stdin.flush()
    answer = self._process.stdout.readline().strip()
    if not answer:
      self.close()
      raise UserError(
        "the peer ended without an answer; --peer must name a Python that has torch."
      )
    return answer


def find_python(named: str) -> str:
  """Returns the interpreter of --peer=PYTHON; `torch` looks for one that has torch."""
  python = os.environ.get(VARIABLE) if named == "torch" else named
  if python:
    if shutil.which(python) is None:
      raise UserError(f"{python} is no program; --peer must name a Python with torch.")
    return python
  if importlib.util.find_spec("torch"):
    return sys.executable
  raise UserError(
    f"--peer=torch finds no PyTorch: this Python has none, and {VARIABLE} is unset; "
    "set it to a Python that has torch, or give that Python as --peer=PYTHON."
  )


def describe_python(python: str) -> str:
  """Returns which PyTorch an interpreter has, with how many threads."""
  program = "import torch; print(torch.__version__, torch.get_num_threads())"
  done = subprocess.run([python, "-c", program], capture_output=True, text=True)
  if done.returncode or not (words := done.stdout.split()):
    raise UserError(
      f"{python} has no PyTorch; --peer must name a Python that has torch."
    )
  return f"PyTorch {words[0]} with {words[1]} threads"


@contextmanager
def peers(
  python: str | None,
  spec: RunSpec,
  work: str,
  steps: int,
  forms: tuple[str, ...] | None = None,
) -> Iterator[tuple[dict[str, Peer], list[str]]]:
  """Yields the peers of a spec by name, and the names of those that do not compile.

  Every form is there eager and compiled, and, where images come in, in both of
  PyTorch's memory formats. Without an interpreter there are none.
  """
  found: dict[str, Peer] = {}
  failed: list[str] = []
  with ExitStack() as until:
    for name, flags in _ways(describe(spec, work), forms) if python else ():
      try:
        found[name] = Peer(str(python), flags, steps)
        until.callback(found[name].close)
      except CompileError as error:
        print(f"ebmjax: PyTorch cannot compile {name}: {error}", file=sys.stderr)
        failed.append(name)
    yield found, failed


def _ways(
  flags: dict[str, str], forms: tuple[str, ...] | None
) -> Iterator[tuple[str, dict[str, str]]]:
  """Yields the names and the flags of all ways to run a network."""
  formats = {"": "contiguous"}
  if flags["trunk"] != "none":
    formats[CHANNELS_LAST] = "channels_last"
  for form in forms or FORMS[flags["network"]]:
    for ending, memory_format in formats.items():
      for how, run in RUNS.items():
        own = {"form": form, "memory-format": memory_format, "run": run}
        yield form + ending + how, flags | own


def describe(spec: RunSpec, work: str) -> dict[str, str]:
  """Returns the flags that tell the peer a spec's network and sizes.

  `work` is training or inference.
  """
  config, network = spec.config, spec.config.network
  classes = spec.stream.classes[0]  # [T, C]
  known = networks.find(network.name)
  kind, _, trunk = network.name.partition("_")
  has_trunk = not known.takes_rows and not known.cached_trunk(network)
  in_row = math.prod(spec.train_images.x.shape[1:])
  values = {
    "work": work,
    "network": kind,
    "trunk": trunk if has_trunk else "none",
    "gate": "mask" if network.get("embedding") == "mask" else network.get("gate", "l2"),
    "batch": config.stream.batch_size if work == "training" else config.eval.batch_size,
    "inputs": 1024 if has_trunk else in_row,
    "hidden": network.get("hidden", 1024),
    "classes": classes.shape[1],
    "per-task": int(classes[0].sum()),
    "layers": network.get("gated_layers", 1),
  }
  return {name: str(value) for name, value in values.items()}
