"""The official MNIST, where the user has its files."""

import os

import numpy as np
import pytest

from ebmjax import data

FOLDER = os.environ.get("EBMJAX_MNIST_DIR", "")


@pytest.mark.skipif(not FOLDER, reason="EBMJAX_MNIST_DIR, the official files, is unset")
def test_official_mnist(config):
  dataset = data.load(config("files", FOLDER, require_full=True))
  assert dataset.full
  assert dataset.train_x.shape == (60000, 28, 28)
  assert dataset.test_x.shape == (10000, 28, 28)
  assert dataset.train_y[:5].tolist() == [5, 0, 4, 1, 9]
  assert np.bincount(dataset.test_y)[1] == 1135
