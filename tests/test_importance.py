"""Importance of parameters against plain loops of gradients, row by row."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from ebmjax import networks
from ebmjax.methods import importance
from ebmjax.methods.ewc import EWC
from ebmjax.methods.importance import Block
from ebmjax.types import Network, TaskView

PIXELS, CLASSES, ROWS = 6, 4, 10
SEEN = jnp.array([True, False, True, True])
VALID = jnp.arange(ROWS) % 5 != 3  # two rows of ten do not count

both_networks = pytest.mark.parametrize("name", ["sbc", "ebm"])


def make_network(name: str) -> Network:
  return networks.make(name, input_shape=(PIXELS,), num_classes=CLASSES, hidden=5)


def images(seed: int, count: int = ROWS) -> jax.Array:
  rng = np.random.default_rng(seed)
  return jnp.asarray(rng.integers(0, 256, (count, PIXELS)), jnp.uint8)


def sum_by_hand(losses: Any, params: Any, rows: Any, power: int) -> Any:
  """Returns the sum over rows of |gradient|^power, one jax.grad a row, in float64."""
  gradient = jax.jit(jax.grad(lambda p, row: losses(p, row)[0]))
  total = jax.tree.map(lambda p: np.zeros(p.shape), params)
  for i in range(jax.tree.leaves(rows)[0].shape[0]):
    found = gradient(params, jax.tree.map(lambda leaf, i=i: leaf[i : i + 1], rows))
    total = jax.tree.map(
      lambda t, g: t + np.abs(np.asarray(g, float)) ** power, total, found
    )
  return total


def assert_close(tree: Any, other: Any) -> None:
  chex.assert_trees_all_equal_structs(tree, other)
  chex.assert_trees_all_close(tree, other, rtol=2e-4, atol=1e-7)


def refuse(*args: Any) -> Any:
  raise AssertionError("the wrong path")


@pytest.mark.parametrize("power", [1, 2])
@both_networks
def test_a_sum_over_rows_equals_a_loop_of_gradients(name, power, monkeypatch):
  """Dense layers in closed form, a gated network row by row, both right."""
  network = make_network(name)
  params, model_state = network.init(jax.random.key(0))
  # The path that this network must not take.
  other = "_sum_row_by_row" if name == "sbc" else "_sum_dense"
  monkeypatch.setattr(importance, other, refuse)

  def losses(params, rows):
    x, y = rows
    energies, _ = network.energies(params, model_state, x, jnp.arange(CLASSES))
    true = jnp.take_along_axis(energies, y[:, None], axis=1)[:, 0]
    return jnp.sum(jnp.square(energies), axis=1) + jnp.tanh(true)

  rows = (images(1), jnp.arange(ROWS) % CLASSES)
  got = importance.sum_over_rows(losses, params, rows, power)
  expected = sum_by_hand(losses, params, rows, power)
  assert all(np.any(leaf > 0) for leaf in jax.tree.leaves(expected))
  assert_close(got, expected)


class Bilinear(nn.Module):
  """E = -<W x, e_y>, which has as many parameters as a dense layer with a bias."""

  @nn.compact
  def __call__(self, x, labels):
    wx = nn.Dense(3, use_bias=False)(x)
    e = nn.Embed(CLASSES, 3)(jnp.broadcast_to(labels, (x.shape[0], labels.shape[-1])))
    return -jnp.einsum("bf,bkf->bk", wx, e)

  def features(self, x):
    return x


def test_a_dense_layer_without_a_bias_is_taken_row_by_row():
  network = networks.from_module(Bilinear(), (PIXELS,), CLASSES)
  variables = network.init(jax.random.key(0))
  x, y = images(3), jnp.asarray([0, 2, 3, 0, 2, 3, 0, 2, 3, 0])
  block = Block(x, y, jnp.ones(ROWS, bool), SEEN)
  got = importance.fisher_sum(network, *variables, block, "true")
  assert_close(got, fisher_by_hand(network, variables, x, y, "true"))


def fisher_by_hand(network: Network, variables: Any, x: Any, y: Any, kind: str) -> Any:
  """Returns the Fisher information of rows that all count, seen classes cut out."""
  params, model_state = variables
  seen = np.flatnonzero(SEEN)

  def log_p(p, row):
    energies, _ = network.energies(p, model_state, row, jnp.asarray(seen))
    return jax.nn.log_softmax(-energies[0])

  each = jax.jit(jax.jacrev(log_p))
  total = jax.tree.map(lambda p: np.zeros(p.shape), params)
  for i in range(len(x)):
    row = x[i : i + 1]
    p = np.exp(np.asarray(log_p(params, row), float))
    weights = {
      "argmax": np.arange(3) == p.argmax(),
      "true": seen == int(y[i]),
      "batch": seen == int(y[i]),
      "expected": p,
    }[kind]
    # The batch's gradients are added up with their signs.
    raised = np.asarray if kind == "batch" else np.square

    def add(t: Any, g: Any, weights: Any = weights, raised: Any = raised) -> Any:
      return t + np.tensordot(weights, raised(np.asarray(g, float)), axes=1)

    total = jax.tree.map(add, total, each(params, row))
  if kind == "batch":
    return jax.tree.map(lambda t: np.square(t / len(x)), total)
  return total


@pytest.mark.parametrize("kind", EWC.keys["fisher"].choices)
@both_networks
def test_fisher_equals_a_loop_over_the_rows_and_classes_that_count(name, kind):
  network = make_network(name)
  variables = network.init(jax.random.key(1))
  x, y = images(2), jnp.asarray(np.flatnonzero(SEEN)[np.arange(ROWS) % 3])
  y = jnp.where(VALID, y, 1)  # padding may carry any label, one of no seen class too
  got = importance.fisher_sum(network, *variables, Block(x, y, VALID, SEEN), kind)
  counted = np.flatnonzero(VALID)
  expected = fisher_by_hand(network, variables, x[counted], y[counted], kind)
  assert any(np.any(leaf > 1e-6) for leaf in jax.tree.leaves(expected))
  assert_close(got, expected)


@pytest.mark.parametrize("kind", EWC.keys["fisher"].choices)
def test_what_does_not_count_leaves_no_trace(kind):
  """Other pixels in padded rows, other weights of an unseen class: the same Fisher."""
  network = make_network("sbc")
  params, model_state = network.init(jax.random.key(1))
  x, y = images(2), jnp.zeros(ROWS, jnp.int32)

  def fisher(params, x):
    block = Block(x, y, VALID, SEEN)
    return importance.fisher_sum(network, params, model_state, block, kind)

  once = fisher(params, x)
  head = params["head"]
  changed = {
    "kernel": head["kernel"].at[:, 1].add(3.0),
    "bias": head["bias"].at[1].add(50.0),
  }
  again = fisher(params | {"head": changed}, jnp.where(VALID[:, None], x, 255 - x))
  assert_close(once, again)
  np.testing.assert_array_equal(once["head"]["kernel"][:, 1], 0)
  assert once["head"]["bias"][0] > 0


def test_recipes_of_fisher_differ():
  network = make_network("sbc")
  variables = network.init(jax.random.key(1))
  y = jnp.asarray(np.flatnonzero(SEEN)[np.arange(ROWS) % 3])
  block = Block(images(2), y, VALID, SEEN)
  norms = {
    kind: float(
      sum(
        jnp.sum(leaf)
        for leaf in jax.tree.leaves(
          importance.fisher_sum(network, *variables, block, kind)
        )
      )
    )
    for kind in EWC.keys["fisher"].choices
  }
  assert len({f"{norm:.3g}" for norm in norms.values()}) == len(norms)


def batch_view(count: int, valid: Any, permutation: Any = ()) -> TaskView:
  """Returns a task whose labels are the numbers of its rows, in some order."""
  order = np.random.default_rng(0).permutation(count)
  return TaskView(
    x=images(3, count),
    y=jnp.arange(count),
    permutation=jnp.asarray(permutation, jnp.int32),
    rows=jnp.asarray(np.where(valid, order, 0)),
    valid=jnp.asarray(valid),
    task=jnp.int32(0),
    seen=SEEN,
  )


def count_rows(view: TaskView, key: int, samples: int) -> tuple[Any, int, int]:
  """Returns how often each row was used [N], and the two numbers of `over_task`."""

  def part(block):
    weights = block.valid.astype(int)
    return jnp.bincount(block.y, weights=weights, length=view.y.shape[0])

  used, number, blocks = importance.over_task(part, view, jax.random.key(key), samples)
  return np.asarray(used), int(number), int(blocks)


# Three blocks of 128 would do, padding included; the last has no row that counts.
SOME = np.arange(300) < 200


def test_a_task_is_gone_through_once_and_padding_does_not_count():
  view = batch_view(300, SOME)
  used, number, blocks = count_rows(view, 0, samples=0)
  expected = np.zeros(300)
  expected[np.asarray(view.rows)[SOME]] = 1
  np.testing.assert_array_equal(used, expected)
  assert (number, blocks) == (200, 2)


@pytest.mark.parametrize("samples,number", [(50, 50), (130, 130), (250, 200)])
def test_samples_are_distinct_rows_that_count(samples, number):
  view = batch_view(300, SOME)
  used, found, blocks = count_rows(view, 0, samples)
  assert found == used.sum() == number
  assert blocks == -(-number // 128)
  assert used.max() == 1
  assert used[np.setdiff1d(np.arange(300), np.asarray(view.rows)[SOME])].sum() == 0
  if number < 200:
    assert (used != count_rows(view, 1, samples)[0]).any()


def test_blocks_are_mixed_though_the_rows_are_sorted_by_class():
  """A mean over a block of one class is another than over a block of all."""
  view = batch_view(512, np.ones(512, bool))
  view = view._replace(rows=jnp.arange(512), y=jnp.arange(512) // 128)

  def classes_of_block(block):
    return jnp.sum(jnp.bincount(block.y, length=4) > 0)

  found, _, blocks = importance.over_task(classes_of_block, view, jax.random.key(0))
  assert (int(found), int(blocks)) == (4 * 4, 4)


def test_the_order_does_not_depend_on_padding():
  def of(padding):
    view = batch_view(40 + padding, np.arange(40 + padding) < 40)
    view = view._replace(rows=jnp.minimum(jnp.arange(40 + padding), 39))
    return importance.over_task(
      lambda block: block.y[:20], view, jax.random.key(0), samples=20
    )[0]

  np.testing.assert_array_equal(of(0), of(9))


def test_images_come_as_the_task_showed_them():
  permutation = np.array([3, 0, 5, 1, 4, 2])
  valid = np.arange(9) < 7
  view = batch_view(9, valid, permutation)

  def part(block):
    weights = jnp.where(block.valid, block.y, 0)
    return jnp.sum(weights[:, None] * block.x.astype(jnp.int32), axis=0)

  got, _, _ = importance.over_task(part, view, jax.random.key(0))
  rows = np.asarray(view.rows)[valid]
  shown = np.asarray(view.x)[rows].astype(int)[:, permutation]
  np.testing.assert_array_equal(got, (rows[:, None] * shown).sum(axis=0))
