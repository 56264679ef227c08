"""PyTorch processes that take their turn on request (launch/torch_peer.py)."""

import math
import subprocess
from contextlib import ExitStack
from pathlib import Path

from ebmjax.bench.measuring import CHANNELS_LAST, Rate
from ebmjax.errors import UserError
from ebmjax.machine import Setup
from ebmjax.networks import caches_features

_SCRIPT = Path(__file__).parents[2] / "launch" / "torch_peer.py"
# How a PyTorch user may write it: the released code's way, and the lean one.
FORMS = ("pass_per_label", "shared")


class Peer:
  """A process that makes `steps` PyTorch steps a call and returns their rate.

  The rate is counted in steps of training or in images of inference, by `work`.
  """

  def __init__(self, python: str, flags: dict[str, str], steps: int) -> None:
    self._process = subprocess.Popen(
      [python, str(_SCRIPT), *(f"--{name}={value}" for name, value in flags.items())],
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      text=True,
    )
    self._steps = steps
    in_images = flags["work"] == "inference"
    self._amount = steps * (int(flags["batch"]) if in_images else 1)
    self._ask(None)  # it says when it is ready

  def __call__(self) -> float:
    return self._amount / float(self._ask(f"{self._steps}\n"))

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


def start(
  python: str, setup: Setup, work: str, steps: int, until: ExitStack
) -> dict[str, Rate]:
  """Returns the peers of a setup by form, alive as long as `until` is open.

  Where images come in, every form is there in both of PyTorch's memory formats.
  """
  flags = describe(setup, work)
  formats = {"": "contiguous"}
  if flags["trunk"] != "none":
    formats[CHANNELS_LAST] = "channels_last"
  peers: dict[str, Rate] = {}
  for form in FORMS:
    for ending, memory_format in formats.items():
      own = {"form": form, "memory-format": memory_format}
      peer = Peer(python, flags | own, steps)
      until.callback(peer.close)
      peers[form + ending] = peer
  return peers


def describe(setup: Setup, work: str) -> dict[str, str]:
  """Returns the flags that tell the peer a setup's network and sizes.

  `work` is training or inference.
  """
  config, network = setup.config, setup.config.network
  classes = setup.stream.classes[0]  # [T, C]
  has_trunk = network.trunk != "none" and not caches_features(network)
  in_row = math.prod(setup.train_images.x.shape[1:])
  values = {
    "work": work,
    "network": network.name,
    "trunk": network.trunk if has_trunk else "none",
    "gate": "mask" if network.embedding == "mask" else network.gate,
    "batch": config.stream.batch_size if work == "training" else config.eval.batch_size,
    "inputs": 1024 if has_trunk else in_row,
    "hidden": network.hidden,
    "classes": classes.shape[1],
    "per-task": int(classes[0].sum()),
    "layers": network.gated_layers,
  }
  return {name: str(value) for name, value in values.items()}
