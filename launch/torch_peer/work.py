"""One training step, or the inference of one batch, in either form."""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from launch.torch_peer.networks import Given, make_head, make_trunk

BATCHES = 20


def make_step(given: Given) -> Callable[[int], None]:
  """Returns step(i): one training step, or the inference of one batch."""
  batches = make_batches(given)
  trunk, head = make_trunk(given), make_head(given)
  if given.work == "inference":
    predict = make_predict(given, trunk.eval(), head)
    return torch.no_grad()(lambda i: predict(batches[i % BATCHES][0]))
  loss = _maybe_compiled(given, make_loss(given, trunk, head))
  both = [*trunk.parameters(), *head.parameters()]
  trained = [parameter for parameter in both if parameter.requires_grad]
  optimiser = torch.optim.Adam(trained, lr=1e-4)
  update = _maybe_compiled(given, optimiser.step)

  def step(i: int) -> None:
    optimiser.zero_grad()
    loss(*batches[i % BATCHES]).backward()
    update()

  return step


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
  """Returns predict(x): labels [B], one label after another.

  What is compiled is what a label calls: all labels in one graph, a hundred copies of
  the network, would take minutes to compile.
  """
  if given.network == "sbc":
    return _maybe_compiled(given, lambda x: head(trunk(x)).argmax(1))
  shared = given.form == "shared"

  def before(x: torch.Tensor) -> torch.Tensor:
    return head.before(trunk(x)) if shared else trunk(x)

  def of_label(a: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    return head.energies(a if shared else head.before(a), label)

  first, each = _maybe_compiled(given, before), _maybe_compiled(given, of_label)

  def predict(x: torch.Tensor) -> torch.Tensor:
    a = first(x)
    columns = [each(a, torch.tensor([[label]])) for label in range(given.classes)]
    return torch.cat(columns, 1).argmin(1)

  return predict


def _maybe_compiled(given: Given, function: Callable) -> Callable:
  return torch.compile(function) if given.run == "compiled" else function
