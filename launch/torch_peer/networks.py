"""The networks of the peer, as a PyTorch user writes them."""

import argparse

import torch
from torch import nn
from torch.nn import functional

FEATURES = 1024  # that a trunk makes of an image
KEPT = 0.15  # of the units, by each mask

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


def make_trunk(given: Given) -> nn.Module:
  """Returns what turns the input into features, once for all labels."""
  trunk = {"none": nn.Identity, "conv4": conv4, "conv5": conv5}[given.trunk]()
  if given.memory_format == "channels_last":
    trunk = trunk.to(memory_format=torch.channels_last)
  return trunk
