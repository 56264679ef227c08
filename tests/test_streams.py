"""Streams: coverage, order, labels, and the boundary-free cross-fade."""

import hashlib

import numpy as np
import pytest

from ebmjax import streams
from ebmjax.config import default, with_settings
from ebmjax.errors import ConfigError
from ebmjax.streams.schedules import task_weights

TRAIN_Y = np.repeat(np.arange(10), [60, 70, 64, 66, 61, 59, 62, 68, 63, 65])
TEST_Y = np.tile(np.arange(10), 8)


def spec(**changes):
  chosen = {"iterations": 9, "batch_size": 32} | changes
  settings = {f"stream.{name}": value for name, value in chosen.items()}
  return with_settings(default(), settings).stream


def build(seed=0, **changes):
  return streams.build(spec(**changes), TRAIN_Y, TEST_Y, seed=seed)


def labels_of(stream):
  """Returns the stream's label of every row it shows [S, B]."""
  return stream.labels[stream.tasks, TRAIN_Y[stream.rows]]


def test_split_shows_each_task_its_own_classes():
  stream = build()
  assert stream.rows.shape == (45, 32)
  assert streams.task_ends(stream) == [9, 18, 27, 36, 45]
  labels = labels_of(stream)
  for task in range(5):
    part = slice(9 * task, 9 * task + 9)
    assert set(np.unique(labels[part])) == {2 * task, 2 * task + 1}
    assert (stream.horizon[part] == task).all()
  np.testing.assert_array_equal(stream.classes.sum(axis=1), [2] * 5)


def test_an_epoch_shows_every_image_at_most_once_and_is_reshuffled():
  """Task 0 has 130 images: 4 whole batches an epoch, 2 images dropped."""
  rows = build().rows[:9]
  for first in (0, 4):
    epoch = rows[first : first + 4].ravel()
    assert len(np.unique(epoch)) == 128
  assert not np.array_equal(rows[:4], rows[4:8])


def test_streams_are_a_function_of_the_seed_alone():
  for name in ("split", "permuted"):
    for one, two in zip(build(3, name=name), build(3, name=name), strict=True):
      np.testing.assert_array_equal(one, two)
    assert not np.array_equal(build(3, name=name).rows, build(4, name=name).rows)


def test_random_class_order_differs_by_seed_and_covers_all_classes():
  orders = set()
  for seed in range(4):
    stream = build(seed, class_order="random")
    labels = stream.labels
    assert sorted(labels[labels >= 0].tolist()) == list(range(10))
    np.testing.assert_array_equal(np.unique(labels_of(stream)[:9]), [0, 1])
    orders.add(tuple(labels.ravel()))
  assert len(orders) == 4


def test_scenarios_label_the_same_rows_differently():
  labels = {s: labels_of(build(scenario=s)) for s in ("class", "domain", "task")}
  np.testing.assert_array_equal(labels["class"], labels["task"])
  np.testing.assert_array_equal(labels["class"] % 2, labels["domain"])
  assert build(scenario="domain").classes.shape == (5, 2)


@pytest.mark.parametrize(
  ("first", "seed", "identity"),
  [
    ("released", 0, True),
    ("released", 1, False),
    ("identity", 1, True),
    ("random", 0, False),
  ],
)
def test_first_permutation(first, seed, identity):
  stream = build(seed, name="permuted", tasks=3, first_permutation=first)
  pixels = np.arange(1024)
  assert np.array_equal(stream.permutation[0], pixels) == identity
  for row in stream.permutation:
    np.testing.assert_array_equal(np.sort(row), pixels)
  assert not np.array_equal(stream.permutation[1], stream.permutation[2])


def test_permuted_tasks_own_ten_labels_each_and_pad_images():
  stream = build(name="permuted", tasks=3)
  np.testing.assert_array_equal(stream.labels, np.arange(30).reshape(3, 10))
  images = np.full((2, 28, 28), 7, np.uint8)
  flat = streams.shown_images(spec(name="permuted"), images).reshape(2, 32, 32)
  assert (flat[:, 2:30, 2:30] == 7).all()
  assert flat.sum() == images.sum()


