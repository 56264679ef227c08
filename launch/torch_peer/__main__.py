"""The command line of the peer: it makes steps on request and tells their time."""

import argparse
import sys
import time

import torch

from launch import torch_peer
from launch.torch_peer.work import make_step

WARM_UP = {"training": 30, "inference": 1}  # steps before anything is timed


def main() -> None:
  """Answers each line of input, a number of steps, with the seconds they took."""
  given = parse()
  try:
    step = make_step(given)
    for i in range(WARM_UP[given.work]):
      step(i)
  except Exception as error:
    if given.run == "eager":
      raise
    print("failed", type(error).__name__, flush=True)
    raise
  print("ready", torch.__version__, torch.get_num_threads(), flush=True)
  for line in sys.stdin:
    begun = time.perf_counter()
    for i in range(int(line)):
      step(i)
    print(time.perf_counter() - begun, flush=True)


def parse() -> argparse.Namespace:
  """Returns what the command line asks for."""
  parser = argparse.ArgumentParser(
    "python -m launch.torch_peer",
    description=torch_peer.__doc__,
    formatter_class=argparse.RawTextHelpFormatter,
  )
  words = {
    "--work": ("training", "inference"),
    "--network": ("ebm", "sbc"),
    "--trunk": ("none", "conv4", "conv5"),
    "--gate": ("l2", "softmax", "mask"),
    "--form": ("shared", "pass_per_label"),
    "--memory-format": ("contiguous", "channels_last"),
    "--run": ("eager", "compiled"),
  }
  for flag, choices in words.items():
    parser.add_argument(flag, choices=choices, default=choices[0])
  sizes = {
    "--batch": (128, "rows of a batch"),
    "--inputs": (784, "numbers of a row, or features of a trunk"),
    "--hidden": (400, "units of a hidden layer"),
    "--classes": (10, "labels in all"),
    "--per-task": (2, "labels of the first task, which the batches show"),
    "--layers": (1, "gated layers"),
  }
  for flag, (usual, meaning) in sizes.items():
    parser.add_argument(flag, type=int, default=usual, help=f"{meaning} ({usual})")
  return parser.parse_args()


if __name__ == "__main__":
  main()
