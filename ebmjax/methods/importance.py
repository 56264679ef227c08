"""Importance of parameters: sums over rows of |gradient| or gradient squared.

A row's gradient for a dense layer is an outer product a d^T of its input and of the
gradient d at its output, so the sum over rows of its squares is (a^2)^T (d^2), and of
its absolute values |a|^T |d|: one matrix product, never a gradient per row. Where a
network has other parameters, gradients are taken row by row.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array, lax

from ebmjax.prediction import among, predict
from ebmjax.types import Network, PyTree, TaskView

Fisher = Literal["argmax", "expected", "true", "batch"]
_BLOCK = 128  # images at a time
_FEW = 16  # rows whose gradients are held at a time


class Block(NamedTuple):
  """Images for which importance is measured at once."""

  x: Array  # [B, ...]
  y: Array  # [B] int32
  valid: Array  # [B] bool, which of them count
  seen: Array  # [C] bool, classes whose outputs count


# (params, rows) -> losses [B]; `rows` is a tree of arrays [B, ...]
LossesOfRows = Callable[[PyTree, PyTree], Array]


def sum_over_rows(
  losses: LossesOfRows, params: PyTree, rows: PyTree, power: int
) -> PyTree:
  """Returns sum_b |d loss_b / d params|^power, a tree as params; power is 1 or 2."""
  if _is_dense(losses, params, rows):
    return _sum_dense(losses, params, rows, power)
  return _sum_row_by_row(losses, params, rows, power)


def fisher_sum(
  network: Network, params: PyTree, model_state: PyTree, block: Block, recipe: str
) -> PyTree:
  """Returns the sum over the valid rows of the diagonal Fisher information.

  It is that of p(y | x) = softmax(-E) over the seen classes, for the predicted label
  (`recipe` argmax), in expectation over labels (expected) or for the true label (true).
  The recipe batch squares the mean gradient of the block under its true labels: one
  term, not one for each row.
  """
  x, y, valid, seen = block

  def surprise(params: PyTree, x: Array, valid: Array) -> Array:
    """Returns -log p [B, C] of all labels, 0 where they do not count."""
    labels = jnp.arange(network.num_classes)
    energies, _ = network.energies(params, model_state, x, labels)
    scores = among(-energies, seen[None, :])
    counted = valid[:, None] & seen[None, :]
    return jnp.where(counted, -jax.nn.log_softmax(scores), 0.0)

  def of_label(params: PyTree, rows: PyTree) -> Array:
    x, y, valid = rows
    return jnp.take_along_axis(surprise(params, x, valid), y[:, None], axis=1)[:, 0]

  def of_prediction(params: PyTree, rows: PyTree) -> Array:
    x, _, valid = rows
    found = surprise(params, x, valid)
    label = predict(found, seen)  # the least surprising
    return jnp.take_along_axis(found, label[:, None], axis=1)[:, 0]

  def expected(total: PyTree, label: Array) -> tuple[PyTree, None]:
    def weighted(params: PyTree, rows: PyTree) -> Array:
      found = surprise(params, rows[0], rows[2])[:, label]
      # Its square weighs the squared gradient by the label's probability.
      return found * lax.stop_gradient(jnp.exp(-found / 2))

    found = sum_over_rows(weighted, params, (x, y, valid), 2)
    return jax.tree.map(jnp.add, total, found), None

  if recipe == "batch":
    count = jnp.maximum(jnp.sum(valid), 1)
    mean = jax.grad(lambda p: jnp.sum(of_label(p, (x, y, valid))) / count)(params)
    return jax.tree.map(jnp.square, mean)
  if recipe == "expected":
    return lax.scan(expected, _zeros(params), jnp.arange(network.num_classes))[0]
  losses = of_prediction if recipe == "argmax" else of_label
  return sum_over_rows(losses, params, (x, y, valid), 2)


def over_task(
  part: Callable[[Block], PyTree], view: TaskView, key: Array, samples: int = 0
) -> tuple[PyTree, Array, Array]:
  """Returns the sum of part(block) over blocks of a finished task's images.

  `samples` images (0: all) are taken in random order: files may be sorted by class, and
  the mean of a block depends on which images share it. Also returns the numbers of
  images and of blocks that had any.
  """
  scores = jnp.where(view.valid, jax.random.uniform(key, view.rows.shape), jnp.inf)
  chosen = jnp.argsort(scores)[: samples or None]
  rows, valid = view.rows[chosen], view.valid[chosen]
  short = -rows.shape[0] % _BLOCK
  rows, valid = jnp.pad(rows, (0, short)), jnp.pad(valid, (0, short))

  def part_of(block: tuple[Array, Array]) -> PyTree:
    rows, valid = block
    return part(Block(task_images(view, rows), view.y[rows], valid, view.seen))

  def add(total: PyTree, block: tuple[Array, Array]) -> tuple[PyTree, None]:
    return jax.tree.map(jnp.add, total, part_of(block)), None

  blocks = (rows.reshape(-1, _BLOCK), valid.reshape(-1, _BLOCK))
  shapes = jax.eval_shape(part_of, jax.tree.map(lambda leaf: leaf[0], blocks))
  start = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
  total, _ = lax.scan(add, start, blocks)
  return total, jnp.sum(valid), jnp.sum(jnp.any(blocks[1], axis=1))


def task_images(view: TaskView, rows: Array) -> Array:
  """Returns the images of rows [B] as the finished task showed them."""
  x = view.x[rows]
  return x if view.permutation.shape[0] == 0 else x[:, view.permutation]


def scaled(tree: PyTree, factor: Array | float) -> PyTree:
  """Returns every leaf times a number."""
  return jax.tree.map(lambda leaf: leaf * factor, tree)


def _zeros(tree: PyTree) -> PyTree:
  return jax.tree.map(jnp.zeros_like, tree)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _linear(power: int, x: Array, kernel: Array, bias: Array) -> Array:
  """Returns x [B, I] @ kernel + bias; its gradients are sums over rows of powers."""
  del power
  return x @ kernel + bias[None, :]


def _linear_forward(power: int, x: Array, kernel: Array, bias: Array) -> Any:
  return _linear(power, x, kernel, bias), (x, kernel)


def _linear_backward(power: int, kept: tuple[Array, Array], g: Array) -> Any:
  x, kernel = kept
  raised = jnp.square if power == 2 else jnp.abs
  return g @ kernel.T, raised(x).T @ raised(g), jnp.sum(raised(g), axis=0)


_linear.defvjp(_linear_forward, _linear_backward)


def _sum_dense(
  losses: LossesOfRows, params: PyTree, rows: PyTree, power: int
) -> PyTree:
  """Returns the sum for a network whose parameters are all in dense layers."""

  def dense(call: Any, args: Any, kwargs: Any, context: Any) -> Any:
    if not _is_dense_call(context):
      return call(*args, **kwargs)
    own = context.module.variables["params"]
    return _linear(power, args[0], own["kernel"], own["bias"])

  def total(params: PyTree) -> Array:
    with nn.intercept_methods(dense):
      return jnp.sum(losses(params, rows))

  return jax.grad(total)(params)


def _sum_row_by_row(
  losses: LossesOfRows, params: PyTree, rows: PyTree, power: int
) -> PyTree:
  raised = jnp.square if power == 2 else jnp.abs
  count = jax.tree.leaves(rows)[0].shape[0]
  few = math.gcd(count, _FEW)

  def gradient(row: PyTree) -> PyTree:
    alone = jax.tree.map(lambda leaf: leaf[None], row)
    return jax.grad(lambda p: losses(p, alone)[0])(params)

  def add(total: PyTree, part: PyTree) -> tuple[PyTree, None]:
    found = jax.vmap(gradient)(part)
    add_up = jax.tree.map(lambda t, g: t + jnp.sum(raised(g), axis=0), total, found)
    return add_up, None

  parts = jax.tree.map(lambda leaf: leaf.reshape(-1, few, *leaf.shape[1:]), rows)
  return lax.scan(add, _zeros(params), parts)[0]


def _is_dense(losses: LossesOfRows, params: PyTree, rows: PyTree) -> bool:
  """Returns whether all parameters are in dense layers on [B, I], each used once.

  The layers must have a bias.
  """
  count = jax.tree.leaves(rows)[0].shape[0]
  used: list[tuple[str, ...]] = []
  fits = True

  def look(call: Any, args: Any, kwargs: Any, context: Any) -> Any:
    nonlocal fits
    if _is_dense_call(context):
      used.append(context.module.path)
      whole = context.module.use_bias and args[0].ndim == 2
      fits = fits and whole and args[0].shape[0] == count
    return call(*args, **kwargs)

  with nn.intercept_methods(look):
    jax.eval_shape(losses, params, rows)
  once = len(set(used)) == len(used)
  return fits and once and 2 * len(used) == len(jax.tree.leaves(params))


def _is_dense_call(context: Any) -> bool:
  return isinstance(context.module, nn.Dense) and context.method_name == "__call__"
