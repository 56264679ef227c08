"""The precision of matrix products and convolutions, whatever the network and method.

`auto` is JAX's default: single precision on a CPU, and what is fast on the device
elsewhere. `highest` and `tf32` request a precision by name. `bfloat16` rounds both
factors of every product to bfloat16, gradients included, and adds in single precision;
weights and optimiser stay in single precision. A CPU computes the same with
single-precision products of rounded numbers.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from ebmjax.types import Learner

_NAMES = {"highest": "highest", "tf32": "tensorfloat32"}  # as JAX knows them
_PRODUCTS = ("dot_general", "conv_general_dilated")
# The parameter that holds the program of a primitive that only calls it.
_CALLS = {
  **dict.fromkeys(("jit", "pjit", "checkpoint"), "jaxpr"),
  **dict.fromkeys(("closed_call", "custom_jvp_call", "custom_vjp_call"), "call_jaxpr"),
}


def with_precision(learner: Learner, precision: str) -> Learner:
  """Returns the learner with its products in a config.runner.precision."""
  if precision == "auto":
    return learner
  change = in_bfloat16 if precision == "bfloat16" else _named(_NAMES[precision])
  # The first weights are the same in every precision: a network may draw them by a
  # product.
  return learner.wrapped(change, skip="init")


def _named(name: str) -> Callable[..., Any]:
  def change(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*arguments: Any) -> Any:
      with jax.default_matmul_precision(name):
        return function(*arguments)

    return run

  return change


def in_bfloat16(function: Callable[..., Any]) -> Callable[..., Any]:
  """Returns the function with the factors of all its products rounded to bfloat16."""

  def run(*arguments: Any) -> Any:
    traced, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
    found = _run(traced, jax.tree.leaves(arguments))
    return jax.tree.unflatten(jax.tree.structure(shapes), found)

  return run


def _run(program: Any, arguments: Sequence[Any]) -> list[Any]:
  """Returns the outputs of a jaxpr for its inputs, with its products rounded."""
  jaxpr = getattr(program, "jaxpr", program)
  known = dict(zip(jaxpr.constvars, getattr(program, "consts", ()), strict=True))
  known |= dict(zip(jaxpr.invars, arguments, strict=True))

  def read(variable: Any) -> Any:
    return variable.val if hasattr(variable, "val") else known[variable]

  for equation in jaxpr.eqns:
    found = _apply(equation, [read(variable) for variable in equation.invars])
    known |= dict(zip(equation.outvars, found, strict=True))
  return [read(variable) for variable in jaxpr.outvars]


def _apply(equation: Any, values: list[Any]) -> list[Any]:
  name, params = equation.primitive.name, equation.params
  if name in _CALLS:
    return _run(params[_CALLS[name]], values)
  if name in _LOOPS:
    return _LOOPS[name](params, values)
  if name in _PRODUCTS:
    values = [_rounded(value) for value in values]
    params = params | {"preferred_element_type": equation.outvars[0].aval.dtype}
  params = equation.primitive.get_bind_params(params)
  found = equation.primitive.bind(*values, **params)
  return list(found) if equation.primitive.multiple_results else [found]


def _rounded(x: Array) -> Array:
  if x.dtype != jnp.float32:
    return x
  if jax.default_backend() == "cpu":
    return lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7)
  return x.astype(jnp.bfloat16)


def _scan(params: dict[str, Any], values: list[Any]) -> list[Any]:
  first, last = params["num_consts"], params["num_consts"] + params["num_carry"]

  def body(carry: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
    found = _run(params["jaxpr"], [*values[:first], *carry, *row])
    return found[: last - first], found[last - first :]

  carry, rows = lax.scan(
    body,
    values[first:last],
    values[last:],
    length=params["length"],
    reverse=params["reverse"],
    unroll=params["unroll"],
  )
  return [*carry, *rows]


def _while(params: dict[str, Any], values: list[Any]) -> list[Any]:
  first, last = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
  found: list[Any] = lax.while_loop(
    lambda carry: _run(params["cond_jaxpr"], [*values[:first], *carry])[0],
    lambda carry: _run(params["body_jaxpr"], [*values[first:last], *carry]),
    values[last:],
  )
  return found


def _cond(params: dict[str, Any], values: list[Any]) -> list[Any]:
  index, *rest = values

  def branch(program: Any) -> Callable[..., list[Any]]:
    return lambda *arguments: _run(program, arguments)

  found: list[Any] = lax.switch(index, list(map(branch, params["branches"])), *rest)
  return found


_LOOPS = {"scan": _scan, "while": _while, "cond": _cond}
