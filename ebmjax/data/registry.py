"""The table of data sets; those of other packages are found by import path."""

from ebmjax.config.components import find_in
from ebmjax.data import cifar, mnist, noise, own
from ebmjax.data.spec import DatasetSpec

DATASETS: dict[str, DatasetSpec] = {
  "mnist": mnist.MNIST,
  "fashion_mnist": mnist.FASHION_MNIST,
  "cifar10": cifar.CIFAR10,
  "cifar100": cifar.CIFAR100,
  "noise": noise.NOISE,
  "own": own.OWN,
}


def find(name: str) -> DatasetSpec:
  """Returns the spec of a data set, by its name or by "package.module:SPEC"."""
  return find_in("data", DATASETS, name, DatasetSpec)
