"""Bare PyTorch steps of the same mathematics, for `ebmjax.bench --peer`.

Stands alone: needs torch, not ebmjax. Batches are made beforehand, negatives are drawn
in one call, nothing is logged: forward, backward and Adam are all that is timed, or, of
inference, the energies of all labels and the lowest of them. It says that it is ready,
then reads a number of steps per line on standard input and answers with the seconds
they took.

  python launch/torch_peer.py [--work=training|inference] [--network=ebm|sbc] ...

A trunk turns images into 1024 features, once for all labels: conv4 is trained; conv5 is
frozen, yet normalises by the batch while training. Without one, rows of INPUTS numbers
come in. FORM is how the rest is written: `pass_per_label`, as the released code has it,
runs all of it once for each label; `shared` computes what stands before the first gate
once for all of them, as ebmjax does. The classifier is the same in either form.
"""

import argparse
import sys
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

FEATURES = 1024  # that a trunk makes of an image
KEPT = 0.15  # of the units, by each mask
BATCHES = 20
WARM_UP = {"training": 30, "inference": 1}  # steps before anything is timed

Given = argparse.Namespace  # the command line


class GatedMLP(nn.Module):
  """Layers that a label's vector or masks gate, with ReLUs, then a linear energy."""

  def __init__(self, given: Given) -> None:
    super().__init__()
    hidden, more = given.hidden, range(given.layers - 1)
    self.first = nn.Linear(given.inputs, hidden)
    self.rest = nn.ModuleList(nn.Linear(hidden, hidden) for _ in more)
    self.head = nn.Linear(hidden, 1)
    self.masked = given.gate == "mask"
    if self.masked:
      kept = torch.full((given.layers, given.classes, hidden), KEPT)
      self.register_buffer("masks", torch.bernoulli(kept))
    else:
      self.embedding = nn.Embedding(given.classes, hidden)

  def before(self, x: torch.Tensor) -> torch.Tensor:
    """Returns [B, H]: what no label has touched, of x [B, P]."""
    return self.first(x)

  def energies(self, a: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Returns [B, K] of a [B, H] and labels [B, K], or [1, K] for all rows alike."""
    first, *others = self._gates(labels)
    h = self._gated(a[:, None, :], first)
    for layer, gate in zip(self.rest, others, strict=True):
      h = self._gated(layer(h), gate)
    return self.head(h)[..., 0]

  def _gates(self, labels: torch.Tensor) -> list[torch.Tensor]:
    if self.masked:
      return [masks[labels] for masks in self.masks]
    gate = functional.normalize(self.embedding(labels), dim=-1)
    return [gate] * (1 + len(self.rest))

  def _gated(self, a: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    return torch.relu(a * gate if self.masked else a * gate + a)


class GatedFeatures(nn.Module):
  """Features scaled by the softmax of the label's vector, then a linear energy."""

  def __init__(self, classes: int) -> None:
    super().__init__()
    self.embedding = nn.Embedding(classes, FEATURES)
    self.head = nn.Linear(FEATURES, 1)

  def before(self, x: torch.Tensor) -> torch.Tensor:
    """Returns x [B, 1024] itself: the gate comes first."""
    return x

  def energies(self, a: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Returns [B, K] of a [B, 1024] and labels [B, K], or [1, K] for all rows alike."""
    gate = functional.softmax(self.embedding(labels), dim=-1) * FEATURES
    return self.head(a[:, None, :] * gate)[..., 0]


def conv4() -> nn.Module:
  """Returns CIFAR-10's trunk, images [B, 3, 32, 32] to [B, 1024]."""

  def block(inputs: int, outputs: int) -> list[nn.Module]:
    first = nn.Conv2d(inputs, outputs, 3, padding=1)
    second = nn.Conv2d(outputs, outputs, 3)
    return [first, nn.ReLU(), second, nn.ReLU(), nn.MaxPool2d(2)]

  last = nn.Linear(64 * 6 * 6, FEATURES)
  return nn.Sequential(*block(3, 32), *block(32, 64), nn.Flatten(), last)


def conv5() -> nn.Module:
  """Returns CIFAR-100's trunk, images [B, 3, 32, 32] to [B, 1024]."""
  channels = (3, 16, 32, 64, 128, 256)
  layers: list[nn.Module] = []
  for i, stride in enumerate((1, 2, 2, 2, 2)):
    layers.append(nn.Conv2d(channels[i], channels[i + 1], 3, stride, padding=1))
    if i < 4:
      layers += [nn.BatchNorm2d(channels[i + 1]), nn.ReLU()]
  return nn.Sequential(*layers, nn.Flatten()).requires_grad_(False)


def classifier(given: Given) -> nn.Module:
  """Returns the softmax classifier's layers, over rows or a trunk's features."""
  if given.trunk == "conv4":
    hidden = [nn.ReLU(), nn.Linear(FEATURES, FEATURES), nn.ReLU()]
    return nn.Sequential(*hidden, nn.Linear(FEATURES, given.classes))
  return nn.Sequential(
    nn.Linear(given.inputs, given.hidden),
    nn.ReLU(),
    nn.Linear(given.hidden, given.hidden),
    nn.ReLU(),
    nn.Linear(given.hidden, given.classes),
  )


def make_head(given: Given) -> nn.Module:
  """Returns what follows the trunk."""
  if given.network == "sbc":
    return classifier(given)
  if given.gate == "softmax":
    return GatedFeatures(given.classes)
  return GatedMLP(given)


def make_batches(given: Given) -> list[tuple[torch.Tensor, ...]]:
  """Returns pairs of x [B, P] or [B, 3, 32, 32] and labels [B] of the first task."""
  shape = (given.inputs,) if given.trunk == "none" else (3, 32, 32)
  x = torch.rand(BATCHES, given.batch, *shape)
  y = torch.randint(0, given.per_task, (BATCHES, given.batch))
  rows = list(x)
  if given.memory_format == "channels_last":
    rows = [batch.contiguous(memory_format=torch.channels_last) for batch in x]
  return list(zip(rows, y, strict=True))


def make_loss(given: Given, trunk: nn.Module, head: nn.Module) -> Callable:
  """Returns loss(x, y), a number."""

  def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    f = trunk(x)  # no parameter of conv5 asks for a gradient, so none is prepared
    if given.network == "sbc":
      return functional.cross_entropy(head(f)[:, : given.per_task], y)
    other = (y + torch.randint(1, given.per_task, y.shape)) % given.per_task
    if given.form == "shared":
      pairs = torch.stack([y, other], 1)
      true, false = head.energies(head.before(f), pairs).unbind(1)
    else:
      true = head.energies(head.before(f), y[:, None])[:, 0]
      false = head.energies(head.before(f), other[:, None])[:, 0]
    return functional.softplus(true - false).mean()

  return loss


def make_predict(given: Given, trunk: nn.Module, head: nn.Module) -> Callable:
  """Returns predict(x): labels [B], one label after another."""

  def predict(x: torch.Tensor) -> torch.Tensor:
    f = trunk(x)
    if given.network == "sbc":
      return head(f).argmax(1)
    once = head.before(f) if given.form == "shared" else None
    columns = [
      head.energies(head.before(f) if once is None else once, torch.tensor([[label]]))
      for label in range(given.classes)
    ]
    return torch.cat(columns, 1).argmin(1)

  return predict


def make_step(given: Given) -> Callable[[int], None]:
  """Returns step(i): one training step, or the inference of one batch."""
  batches = make_batches(given)
  trunk = {"none": nn.Identity, "conv4": conv4, "conv5": conv5}[given.trunk]()
  head = make_head(given)
  if given.memory_format == "channels_last":
    trunk = trunk.to(memory_format=torch.channels_last)
  if given.work == "inference":
    predict = make_predict(given, trunk.eval(), head)
    return torch.no_grad()(lambda i: predict(batches[i % BATCHES][0]))
  loss = make_loss(given, trunk, head)
  both = [*trunk.parameters(), *head.parameters()]
  trained = [parameter for parameter in both if parameter.requires_grad]
  optimiser = torch.optim.Adam(trained, lr=1e-4)

  def step(i: int) -> None:
    optimiser.zero_grad()
    loss(*batches[i % BATCHES]).backward()
    optimiser.step()

  return step


def parse() -> argparse.Namespace:
  """Returns what the command line asks for."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawTextHelpFormatter
  )
  words = {
    "--work": ("training", "inference"),
    "--network": ("ebm", "sbc"),
    "--trunk": ("none", "conv4", "conv5"),
    "--gate": ("l2", "softmax", "mask"),
    "--form": ("shared", "pass_per_label"),
    "--memory-format": ("contiguous", "channels_last"),
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


def main() -> None:
  """Answers each line of input, a number of steps, with the seconds they took."""
  given = parse()
  step = make_step(given)
  for i in range(WARM_UP[given.work]):
    step(i)
  print("ready", torch.__version__, torch.get_num_threads(), flush=True)
  for line in sys.stdin:
    begun = time.perf_counter()
    for i in range(int(line)):
      step(i)
    print(time.perf_counter() - begun, flush=True)


if __name__ == "__main__":
  main()
