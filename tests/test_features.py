"""A frozen trunk's features: computed class by class, with the bits of all at once."""

import jax
import numpy as np
import pytest

from ebmjax import networks
from ebmjax.networks.cifar100 import PACKAGED
from ebmjax.networks.conv5 import feature_function, frozen_trunk
from ebmjax.runtime import feeding
from ebmjax.runtime.features import Features
from ebmjax.runtime.plan import Milestone
from ebmjax.runtime.scan import Images, chunks
from ebmjax.runtime.sharding import ONE_DEVICE
from ebmjax.runtime.trainer import Trainer
from tests import programs

COUNT = 450  # two full batches and a part of one
RNG = np.random.default_rng(0)
X = RNG.integers(0, 256, (COUNT, 32, 32, 3), dtype=np.uint8)
Y = RNG.integers(0, 3, COUNT).astype(np.int32)
SMALL = {
  "stream__batch_size": 4,
  "stream__iterations": 3,
  "network__hidden": 4,
  "eval__batch_size": 4,
  "runner__chunk": 3,
}


@pytest.fixture(scope="module")
def trunk():
  return frozen_trunk(PACKAGED, networks.Normalise())


@pytest.fixture(scope="module")
def at_once(trunk):
  return feature_function(trunk)(X)


def test_features_appear_with_their_classes(trunk, at_once):
  found = Features(trunk, X, Y)
  assert found.shape == at_once.shape and found.dtype == at_once.dtype
  assert not found.compute(np.array([-1]))
  feed = feeding.Feed(Images(found, Y), ONE_DEVICE)
  first = np.flatnonzero(Y == 2)[:1]
  images, rows = feed.take(first)
  np.testing.assert_array_equal(rows, first)
  of_class = (Y == 2)[:, None]
  np.testing.assert_array_equal(images.x, np.where(of_class, at_once, 0))
  assert feed.take(np.flatnonzero(Y == 2))[0].x is images.x  # nothing new
  images, _ = feed.take(np.flatnonzero(Y < 2))
  np.testing.assert_array_equal(images.x, at_once)


def test_an_image_alone_has_the_features_that_it_has_among_others(trunk, at_once):
  alone = Features(trunk, X, np.arange(COUNT, dtype=np.int32))
  alone.compute(np.array([7]))
  np.testing.assert_array_equal(alone.values[7], at_once[7])
  assert not alone.values[8].any()


def test_features_too_large_for_the_device_are_all_computed(trunk, at_once):
  whole = feeding.whole(Images(Features(trunk, X, Y), Y))
  assert isinstance(whole.x, np.ndarray)
  np.testing.assert_array_equal(whole.x, at_once)


def test_training_computes_the_features_of_its_task_alone():
  runs = []
  for memory in (0, 1):  # on the device, and in parts
    spec = programs.spec_of(
      "cifar100.py:fixed", "map", runner__image_memory=memory, **SMALL
    )
    trainer = Trainer(spec)
    (chunk,) = chunks(spec.stream, 0, 3, 3)
    trainer.prepare_images(chunk)
    losses = trainer.train(chunk)
    if memory == 0:
      train, test = (
        images.x.values for images in (spec.train_images, spec.test_images)
      )
      own = np.isin(spec.train_images.y, np.unique(spec.train_images.y[chunk.rows]))
      assert train.any(axis=1).tolist() == own.tolist() and own.mean() < 0.2
      assert not test.any()
    found = trainer.evaluate(Milestone(step=3, task=0, evaluate=True, ends_task=False))
    runs.append((trainer.saved(), losses, found))
  for ours, theirs in zip(*map(jax.tree.leaves, runs), strict=True):
    np.testing.assert_array_equal(ours, theirs)
