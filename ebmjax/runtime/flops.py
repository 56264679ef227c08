"""Counts the floating-point operations of a function, from its jaxpr.

A multiply-add is two operations, and each result of other arithmetic is one;
moving, choosing and converting numbers is free, and so are integers. A compiler's own
count misses loops, whose bodies it counts once, and routines of other libraries, such
as a Cholesky factorisation; the jaxpr has both. The count holds for every backend, and
nothing is compiled for it.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

# What moves, chooses or converts numbers.
_FREE = {
  *("broadcast_in_dim", "reshape", "squeeze", "expand_dims", "transpose", "rev"),
  *("slice", "dynamic_slice", "dynamic_update_slice", "gather", "scatter", "split"),
  *("concatenate", "pad", "select_n", "copy", "copy_p", "device_put", "stop_gradient"),
  *("convert_element_type", "bitcast_convert_type", "optimization_barrier"),
  *("sharding_constraint", "iota"),
}


def count(function: Callable[..., Any], *arguments: Any, passes: int = 1) -> int:
  """Returns the operations of function(*arguments), which may be shapes.

  Of several branches, the costliest counts. A loop whose length depends on the data
  counts as `passes` of its body.

  >>> import jax.numpy as jnp
  >>> count(jnp.dot, jnp.ones((2, 3)), jnp.ones((3, 5)))
  60
  """
  return round(_of_jaxpr(jax.make_jaxpr(function)(*arguments).jaxpr, passes))


def _of_jaxpr(jaxpr: Any, passes: int) -> float:
  return sum(_of_equation(equation, passes) for equation in jaxpr.eqns)


def _of_equation(equation: Any, passes: int) -> float:
  name, params = equation.primitive.name, equation.params
  if name in _RULES:
    return _RULES[name](equation)
  inner = [_of_jaxpr(jaxpr, passes) for jaxpr in jaxprs(params)]
  if name == "cond":
    return max(inner)
  if inner:
    times = {"scan": params.get("length"), "while": passes}.get(name, 1)
    return times * sum(inner)
  numbers = [v.aval for v in (*equation.invars, *equation.outvars)]
  if name in _FREE or not any(map(_is_inexact, numbers[: len(equation.invars)])):
    return 0
  return max(_size(aval) for aval in numbers)


def jaxprs(params: dict[str, Any]) -> Iterator[Any]:
  """Yields the jaxprs among an equation's parameters."""
  for value in params.values():
    for part in value if isinstance(value, list | tuple) else (value,):
      if hasattr(part, "eqns"):
        yield part
      elif hasattr(part, "jaxpr") and hasattr(part.jaxpr, "eqns"):
        yield part.jaxpr


def _is_inexact(aval: Any) -> bool:
  return hasattr(aval, "dtype") and jnp.issubdtype(aval.dtype, jnp.inexact)


def _size(aval: Any) -> int:
  return math.prod(getattr(aval, "shape", ()))


def _product(equation: Any) -> float:
  (contracted, _), _ = equation.params["dimension_numbers"]
  shape = equation.invars[0].aval.shape
  return 2 * _size(equation.outvars[0].aval) * math.prod(shape[i] for i in contracted)


def _convolution(equation: Any) -> float:
  """Counts the products of a kernel's numbers with numbers of the image.

  None for those with the zeros of padding, or between the rows of a dilated image.
  """
  image, kernel = (v.aval.shape for v in equation.invars)
  out, params = equation.outvars[0].aval.shape, equation.params
  at = params["dimension_numbers"]
  pairs = [
    _overlaps(image[i], kernel[k], out[o], *geometry)
    for i, k, o, *geometry in zip(
      at.lhs_spec[2:],
      at.rhs_spec[2:],
      at.out_spec[2:],
      params["window_strides"],
      params["padding"],
      params["lhs_dilation"],
      params["rhs_dilation"],
      strict=True,
    )
  ]
  channels = kernel[at.rhs_spec[1]]  # of one group
  return 2 * out[at.out_spec[0]] * out[at.out_spec[1]] * channels * math.prod(pairs)


def _overlaps(
  image: int,
  kernel: int,
  out: int,
  stride: int,
  padding: tuple[int, int],
  image_dilation: int,
  kernel_dilation: int,
) -> int:
  """Returns how often a kernel's place along an axis meets a number of the image."""
  starts = stride * np.arange(out)[:, None] - padding[0]
  place = starts + kernel_dilation * np.arange(kernel)[None, :]
  inside = (place >= 0) & (place <= image_dilation * (image - 1))
  return int((inside & (place % image_dilation == 0)).sum())


def _updates(equation: Any) -> float:
  """Counts one operation for each number that is added where an index says."""
  return _size(equation.invars[2].aval)


def _cholesky(equation: Any) -> float:
  *batch, n, _ = equation.invars[0].aval.shape
  return math.prod(batch) * n**3 / 3


def _triangular_solve(equation: Any) -> float:
  n = equation.invars[0].aval.shape[-1]
  return n * _size(equation.invars[1].aval)


_RULES: dict[str, Callable[[Any], float]] = {
  "dot_general": _product,
  "conv_general_dilated": _convolution,
  "scatter-add": _updates,
  "cholesky": _cholesky,
  "triangular_solve": _triangular_solve,
}
