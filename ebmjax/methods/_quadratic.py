"""A quadratic pull towards old weights, each parameter by its importance."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from ebmjax.methods._gradient import RowLosses, is_due
from ebmjax.types import Batch, PyTree


class Anchored(NamedTuple):
  """What to stay near to, and how much each parameter matters; trees as params."""

  importance: PyTree
  anchor: PyTree


class Held(NamedTuple):
  """The state of a method that pulls."""

  held: Anchored
  gathered: PyTree  # the importance since the last period; () at boundaries


def start(params: PyTree) -> Anchored:
  """Returns importance 0 everywhere: nothing is held yet."""
  return Anchored(jax.tree.map(jnp.zeros_like, params), params)


def begin(params: PyTree, every: int) -> Held:
  """Returns the state before the first step; `every` is 0 at boundaries."""
  gathered = jax.tree.map(jnp.zeros_like, params) if every else ()
  return Held(start(params), gathered)


def gather(
  own: Held,
  importance: PyTree,
  step: Array,
  every: int,
  close: Callable[[Anchored, PyTree], Anchored],
) -> Held:
  """Returns the state with a step's share of a period's importance.

  At the end of a period of `every` steps `close` makes what is held of all of it.
  """
  gathered = jax.tree.map(jnp.add, own.gathered, importance)

  def end() -> Held:
    empty = jax.tree.map(jnp.zeros_like, gathered)
    return Held(close(own.held, gathered), empty)

  return lax.cond(is_due(step, every), end, lambda: own._replace(gathered=gathered))


def pull(held: Anchored, params: PyTree) -> Array:
  """Returns []: sum_p importance_p (theta_p - anchor_p)^2."""
  parts = jax.tree.map(
    lambda importance, anchor, p: jnp.sum(importance * jnp.square(p - anchor)),
    held.importance,
    held.anchor,
    params,
  )
  return sum(jax.tree.leaves(parts), start=jnp.zeros(()))


def loss(factor: float) -> Callable[..., tuple[Array, PyTree]]:
  """Returns the loss of an `Addition` whose state has the field `held`.

  The task's, plus `factor` times the pull.
  """

  def pulled(
    own: Any,
    row_losses: RowLosses,
    params: PyTree,
    model_state: PyTree,
    key: Array,
    batch: Batch,
  ) -> tuple[Array, PyTree]:
    losses, model_state = row_losses(params, model_state, key, batch)
    return jnp.mean(losses) + factor * pull(own.held, params), model_state

  return pulled


def merge(held: Anchored, importance: PyTree, params: PyTree) -> Anchored:
  """Returns the one pull that equals two, towards `held` and towards `params`.

  sum_k F_k (theta - theta_k)^2 = A (theta - mu)^2 + const, with A' = A + F and
  mu' = (A mu + F theta) / A'. Nothing grows with the number of tasks, and nothing
  cancels at large strengths, as the expanded squares would.
  """

  def centre(a: Array, mu: Array, f: Array, theta: Array) -> Array:
    both = a + f
    # As a step from mu: exact where one of the two weighs nothing.
    return mu + jnp.where(both > 0, f / jnp.where(both > 0, both, 1), 1) * (theta - mu)

  total = jax.tree.map(jnp.add, held.importance, importance)
  anchor = jax.tree.map(centre, held.importance, held.anchor, importance, params)
  return Anchored(total, anchor)
