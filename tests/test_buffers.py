"""Stores of old rows, against plain loops in NumPy."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ebmjax.methods import buffers
from ebmjax.methods.buffers import Buffer, Reservoir
from ebmjax.methods.er import ER
from ebmjax.types import TaskView

BUDGET, CLASSES, PIXELS, ROWS = 20, 8, 3, 60
ROW = jax.ShapeDtypeStruct((PIXELS,), jnp.uint8)


def view_of(task: int, valid: int = 50, permutation: Any = ()) -> TaskView:
  """Returns a task of two classes; an image's first pixel is its row's number."""
  rng = np.random.default_rng(task)
  x = rng.integers(0, 256, (ROWS, PIXELS))
  x[:, 0] = np.arange(ROWS)
  return TaskView(
    x=jnp.asarray(x, jnp.uint8),
    y=jnp.asarray(2 * task + np.arange(ROWS) % 2, jnp.int32),
    permutation=jnp.asarray(permutation, jnp.int32),
    rows=jnp.asarray(rng.permutation(ROWS), jnp.int32),
    valid=jnp.arange(ROWS) < valid,
    task=jnp.int32(task),
    seen=jnp.arange(CLASSES) < 2 * task + 2,
  )


@partial(jax.jit, static_argnames="quota")
def add(buffer: Buffer, key: jax.Array, view: TaskView, quota: str) -> Buffer:
  return buffers.add_task(buffer, key, view, quota)


def rows_of(buffer: Buffer, owner: int) -> np.ndarray:
  """Returns the stored images of an owner, in order of their slots."""
  taken = np.arange(len(buffer.owner)) < int(buffer.taken)
  return np.asarray(buffer.x)[taken & (np.asarray(buffer.owner) == owner)]


@pytest.mark.parametrize("quota", ER.keys["quota"].choices)
def test_quotas_over_four_tasks(quota):
  buffer = buffers.empty_buffer(ROW, BUDGET)
  stored: dict[int, np.ndarray] = {}
  for task in range(4):
    view = view_of(task)
    buffer = add(buffer, jax.random.key(task), view, quota)
    share = BUDGET // (task + 1 if quota == "task" else 2 * task + 2)
    # Old owners: exactly the first rows of what they had.
    for owner, images in stored.items():
      np.testing.assert_array_equal(rows_of(buffer, owner), images[:share])
    new = [task] if quota == "task" else [2 * task, 2 * task + 1]
    assert {*np.asarray(buffer.owner).tolist()} - {-1} == {*stored, *new}
    everyone = set(np.asarray(view.rows[:50]).tolist())
    for owner in new:
      images = rows_of(buffer, owner)
      numbers = set(images[:, 0].tolist())
      assert len(images) == len(numbers) == share
      assert numbers <= everyone
      np.testing.assert_array_equal(images, np.asarray(view.x)[images[:, 0]])
      if quota == "class":
        assert {number % 2 for number in numbers} == {owner % 2}
    stored = {owner: rows_of(buffer, owner) for owner in [*stored, *new]}
    assert int(buffer.taken) == sum(map(len, stored.values())) <= BUDGET


def test_labels_and_ranks_go_with_their_images():
  buffer = buffers.empty_buffer(ROW, BUDGET)
  views = [view_of(task) for task in range(3)]
  for task, view in enumerate(views):
    buffer = add(buffer, jax.random.key(task), view, "task")
  for slot in range(int(buffer.taken)):
    view = views[int(buffer.owner[slot])]
    assert buffer.y[slot] == view.y[int(buffer.x[slot, 0])]
  np.testing.assert_array_equal(buffer.rank[: int(buffer.taken)], [*range(6)] * 3)
  np.testing.assert_array_equal(buffer.owner[int(buffer.taken) :], -1)


@pytest.mark.parametrize("quota", ER.keys["quota"].choices)
def test_a_task_with_fewer_images_than_its_share(quota):
  buffer = buffers.empty_buffer(ROW, BUDGET)
  buffer = add(buffer, jax.random.key(0), view_of(0, valid=7), quota)
  numbers = np.asarray(buffer.x[: int(buffer.taken), 0])
  assert sorted(numbers) == sorted(np.asarray(view_of(0).rows[:7]))
  buffer = add(buffer, jax.random.key(1), view_of(1), quota)
  assert 7 < int(buffer.taken) <= BUDGET


def test_an_image_is_changed_once_when_it_is_stored():
  def darken(key, x):
    return x // 2 + jax.random.randint(key, (), 100, 120, jnp.uint8)

  plain = stored = buffers.empty_buffer(ROW, BUDGET)
  for task in range(2):
    key, view = jax.random.key(task), view_of(task)
    plain = buffers.add_task(plain, key, view, "task")
    stored = buffers.add_task(stored, key, view, "task", darken)
  halves = np.asarray(plain.x) // 2
  shift = np.asarray(stored.x) - halves
  owner = np.asarray(plain.owner)
  for task in range(2):  # the same images as without, a key's one number higher
    assert len(np.unique(shift[owner == task])) == 1 and shift.min() >= 100
  assert shift[owner == 0][0, 0] != shift[owner == 1][0, 0]


def test_every_image_is_stored_equally_often():
  def numbers(key):
    empty = buffers.empty_buffer(ROW, BUDGET)
    return buffers.add_task(empty, key, view_of(0), "task").x[:, 0]

  found = jax.jit(jax.vmap(numbers))(jax.random.split(jax.random.key(0), 500))
  often = np.bincount(np.asarray(found).ravel(), minlength=ROWS)
  valid = np.asarray(view_of(0).rows[:50])
  assert often.sum() == often[valid].sum() == 500 * BUDGET
  # 200 of 500 times each, with a deviation of sqrt(500 * 0.4 * 0.6) = 11.
  np.testing.assert_allclose(often[valid], 200, atol=50)
  # The order is random too: the first slot is nobody's own.
  assert len(np.unique(found[:, 0])) > 40


def test_padding_does_not_change_what_is_stored():
  """Seeds with tasks of other sizes are padded to the largest of them.

  Of so many rows: `jax.random.permutation` is the same for fewer of them, by chance.
  """
  valid = 12_500

  def stored(padded: int) -> np.ndarray:
    rows = jnp.where(jnp.arange(padded) < valid, jnp.arange(padded), 0)
    view = TaskView(
      x=jnp.arange(valid, dtype=jnp.float32)[:, None],
      y=jnp.zeros(valid, jnp.int32),
      permutation=jnp.zeros(0, jnp.int32),
      rows=rows,
      valid=jnp.arange(padded) < valid,
      task=jnp.int32(0),
      seen=jnp.ones(1, bool),
    )
    empty = buffers.empty_buffer(jax.ShapeDtypeStruct((1,), jnp.float32), 1000)
    return np.asarray(add(empty, jax.random.key(0), view, "task").x)

  np.testing.assert_array_equal(stored(12_593), stored(12_700))


def test_permuted_images_are_stored_permuted():
  view = view_of(0, permutation=[2, 0, 1])
  buffer = add(buffers.empty_buffer(ROW, BUDGET), jax.random.key(0), view, "task")
  images = np.asarray(buffer.x)
  np.testing.assert_array_equal(images, np.asarray(view.x)[images[:, 1]][:, [2, 0, 1]])


def test_features_keep_their_type():
  row = jax.ShapeDtypeStruct((PIXELS,), jnp.float32)
  view = view_of(0)
  view = view._replace(x=view.x / jnp.float32(7))
  buffer = add(buffers.empty_buffer(row, BUDGET), jax.random.key(0), view, "class")
  assert buffer.x.dtype == jnp.float32
  assert set(np.asarray(buffer.x[:, 0]).tolist()) <= set(
    np.asarray(view.x[:, 0]).tolist()
  )


def filled(number: int) -> Buffer:
  """Returns a buffer whose first `number` slots hold their own number."""
  places = jnp.arange(BUDGET, dtype=jnp.int32)
  x = jnp.broadcast_to(places[:, None], (BUDGET, PIXELS)).astype(jnp.uint8)
  return Buffer(x, places, places, places, jnp.int32(number))


def test_draws_are_distinct_and_uniform():
  keys = jax.random.split(jax.random.key(0), 2000)
  drawn = jax.jit(jax.vmap(lambda key: buffers.draw(key, filled(15), 6)))(keys)
  assert drawn.valid.all()
  labels = np.sort(np.asarray(drawn.y), axis=1)
  assert (labels[:, 1:] != labels[:, :-1]).all()
  np.testing.assert_array_equal(drawn.x[:, :, 0], drawn.y)
  often = np.bincount(labels.ravel(), minlength=BUDGET)
  assert not often[15:].any()
  # 800 times each, with a deviation of sqrt(2000 * 0.4 * 0.6) = 22.
  np.testing.assert_allclose(often[:15], 800, atol=100)


@pytest.mark.parametrize("number", [0, 4, BUDGET])
def test_what_is_not_stored_is_marked(number):
  drawn = buffers.draw(jax.random.key(0), filled(number), 25)
  assert drawn.x.shape == (25, PIXELS)
  assert drawn.valid.sum() == number
  assert sorted(np.asarray(drawn.y)[np.asarray(drawn.valid)]) == list(range(number))


def one_by_one(slots: np.ndarray, budget: int) -> np.ndarray:
  """Returns what algorithm R holds after rows that chose these slots, in a loop."""
  held = np.full(budget, -1)
  for number, slot in enumerate(slots):
    if number < budget:
      held[number] = number
    elif slot < budget:
      held[slot] = number
  return held


def test_a_reservoir_equals_the_loop():
  """Batches larger than the budget, so that rows of one batch replace each other."""
  reservoir = buffers.empty_reservoir(ROW, 5)
  slots: list[np.ndarray] = []
  for i in range(6):
    key = jax.random.key(i)
    y = jnp.arange(16 * i, 16 * i + 16, dtype=jnp.int32)
    x = jnp.broadcast_to(y[:, None], (16, PIXELS)).astype(jnp.uint8)
    slots.append(np.asarray(jax.random.randint(key, (16,), 0, y + 1, dtype=jnp.int32)))
    reservoir = jax.jit(buffers.offer)(reservoir, key, x, y)
    np.testing.assert_array_equal(reservoir.y, one_by_one(np.concatenate(slots), 5))
  np.testing.assert_array_equal(reservoir.x[:, 0], reservoir.y)
  assert reservoir.offered == 96 and reservoir.taken == 5


def test_a_reservoir_fills_before_it_forgets():
  reservoir = buffers.empty_reservoir(ROW, 5)
  assert reservoir.taken == 0
  y = jnp.array([3, 1, 2], jnp.int32)
  reservoir = buffers.offer(
    reservoir, jax.random.key(0), jnp.zeros((3, PIXELS), jnp.uint8), y
  )
  assert reservoir.taken == 3
  drawn = buffers.draw(jax.random.key(1), reservoir, 8)
  assert sorted(np.asarray(drawn.y)[np.asarray(drawn.valid)]) == [1, 2, 3]


def test_a_reservoir_holds_all_rows_equally_often():
  """2,000 rows in batches of 40; early and late ones are held alike."""
  row = jax.ShapeDtypeStruct((), jnp.uint8)

  def run(key):
    def body(reservoir: Reservoir, inputs: Any) -> tuple[Reservoir, None]:
      number, y = inputs
      x = jnp.zeros(40, jnp.uint8)
      return buffers.offer(reservoir, jax.random.fold_in(key, number), x, y), None

    stream = (jnp.arange(50), jnp.arange(2000, dtype=jnp.int32).reshape(50, 40))
    return jax.lax.scan(body, buffers.empty_reservoir(row, 100), stream)[0].y

  held = jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(0), 400))
  often = np.bincount(np.asarray(held).ravel(), minlength=2000)
  assert often.sum() == 400 * 100
  # A block of 100 rows: 2,000 times, with a deviation below sqrt(2000) = 45.
  np.testing.assert_allclose(often.reshape(20, 100).sum(axis=1), 2000, atol=200)
  assert often.max() < 60  # 20 times each, with a deviation of 4.4
