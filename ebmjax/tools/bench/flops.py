"""Counts the matrix products of a traced program, by shape.

A convolution counts as the product it amounts to. Element-wise work is left out, as in
a machine's peak; `ebmjax.runtime.flops` has it. What is counted is what the program
does, not what the plain network would need: a product that is left out of the program
is left out of the count.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax

from ebmjax.runtime.budget import batch_shapes
from ebmjax.runtime.flops import jaxprs
from ebmjax.runtime.trainer import RunSpec


class Product(NamedTuple):
  """[batch, rows, inner] times [batch, inner, columns]."""

  batch: int
  rows: int
  inner: int
  columns: int

  @property
  def flops(self) -> int:
    """Returns multiplications and additions."""
    return 2 * math.prod(self)


def step_products(spec: RunSpec) -> Counter[Product]:
  """Returns how often a training step of one seed does each product."""
  learner, key = spec.learner, spec.tables.key[0]
  state = jax.eval_shape(learner.init, key)
  return count(jax.make_jaxpr(learner.step)(state, key, batch_shapes(spec)).jaxpr)


def total(products: Counter[Product]) -> int:
  """Returns the FLOPs of all of them."""
  return sum(product.flops * times for product, times in products.items())


def count(jaxpr: Any) -> Counter[Product]:
  """Returns how often each product is done, loops and inner functions included."""
  found: Counter[Product] = Counter()
  for equation, times in products(jaxpr):
    found[_PRODUCTS[equation.primitive.name](equation)] += times
  return found


def products(jaxpr: Any) -> Iterator[tuple[Any, int]]:
  """Yields the equation of each product and how often it is done.

  Of branches the costliest counts.
  """
  for equation in jaxpr.eqns:
    name = equation.primitive.name
    if name in _PRODUCTS:
      yield equation, 1
    parts = list(jaxprs(equation.params))
    if name == "cond":
      parts = [max(parts, key=lambda part: total(count(part)))]
    times = equation.params["length"] if name == "scan" else 1
    for inner, n in (found for part in parts for found in products(part)):
      if name == "while":
        raise ValueError("a loop of unknown length has products: they have no count")
      yield inner, times * n


def _dot(equation: Any) -> Product:
  (inner, _), (batch, _) = equation.params["dimension_numbers"]
  left, right = (variable.aval.shape for variable in equation.invars)
  shared = math.prod(left[i] for i in batch)
  summed = math.prod(left[i] for i in inner)
  rows = math.prod(left) // (shared * summed)
  return Product(shared, rows, summed, math.prod(right) // (shared * summed))


def _convolution(equation: Any) -> Product:
  kernel = equation.invars[1].aval.shape
  outputs = kernel[equation.params["dimension_numbers"].rhs_spec[0]]
  rows = math.prod(equation.outvars[0].aval.shape) // outputs
  return Product(1, rows, math.prod(kernel) // outputs, outputs)


_PRODUCTS: dict[str, Callable[[Any], Product]] = {
  "dot_general": _dot,
  "conv_general_dilated": _convolution,
}
