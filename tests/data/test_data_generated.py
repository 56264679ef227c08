"""Generated images, random labels, and the first images of a stored set."""

from pathlib import Path

import numpy as np
import pytest

from ebmjax import data
from ebmjax.errors import DataError


def noise(config, images: int):
  return data.load(config("auto", name="noise", images=images, memorise=True))


def test_noise_is_numbers_and_random_labels(config, tiny):
  dataset = noise(config, 2000)
  assert dataset.train_x.shape == (2000, 1)
  assert dataset.train_x.dtype == np.uint32
  np.testing.assert_array_equal(dataset.train_x[:, 0], np.arange(2000))
  assert dataset.train_y.dtype == np.int32
  counts = np.bincount(dataset.train_y, minlength=10)
  assert len(counts) == 10
  assert 150 < counts.min() < counts.max() < 250
  assert dataset.full
  assert not tiny.server.requests
  assert dataset.source == (
    "noise, 2,000 generated images, labels random, tested on the training images"
  )


def test_training_images_are_the_test_images(config):
  dataset = noise(config, 300)
  np.testing.assert_array_equal(dataset.test_x, dataset.train_x)
  np.testing.assert_array_equal(dataset.test_y, dataset.train_y)


def test_more_images_leave_the_labels_of_the_first(config):
  few, many = noise(config, 501), noise(config, 4000)
  np.testing.assert_array_equal(few.train_y, many.train_y[:501])
  assert data.digest(few) != data.digest(many)


def test_too_few_images_for_all_labels(config, sentence):
  with pytest.raises(DataError) as caught:
    noise(config, 5)
  assert "5 training images of noise have only" in sentence(caught)


def test_a_stored_set_is_memorised(tiny, config, tmp_path: Path):
  folder = tiny.write_idx(tmp_path / "files")
  dataset = data.load(config("files", folder, memorise=True))
  np.testing.assert_array_equal(dataset.train_x, tiny.arrays["train_x"])
  np.testing.assert_array_equal(dataset.test_x, tiny.arrays["train_x"])
  np.testing.assert_array_equal(dataset.test_y, dataset.train_y)
  right = np.mean(dataset.train_y == tiny.arrays["train_y"])
  assert right < 0.3  # the images' own labels are gone
  assert dataset.class_names == ()
  assert dataset.full
  assert dataset.source == (
    "mnist, full, official idx files, labels random, tested on the training images"
  )


def test_the_first_images_of_a_stored_set(tiny, config, tmp_path: Path):
  folder = tiny.write_idx(tmp_path / "files")
  dataset = data.load(config("files", folder, images=60))
  np.testing.assert_array_equal(dataset.train_x, tiny.arrays["train_x"][:60])
  np.testing.assert_array_equal(dataset.train_y, tiny.arrays["train_y"][:60])
  np.testing.assert_array_equal(dataset.test_x, tiny.arrays["test_x"])
  assert not dataset.full
  assert dataset.source.endswith(", the first 60 training images")
  all_of_them = data.load(config("files", folder, images=70))
  assert all_of_them.full


def test_fewer_images_are_not_the_full_set(tiny, config, tmp_path: Path, sentence):
  folder = tiny.write_idx(tmp_path / "files")
  with pytest.raises(DataError) as caught:
    data.load(config("files", folder, images=60, require_full=True))
  assert "the first 60 training images" in sentence(caught)


@pytest.mark.parametrize(
  ("images", "told"), [(71, "has 70 training images"), (3, "have only")]
)
def test_impossible_numbers_of_images(
  tiny, config, tmp_path: Path, images, told, sentence
):
  folder = tiny.write_idx(tmp_path / "files")
  with pytest.raises(DataError) as caught:
    data.load(config("files", folder, images=images))
  assert told in sentence(caught)
