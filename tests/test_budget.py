"""A run's budget: operations as counted by hand and by XLA, bytes that are kept."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from ebmjax.runtime import budget, flops
from ebmjax.runtime.memory import num_bytes
from tests import programs

SMALL = {"stream__batch_size": 8, "stream__iterations": 8, "network__hidden": 8}


def by_xla(function: Callable[..., Any], *arguments: Any) -> float:
  found: Any = jax.jit(function).lower(*arguments).cost_analysis()
  return found["flops"]


def convolve(kernel, x, stride, padding, **more):
  numbers = ("NHWC", "HWIO", "NHWC")
  return lax.conv_general_dilated(
    x, kernel, (stride, stride), padding, dimension_numbers=numbers, **more
  )


def test_products_are_two_operations_and_other_arithmetic_one():
  a, b = jnp.ones((3, 4, 5)), jnp.ones((3, 5, 6))
  assert flops.count(jnp.matmul, a, b) == 2 * 3 * 4 * 5 * 6
  assert flops.count(lambda x: jnp.exp(x) + 1, a) == 2 * 60
  assert flops.count(lambda x: jnp.sum(x, axis=0), a) == 60
  assert flops.count(lambda x: x.T.reshape(-1)[::2], a) == 0
  assert flops.count(lambda i: i * 2 + 1, jnp.arange(9)) == 0
  rows = jnp.array([0, 2])
  assert flops.count(lambda x: x.at[rows].add(jnp.ones((2, 4, 5))), a) == 40


def test_loops_and_branches():
  """XLA counts the body of a scan once, whatever its length."""
  x, once = jnp.ones((8, 8)), 2 * 8**3

  def scanned(x):
    return lax.scan(lambda c, _: (c @ x, None), x, length=7)[0]

  def looped(x, number):
    return lax.fori_loop(0, number, lambda _, c: c @ x, x)

  assert flops.count(scanned, x) == 7 * once
  assert by_xla(scanned, x) < 2 * once
  assert flops.count(looped, x, jnp.int32(5)) == once
  assert flops.count(looped, x, jnp.int32(5), passes=4) == 4 * once
  assert flops.count(lambda x: lax.map(lambda row: row @ x, x), x) == once

  def either(x):
    return lax.cond(x[0, 0] > 0, lambda: x @ x @ x, lambda: x @ x)

  assert flops.count(either, x) == 2 * once + 1  # and the comparison


def test_a_gradient_costs_what_xla_says():
  def loss(weights, x):
    hidden = jax.nn.relu(x @ weights[0])
    return jnp.mean(jnp.square(hidden @ weights[1]))

  weights, x = (jnp.ones((40, 30)), jnp.ones((30, 10))), jnp.ones((16, 40))
  step = jax.value_and_grad(loss)
  products = 2 * 16 * (2 * 40 * 30 + 3 * 30 * 10)  # none for x itself
  assert products < flops.count(step, weights, x) < 1.05 * products
  assert flops.count(step, weights, x) == pytest.approx(by_xla(step, weights, x), 0.01)


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("how", [("SAME", 1), ("VALID", 1), ("SAME", 2)])
def test_a_convolution_and_its_transposes_cost_what_xla_says(stride, how):
  """Products with padding and between the rows of a dilated image are none."""
  padding, groups = how
  x, kernel = jnp.ones((2, 9, 8, 4)), jnp.ones((3, 3, 4 // groups, 6))

  def of_kernel(kernel):
    return convolve(kernel, x, stride, padding, feature_group_count=groups)

  def of_image(x):
    return convolve(kernel, x, stride, padding, feature_group_count=groups)

  out = of_kernel(kernel)
  for function, at in ((of_kernel, kernel), (of_image, x)):
    back = jax.linear_transpose(function, at)
    assert flops.count(function, at) == by_xla(function, at)
    assert flops.count(back, out) == flops.count(function, at)


def test_routines_that_xla_calls_are_counted():
  matrix, right = jnp.eye(30), jnp.ones((30, 4))

  def solve(matrix, right):
    return jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(matrix), right)

  wanted = 30**3 / 3 + 2 * 30 * 30 * 4
  assert wanted <= flops.count(solve, matrix, right) < 1.3 * wanted


def measured(chosen: str, **more: Any) -> tuple[dict[str, int], Any]:
  spec = programs.spec_of(chosen, "map", **(SMALL | more))
  state: Any = jax.eval_shape(spec.learner.init, spec.tables.key[0])
  return budget.measure(spec), state


def test_fine_tuning_keeps_nothing_and_costs_its_products():
  found, _ = measured("splitmnist.py:sbc")
  sizes = 784 * 8 + 8 * 8 + 8 * 10
  assert found["parameters"] == sizes + 8 + 8 + 10
  assert found["bytes_kept"] == 0
  step = 2 * 8 * (3 * sizes - 784 * 8)
  assert 40 * step < found["training_flops"] < 2 * 40 * step  # Adam, too
  assert 2 * sizes < found["inference_flops"] < 2.2 * sizes


def test_what_is_kept_for_the_past_is_counted_whatever_the_method():
  ewc, state = measured("splitmnist.py:ewc")
  assert ewc["bytes_kept"] == num_bytes(state.own) >= 2 * 4 * ewc["parameters"]
  assert ewc["training_flops"] > measured("splitmnist.py")[0]["training_flops"]
  er, state = measured("splitmnist.py:er", method__budget=20)
  assert er["bytes_kept"] == num_bytes(state.own) >= 20 * 784
  slda, state = measured("splitmnist.py:slda", network__name="raw")
  assert slda["bytes_kept"] == num_bytes(state.params) == 4 * (10 + 7840 + 784**2)
  solved = 5 * (784**3 // 3)  # a factorisation for each task
  assert slda["training_flops"] > solved + 40 * 2 * 8 * 784**2
  dgr, state = measured("splitmnist.py:dgr", method__generator_hidden=8)
  assert dgr["parameters"] == ewc["parameters"]
  assert dgr["bytes_kept"] == num_bytes((state.teacher, state.generator))


def test_a_class_s_model_is_kept_and_its_loop_counted_by_the_labels_of_a_task():
  found, state = measured("splitmnist.py:pec", network__name="raw")
  assert found["bytes_kept"] == num_bytes((state.params, state.shared, state.counts))
  joint, _ = measured("splitmnist.py:pec", network__name="raw", stream__setting="joint")
  ratio = joint["training_flops"] / found["training_flops"]
  np.testing.assert_allclose(ratio, 5, rtol=0.5)  # 10 labels for 2, and the teacher


@pytest.mark.parametrize("method", ["pec", "sqda"])
def test_labels_that_tasks_share_are_counted_once(method):
  """All tasks at once have no more labels than one of them, and cost as much."""
  chosen = f"splitmnist.py:{method},domain"
  found, joint = (
    measured(chosen, network__name="raw", stream__setting=setting)[0]
    for setting in ("boundary_aware", "joint")
  )
  assert joint["training_flops"] == found["training_flops"]
