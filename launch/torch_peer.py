"""A bare PyTorch training step of the same mathematics, for `ebmjax.bench --peer`.

Stands alone: needs torch, not ebmjax. Batches are made beforehand, negatives are drawn
in one call, nothing is logged: forward, backward and Adam are all that is timed. Reads
a number of steps per line on standard input and answers with the seconds they took.

  python launch/torch_peer.py NETWORK FORM INPUTS HIDDEN CLASSES PER_TASK LAYERS

NETWORK is ebm or sbc. FORM is `pass_per_label`, as the released code has it: the whole
network once for the true label and once for the negative; or `shared`, where the part
before the gate is computed once for both, as ebmjax does.
"""

import sys
import time

import torch
from torch import nn
from torch.nn import functional

BATCH = 128


class EnergyMLP(nn.Module):
  """The label-gated energy network on x [B, P] and candidate labels [B, K]."""

  def __init__(self, inputs: int, hidden: int, classes: int, layers: int) -> None:
    super().__init__()
    self.first = nn.Linear(inputs, hidden)
    self.rest = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(layers - 1))
    self.embedding = nn.Embedding(classes, hidden)
    self.head = nn.Linear(hidden, 1)

  def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    gate = functional.normalize(self.embedding(labels), dim=-1)
    a = self.first(x)[:, None, :]
    h = torch.relu(a * gate + a)
    for layer in self.rest:
      a = layer(h)
      h = torch.relu(a * gate + a)
    return self.head(h)[..., 0]


def classifier(inputs: int, hidden: int, classes: int) -> nn.Module:
  """Returns the softmax classifier's network."""
  return nn.Sequential(
    nn.Linear(inputs, hidden),
    nn.ReLU(),
    nn.Linear(hidden, hidden),
    nn.ReLU(),
    nn.Linear(hidden, classes),
  )


def make_step(
  kind: str, form: str, inputs: int, hidden: int, classes: int, per_task: int, n: int
):
  """Returns a function that makes one training step."""
  batches = [
    (torch.rand(BATCH, inputs), torch.randint(0, per_task, (BATCH,))) for _ in range(20)
  ]
  if kind == "ebm":
    net: nn.Module = EnergyMLP(inputs, hidden, classes, n)
  else:
    net = classifier(inputs, hidden, classes)
  optimiser = torch.optim.Adam(net.parameters(), lr=1e-4)

  def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if kind == "sbc":
      return functional.cross_entropy(net(x)[:, :per_task], y)
    other = (y + torch.randint(1, per_task, y.shape)) % per_task
    if form == "shared":
      true, false = net(x, torch.stack([y, other], 1)).unbind(1)
    else:
      true, false = net(x, y[:, None])[:, 0], net(x, other[:, None])[:, 0]
    return functional.softplus(true - false).mean()

  def step(i: int) -> None:
    optimiser.zero_grad()
    loss(*batches[i % len(batches)]).backward()
    optimiser.step()

  return step


def main() -> None:
  """Answers each line of input, a number of steps, with the seconds they took."""
  kind, form, *sizes = sys.argv[1:]
  step = make_step(kind, form, *(int(size) for size in sizes))
  for i in range(30):
    step(i)
  print("ready", torch.__version__, torch.get_num_threads(), flush=True)
  for line in sys.stdin:
    begun = time.perf_counter()
    for i in range(int(line)):
      step(i)
    print(time.perf_counter() - begun, flush=True)


if __name__ == "__main__":
  main()
