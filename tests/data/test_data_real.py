"""The official sets, where the user has their files."""

import hashlib
import os

import numpy as np
import pytest

from ebmjax import data

MNIST = os.environ.get("EBMJAX_MNIST_DIR", "")
CIFAR10 = os.environ.get("EBMJAX_CIFAR10_DIR", "")
CIFAR100 = os.environ.get("EBMJAX_CIFAR100_DIR", "")


@pytest.mark.skipif(not MNIST, reason="EBMJAX_MNIST_DIR, the official files, is unset")
def test_official_mnist(config):
  dataset = data.load(config("files", MNIST, require_full=True))
  assert dataset.full
  assert dataset.train_x.shape == (60000, 28, 28)
  assert dataset.test_x.shape == (10000, 28, 28)
  assert dataset.train_y[:5].tolist() == [5, 0, 4, 1, 9]
  assert np.bincount(dataset.test_y)[1] == 1135


def assert_constants(dataset) -> None:
  """Asserts that the mean of the registry is that of the training images."""
  means = [float(dataset.train_x[..., i].mean()) / 255 for i in range(3)]
  np.testing.assert_allclose(means, data.DATASETS[dataset.name].mean, atol=1e-4)


@pytest.mark.skipif(not CIFAR10, reason="EBMJAX_CIFAR10_DIR, a full set, is unset")
def test_official_cifar10(config):
  dataset = data.load(config("files", CIFAR10, name="cifar10", require_full=True))
  assert dataset.full
  assert dataset.train_x.shape == (50000, 32, 32, 3)
  assert dataset.test_x.shape == (10000, 32, 32, 3)
  assert dataset.train_y[:5].tolist() == [6, 9, 9, 4, 1]
  assert dataset.train_x[0, 0, 0].tolist() == [59, 62, 63]
  found = hashlib.sha256(dataset.train_x.tobytes()).hexdigest()
  assert found.startswith("47af8b02cfcfb6cd")
  assert_constants(dataset)


@pytest.mark.skipif(not CIFAR100, reason="EBMJAX_CIFAR100_DIR, a full set, is unset")
def test_official_cifar100(config):
  dataset = data.load(config("files", CIFAR100, name="cifar100", require_full=True))
  assert dataset.full
  assert dataset.train_x.shape == (50000, 32, 32, 3)
  assert np.bincount(dataset.train_y).tolist() == [500] * 100
  assert np.bincount(dataset.test_y).tolist() == [100] * 100
  assert_constants(dataset)
