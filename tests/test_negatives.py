"""Which labels are drawn against the true one, and how often."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ebmjax import negatives, types
from ebmjax.negatives import NEGATIVES
from ebmjax.types import Batch

CLASSES = 6
ONE = ["one_of_task", "one_of_batch", "one_by_frequency"]


def make_batch(y, seen=(0, 1, 2, 3), task=(2, 3)):
  mask = lambda classes: jnp.isin(jnp.arange(CLASSES), jnp.array(classes))  # noqa: E731
  y = jnp.array(y, jnp.int32)
  zeros = jnp.zeros_like(y)
  return Batch(zeros[:, None], y, zeros, mask(seen), mask(task), jnp.int32(0))


def drawn(name, batch, n=4000):
  """Returns labels [n, B, K] and valid [n, B, K] of n independent draws."""
  keys = jax.random.split(jax.random.key(7), n)
  return jax.vmap(lambda key: NEGATIVES[name](key, batch))(keys)


@pytest.mark.parametrize("name", sorted(NEGATIVES))
def test_column_0_is_the_true_label(name):
  batch = make_batch([2, 3, 3, 2])
  labels, valid = NEGATIVES[name](jax.random.key(0), batch)
  np.testing.assert_array_equal(labels[:, 0], batch.y)
  assert valid[:, 0].all()
  assert labels.dtype == jnp.int32


@pytest.mark.parametrize("name", sorted(set(NEGATIVES) - {"all_classes"}))
def test_a_batch_of_one_class_has_no_negative(name):
  batch = make_batch([2, 2, 2], seen=(2,), task=(2,))
  labels, valid = NEGATIVES[name](jax.random.key(0), batch)
  assert not valid[:, 1:].any()
  assert (labels == 2).all()  # nobody is named who does not count


@pytest.mark.parametrize(
  ("name", "shares"),
  [
    ("one_of_task", {2: 1 / 2, 3: 1 / 2}),  # the task's other classes; y is not in it
    ("one_of_batch", {2: 1 / 3, 3: 1 / 3, 5: 1 / 3}),  # distinct labels
    ("one_by_frequency", {2: 4 / 7, 3: 2 / 7, 5: 1 / 7}),  # rows of other classes
  ],
)
def test_frequencies_of_a_single_negative(name, shares):
  batch = make_batch([0, 2, 2, 2, 2, 3, 3, 5, 0, 0])
  labels, valid = drawn(name, batch)
  assert valid.all()
  found = np.bincount(np.asarray(labels[:, 0, 1]), minlength=CLASSES) / len(labels)
  expected = [shares.get(c, 0) for c in range(CLASSES)]
  np.testing.assert_allclose(found, expected, atol=0.03)
  assert found[[c for c in range(CLASSES) if c not in shares]].sum() == 0


@pytest.mark.parametrize("name", ONE)
def test_the_true_label_is_never_its_own_negative(name):
  batch = make_batch([2, 3, 2, 3, 3])
  labels, _ = drawn(name, batch)
  assert (labels[:, :, 1] != batch.y[None, :]).all()


def test_all_of_batch_and_all_seen_mark_their_sets():
  batch = make_batch([0, 2, 2], seen=(0, 1, 2, 3))
  for name, members in (("all_of_batch", {0, 2}), ("all_seen", {0, 1, 2, 3})):
    labels, valid = NEGATIVES[name](jax.random.key(0), batch)
    for row in range(3):
      negatives = set(np.asarray(labels[row, 1:])[np.asarray(valid[row, 1:])].tolist())
      assert negatives == members - {int(batch.y[row])}
    assert set(np.asarray(labels).ravel().tolist()) == members  # no other is named


def test_repaired_deals_out_the_batch_s_labels():
  batch = make_batch([0, 1, 2, 3])
  labels, valid = drawn("repaired", batch, 50)
  assert valid.all()
  np.testing.assert_array_equal(np.sort(labels[:, :, 1], axis=1), [[0, 1, 2, 3]] * 50)
  assert (labels[:, :, 1] != labels[:1, :, 1]).any()


def test_label_and_image_adds_the_next_row_s_label():
  labels, valid = NEGATIVES["label_and_image"](jax.random.key(0), make_batch([2, 2, 0]))
  assert labels.tolist() == [[2, 0, 2], [2, 0, 0], [0, 2, 2]]
  assert valid[:, 1:].tolist() == [[True, False], [True, True], [True, True]]


def test_all_classes_include_those_to_come():
  labels, valid = NEGATIVES["all_classes"](jax.random.key(0), make_batch([2, 0]))
  assert labels[1].tolist() == [0, *range(CLASSES)]
  assert valid[0, 1:].tolist() == [True, True, False, True, True, True]


MASK = np.arange(CLASSES) < 4
# What each draw takes beside the labels.
CLASSES_OF: dict[str, dict[str, Any]] = {
  "one_of_task": {"task_classes": MASK},
  "one_of_batch": {"num_classes": CLASSES},
  "one_by_frequency": {"num_classes": CLASSES},
  "all_of_batch": {"num_classes": CLASSES},
  "all_seen": {"seen": MASK},
  "all_classes": {"num_classes": CLASSES},
  "repaired": {},
  "label_and_image": {"num_classes": CLASSES},
}


@pytest.mark.parametrize("x64", [False, True])
def test_labels_alone_are_drawn_as_those_of_a_batch(x64):
  """To the bit, in any type of integers, one batch or several."""
  y = np.array([[2, 3, 0, 2], [1, 1, 1, 1]], np.uint8)
  key = jax.random.key(3)

  def draw(labels):
    return {
      name: NEGATIVES[name](key, labels, **CLASSES_OF[name]) for name in NEGATIVES
    }

  with jax.enable_x64(x64):
    batch = make_batch(y[0], task=(0, 1, 2, 3))
    wanted = jax.jit(lambda b: {name: draw(key, b) for name, draw in NEGATIVES.items()})
    several = jax.jit(jax.vmap(draw))(y.astype(int))
    for name, (labels, valid) in wanted(batch).items():
      found = several[name]
      np.testing.assert_array_equal(found[0][0], labels)
      np.testing.assert_array_equal(found[1][0], valid)
      assert (found[0].dtype, found[1].dtype) == (jnp.int32, bool)


@pytest.mark.parametrize(
  ("name", "y", "given", "said"),
  [
    ("one_of_batch", [0, 1], {}, "give num_classes"),
    ("one_of_batch", [0, 7], {"num_classes": 6}, "0 to 7 do not fit 6 classes"),
    ("all_classes", [-1, 2], {"num_classes": 6}, "-1 to 2 do not fit"),
    ("one_of_batch", [0.0, 1.0], {"num_classes": 6}, r"not float32\[2\]"),
    ("all_of_batch", [[0, 1]], {"num_classes": 6}, r"integers \[B\]"),
    (
      "all_seen",
      [0, 1],
      {"seen": np.array([0, 1])},
      "mask \\[C\\] of booleans, not int",
    ),
    ("one_of_task", [0, 1], {"task_classes": MASK[None]}, "not bool"),
    ("repaired", [0.5], {}, "must be integers"),
  ],
)
def test_labels_and_masks_that_do_not_fit_are_refused(name, y, given, said):
  with pytest.raises(ValueError, match=said):
    NEGATIVES[name](jax.random.key(0), y, **given)


def test_a_batch_says_its_classes_itself():
  with pytest.raises(ValueError, match="a Batch has its own classes"):
    negatives.all_seen(jax.random.key(0), make_batch([0, 1]), seen=MASK)
  task = np.arange(CLASSES) < 2
  batch = types.make_batch(np.ones((2, 3)), [0, 1], MASK, task_classes=task)
  np.testing.assert_array_equal(batch.seen, MASK)
  np.testing.assert_array_equal(batch.negatives, task)
  assert types.make_batch(None, [0], task_classes=task).seen.tolist() == task.tolist()


@pytest.mark.parametrize(
  ("given", "said"),
  [
    ({"seen": MASK, "task_classes": MASK[:2]}, "differ in the number of classes"),
    ({"seen": MASK, "num_classes": 3}, "differ in the number of classes"),
    ({"x": np.ones((3, 2)), "num_classes": 3}, "y has 2 labels"),
    ({}, "give num_classes"),
  ],
)
def test_a_batch_whose_parts_do_not_fit_is_refused(given, said):
  with pytest.raises(ValueError, match=said):
    types.make_batch(given.pop("x", None), [0, 1], **given)