def test_every_row_of_a_task_is_in_its_tables():
  stream = build()
  for y, table in ((TRAIN_Y, stream.train_rows), (TEST_Y, stream.test_rows)):
    for task in range(5):
      rows = table[task][table[task] >= 0]
      np.testing.assert_array_equal(rows, np.flatnonzero(y // 2 == task))


def test_stacking_seeds_pads_the_tables_of_rows():
  several = [build(seed, class_order="random") for seed in range(3)]
  stacked = streams.stack(several)
  assert stacked.rows.shape == (3, 45, 32)
  for stream, rows in zip(several, stacked.train_rows, strict=True):
    kept = [row[row >= 0].tolist() for row in rows]
    assert kept == [row[row >= 0].tolist() for row in stream.train_rows]


def test_streams_without_boundaries_are_equally_long_in_any_order_of_classes():
  """In a random order the smallest task has other sizes: those of the fixed count."""
  changes = {"setting": "boundary_free", "batch_size": 4}
  several = [build(seed, class_order="random", **changes) for seed in range(4)]
  smallest = {min((rows >= 0).sum() for rows in s.train_rows) // 4 for s in several}
  assert len(smallest) > 1
  assert streams.stack(several).rows.shape[1] == build(**changes).rows.shape[0]


# The numbers of the boundary-free split MNIST stream: N = 4350 steps, T = 5 tasks.


def test_boundary_free_breakpoints():
  weights = task_weights(4350, 5)
  alone = [np.flatnonzero(weights[:, k] == 1) for k in range(5)]
  assert (alone[0][0], alone[0][-1]) == (0, 652)  # fades from 652, where it is still 1
  assert (alone[1][0], alone[1][-1]) == (1087, 1522)
  present = np.flatnonzero(weights[:, 1])
  assert (present[0], present[-1]) == (653, 1956)
  assert alone[4][-1] == 4349


@pytest.mark.parametrize(("steps", "tasks"), [(4350, 5), (46800, 10), (19500, 5)])
def test_boundary_free_weights_are_shares_of_at_most_two_tasks(steps, tasks):
  weights = task_weights(steps, tasks)
  np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-12)
  assert (weights > 0).sum(axis=1).max() == 2
  np.testing.assert_allclose(weights.sum(axis=0), steps / tasks, atol=0.51)


def test_boundary_free_stream_follows_the_weights():
  stream = build(setting="boundary_free", epochs_per_task=60)
  steps = 60 * 5 * (120 // 32)  # the smallest task, digits 4 and 5, has 120 images
  assert stream.rows.shape == (steps, 32)
  weights = task_weights(steps, 5)
  shares = np.stack([(stream.tasks == k).mean(axis=1) for k in range(5)], axis=1)
  # Half a batch of mass moves at each nominal boundary.
  boundary = steps // 5
  window = slice(boundary - 20, boundary + 20)
  np.testing.assert_allclose(shares[window, 0].mean(), 0.5, atol=0.06)
  np.testing.assert_allclose(shares.mean(axis=0), weights.mean(axis=0), atol=0.01)
  assert (np.diff(stream.tasks.astype(int), axis=1) >= 0).all()
  assert all(len(np.unique(row)) == 32 for row in stream.rows)
  np.testing.assert_array_equal(stream.horizon, stream.tasks.max(axis=1))
  labels = labels_of(stream)
  assert (labels >= 0).all()


def test_joint_training_shows_all_tasks_from_the_start():
  stream = build(setting="joint")
  assert stream.rows.shape == (45, 32)
  assert (stream.horizon == 4).all()
  labels = labels_of(stream)
  assert (labels >= 0).all()
  # An epoch of 638 images is 19 full batches, each image at most once.
  epoch = stream.rows[:19].ravel()
  assert len(np.unique(epoch)) == len(epoch)
  shares = np.bincount(stream.tasks.ravel(), minlength=5) / stream.tasks.size
  np.testing.assert_allclose(shares, 0.2, atol=0.03)
  assert all(len(np.unique(row)) >= 4 for row in stream.tasks)


def test_a_batch_larger_than_a_task_is_refused():
  for setting in ("boundary_aware", "boundary_free"):
    with pytest.raises(ConfigError, match=r"batch_size=500 exceeds .* 120 images"):
      build(setting=setting, batch_size=500)


# Digests of every table as they were before classes could be distributed unevenly.
@pytest.mark.parametrize(
  ("changes", "expected"),
  [
    ({}, "f960718ebf4a3aba"),
    ({"class_order": "random"}, "9c4e785f2bd5fe80"),
    ({"scenario": "domain"}, "03d5b469e5ba0437"),
    ({"name": "permuted", "tasks": 3}, "08382b46aaa15829"),
    (
      {"setting": "boundary_free", "batch_size": 4, "class_order": "random"},
      "42f13d5838092044",
    ),
    ({"setting": "joint", "tasks": 2}, "7e66e847c812efc5"),
    ({"tasks": 10, "scenario": "task"}, "109dc4959a67e8c8"),
  ],
)
def test_tables_of_even_tasks_do_not_change(changes, expected):
  total = hashlib.sha256()
  for table in build(3, **changes):
    total.update(f"{table.dtype.str}{table.shape}".encode() + table.tobytes())
  assert total.hexdigest()[:16] == expected


@pytest.mark.parametrize("order", ["fixed", "random"])
def test_classes_that_do_not_divide_are_distributed_evenly(order):
  for seed in range(3):
    stream = build(seed, tasks=4, class_order=order)
    np.testing.assert_array_equal(stream.classes.sum(axis=1), [3, 3, 2, 2])
    np.testing.assert_array_equal(stream.classes.sum(axis=0), [1] * 10)
    labels = labels_of(stream)
    for task, own in enumerate(({0, 1, 2}, {3, 4, 5}, {6, 7}, {8, 9})):
      assert set(np.unique(labels[9 * task : 9 * task + 9])) == own
      assert set(np.flatnonzero(stream.classes[task])) == own


def test_uneven_tasks_share_labels_in_the_domain_scenario():
  stream = build(tasks=4, scenario="domain")
  np.testing.assert_array_equal(stream.classes.sum(axis=1), [3, 3, 2, 2])
  assert stream.classes.shape == (4, 3)
  assert not stream.classes[2:, 2].any()
  assert labels_of(stream)[-9:].max() == 1


def test_uneven_tasks_without_boundaries_last_epochs_of_the_smallest():
  stream = build(tasks=4, setting="boundary_free", epochs_per_task=2)
  assert len(stream.rows) == 2 * 4 * (128 // 32)  # digits 8 and 9 have 128 images
  several = [
    build(seed, tasks=4, setting="boundary_free", class_order="random", batch_size=4)
    for seed in range(3)
  ]
  streams.stack(several)


def grouped(groups, **changes):
  return spec(class_groups=groups, **changes)


def test_groups_of_classes_are_taken_as_listed():
  listed = grouped(((3, 9), (0, 1, 2, 4), (8, 5, 6), 7), tasks=4)
  stream = streams.build(listed, TRAIN_Y, TEST_Y, seed=5)
  raw = [np.flatnonzero(row >= 0).tolist() for row in stream.labels]
  assert raw == [[3, 9], [0, 1, 2, 4], [5, 6, 8], [7]]
  np.testing.assert_array_equal(stream.labels[2, [8, 5, 6]], [6, 7, 8])
  tasks = streams.make_tasks(listed, num_raw=10, seed=5)
  assert tasks.names == tuple("3901248567")


@pytest.mark.parametrize(
  ("groups", "changes", "problem"),
  [
    (((0, 1), (2, 3)), {"tasks": 2}, "each of the data set's classes 0 to 9 once"),
    ((tuple(range(9)), (8, 9)), {"tasks": 2}, "once"),
    ((tuple(range(10)), ()), {"tasks": 2}, "at least one for each task"),
    ((("cat",), tuple(range(1, 10))), {"tasks": 2}, "once"),
    ((tuple(range(5)), (5, 6, 7, 8, 9)), {"tasks": 5}, "set it to 2"),
    (
      (tuple(range(5)), (5, 6, 7, 8, 9)),
      {"tasks": 2, "class_order": "random"},
      "would undo",
    ),
  ],
)
def test_groups_that_are_not_possible(groups, changes, problem):
  with pytest.raises(ConfigError, match=problem):
    streams.build(grouped(groups, **changes), TRAIN_Y, TEST_Y, seed=0)


def test_more_tasks_than_classes_are_refused():
  with pytest.raises(ConfigError, match=r"tasks=11 exceeds the data set's 10 classes"):
    build(tasks=11)


def test_classes_have_the_names_of_the_data_set():
  pets = ("cat", "dog", "fish", "newt")

  def names(given=pets, **changes):
    tasks = streams.make_tasks(
      spec(**{"tasks": 2, **changes}), num_raw=4, seed=0, class_names=given
    )
    return tasks.names

  assert names() == pets
  assert names(()) == ("0", "1", "2", "3")
  assert names(class_order="random") == ("#1", "#2", "#3", "#4")
  assert names(scenario="domain") == ("0", "1")
  assert names(name="permuted")[3:5] == ("1:newt", "2:cat")


@pytest.mark.parametrize(
  ("shape", "pixels"), [((28, 28), 1024), ((12, 20), 240), ((40, 40), 1600), ((7,), 7)]
)
def test_images_of_any_size_and_rows_can_be_permuted(shape, pixels):
  permuted = spec(name="permuted", tasks=2)
  x = np.random.default_rng(0).random((5, *shape), np.float32)
  shown = streams.shown_images(permuted, x)
  assert shown.shape == (5, pixels)
  np.testing.assert_allclose(shown.sum(), x.sum(), rtol=1e-6)
  stream = streams.build(permuted, TRAIN_Y, TEST_Y, seed=1, shape=shape)
  assert stream.permutation.shape == (2, pixels)
  np.testing.assert_array_equal(np.sort(stream.permutation[1]), np.arange(pixels))


def test_rows_and_colour_images_are_shown_as_they_are():
  for x in (np.ones((3, 9), np.float32), np.ones((3, 8, 8, 3), np.uint8)):
    np.testing.assert_array_equal(streams.shown_images(spec(), x), x)
