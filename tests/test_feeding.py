"""Images sent in parts give the bits of those that lie on the device as a whole."""

from typing import Any

import jax
import numpy as np
import pytest

from ebmjax.runtime import feeding, memory
from ebmjax.runtime.plan import Milestone
from ebmjax.runtime.scan import Images, chunks
from ebmjax.runtime.sharding import ONE_DEVICE
from ebmjax.runtime.trainer import RunSpec, Trainer
from tests import programs

SMALL = {
  "stream__batch_size": 4,
  "network__hidden": 4,
  "eval__batch_size": 4,
  "runner__chunk": 3,
}
# Permuted pixels, a consolidation, and two seeds with tasks of their own.
CASES: dict[str, dict[str, Any]] = {
  "splitmnist.py:smoke,online_ewc": {"stream__class_order": "random"},
  "permmnist.py:smoke": {"stream__tasks": 2},
}


def train(chosen: str, **more: Any) -> tuple[RunSpec, Any, Any, Any]:
  """Returns the states, losses and evaluation of a few steps on a few images."""
  spec = programs.spec_of(chosen, "map", seeds=2, **SMALL, **more)
  trainer = Trainer(spec)
  chunk = next(chunks(spec.stream, 0, 3, 3))
  losses = trainer.train(chunk)
  trainer.consolidate(0)
  found = trainer.evaluate(Milestone(step=3, task=0, evaluate=True, ends_task=True))
  return spec, trainer.saved(), losses, found


@pytest.mark.parametrize("chosen", CASES)
def test_the_same_bits_in_parts(chosen):
  more = CASES[chosen]
  whole, parts = train(chosen, **more), train(chosen, runner__image_memory=1, **more)
  for ours, theirs in zip(*map(jax.tree.leaves, (whole[1:], parts[1:])), strict=True):
    np.testing.assert_array_equal(ours, theirs)
  assert isinstance(parts[0].train_images.x, np.ndarray)
  counts = [memory.count(spec).images for spec in (whole[0], parts[0])]
  assert counts[1] < counts[0]


def test_a_part_holds_each_row_once():
  x = np.arange(20, dtype=np.float32).reshape(10, 2)
  feed = feeding.Feed(Images(x, np.arange(10, dtype=np.int32)), ONE_DEVICE)
  rows = np.array([[7, 3, -1], [3, 9, 7]], np.int32)
  images, places = feed.take(rows)
  assert images.x.shape == (6, 2)  # room for six different rows
  np.testing.assert_array_equal(np.asarray(images.x)[places[1]], x[rows[1]])
  assert places[0, 2] == -1 and places[0, 0] == places[1, 2]
