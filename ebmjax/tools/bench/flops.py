"""Counts the matrix products of a traced program, by shape.

A convolution counts as the product it amounts to. Element-wise work is left out, as in
a machine's peak. What is counted is what the program does, not what the plain network
would need: a product that is left out of the program is left out of the count.
"""

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr

from ebmjax.runtime.trainer import RunSpec
from ebmjax.types import Batch


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
  learner, size = spec.learner, spec.config.stream.batch_size
  images, classes = spec.train_images, spec.tables.classes[0]

  def shape(*sizes: int, dtype: Any = jnp.int32) -> Any:
    return jax.ShapeDtypeStruct(sizes, dtype)

  every = shape(classes.shape[1], dtype=bool)
  x = shape(size, *images.x.shape[1:], dtype=images.x.dtype)
  batch = Batch(x, shape(size), shape(size), every, every, shape())

  key = spec.tables.key[0]
  state = jax.eval_shape(learner.init, key)
  traced = jax.make_jaxpr(learner.step)(state, key, batch)
  return count(traced)


def total(products: Counter[Product]) -> int:
  """Returns the FLOPs of all of them."""
  return sum(product.flops * times for product, times in products.items())


def count(traced: ClosedJaxpr | Jaxpr) -> Counter[Product]:
  """Returns how often each product is done, loops and inner functions included."""
  jaxpr = traced.jaxpr if isinstance(traced, ClosedJaxpr) else traced
  found: Counter[Product] = Counter()
  for equation in jaxpr.eqns:
    name = equation.primitive.name
    if name == "dot_general":
      found[_dot(equation)] += 1
    elif name == "conv_general_dilated":
      found[_convolution(equation)] += 1
    elif name == "cond":
      branches = [count(branch) for branch in equation.params["branches"]]
      found.update(sorted(branches, key=total)[-1])
    else:
      inner = sum(map(count, _inside(equation)), Counter[Product]())
      if name == "while" and inner:
        raise ValueError("a loop of unknown length has products: they have no count")
      times = equation.params["length"] if name == "scan" else 1
      found.update({product: n * times for product, n in inner.items()})
  return found


def _inside(equation: Any) -> Iterator[ClosedJaxpr | Jaxpr]:
  for value in equation.params.values():
    for item in value if isinstance(value, tuple | list) else (value,):
      if isinstance(item, ClosedJaxpr | Jaxpr):
        yield item


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
