"""Seeds, evaluation, products and curves are measured, and counted as by hand."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from ebmjax.report import plotting
from ebmjax.tools.bench import (
  cases,
  curves,
  estimator,
  evaluation,
  figure,
  flops,
  seeds,
  share,
  tables,
  training,
)
from ebmjax.tools.bench.flops import Product
from ebmjax.tools.bench.measuring import Options
from tests.helpers import tiny_training

pytestmark = pytest.mark.usefixtures("few_images")

TINY = tiny_training(steps=4)


def test_seeds_are_swept_with_every_driver(monkeypatch):
  """Every seed makes as many steps in a round, however many seeds there are."""
  asked = []

  def ours(spec, steps):
    asked.append((len(spec.seeds), spec.driver, steps))
    return lambda: 100.0 + len(spec.seeds)

  monkeypatch.setattr(training, "ours", ours)
  row = seeds.measure(TINY._replace(steps=40), Options(rounds=1))
  assert asked[0] == (1, "map", 40)
  assert asked[1:3] == [(4, "map", 40), (4, "vmap", 40)]
  assert asked[3:] == [(10, "map", 40), (10, "vmap", 40)]
  names = ["4 seeds, map", "4 seeds, vmap", "10 seeds, map", "10 seeds, vmap"]
  assert list(row["ratio"]) == names and list(row["rate"]) == ["ebmjax", *names]
  assert row["ratio"]["10 seeds, map"]["median"] == pytest.approx(110 / 101)
  assert tables.markdown([row], *seeds.TABLES).startswith(
    "| benchmark | 1 seed | 4 seeds, map |"
  )


def test_the_whole_test_set_is_evaluated():
  row = evaluation.measure(TINY, Options(rounds=2))
  assert (row["images"], row["labels"], row["rounds"]) == (10_000, 10, 2)
  seconds, rate = row["seconds"], row["rate"]["ebmjax"]
  assert rate["max"] == pytest.approx(10_000 / seconds["min"])
  assert "| tiny | 10000 | 10 |" in tables.markdown([row], *evaluation.TABLES)


def test_the_estimator_is_timed_beside_the_same_training():
  (case,) = (
    case._replace(steps=2, changes=(("network.hidden", 8),)) for case in estimator.CASES
  )
  row = estimator.measure(case, Options(rounds=1))
  assert set(row["ratio"]) == {"steps", "images"}
  assert all(spread["min"] > 0 for spread in row["rate"].values())
  config = cases.load(case.config, case.changes)
  config.stream.update(tasks=1, iterations=2)
  spec = cases.make(config, cases.noise("mnist", train=256, test=10))
  model = estimator.estimator(spec)
  model.partial_fit(np.zeros((16, 28, 28), np.uint8), np.arange(16) % 10)
  ours, theirs = model.model_.config, spec.config
  for group in ("network", "optimiser", "method"):
    assert ours[group] == theirs[group]
  assert (ours.objective, ours.negatives) == (theirs.objective, theirs.negatives)


def test_products_are_counted_through_loops_branches_and_functions():
  def program(x, w, kernel, images):
    x = lax.scan(lambda x, _: (jax.jit(jnp.dot)(x, w), None), x, length=3)[0]
    x = lax.cond(x[0, 0] > 0, lambda x: x @ w @ w, lambda x: x @ w, x)
    pairs = jnp.einsum("bij,bjk->bik", x.reshape(2, 2, 5), jnp.ones((2, 5, 7)))
    convolved = lax.conv_general_dilated(
      images, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return x, pairs, convolved

  shapes = [(4, 5), (5, 5), (3, 3, 6, 8), (2, 10, 10, 6)]
  found = flops.count(jax.make_jaxpr(program)(*map(jnp.ones, shapes)).jaxpr)
  assert found == Counter(
    {Product(1, 4, 5, 5): 5, Product(2, 2, 5, 7): 1, Product(1, 50, 54, 8): 1}
  )
  assert flops.total(found) == 5 * 200 + 280 + 43_200


def test_a_loop_of_unknown_length_is_not_counted_as_one():
  def program(x):
    return lax.while_loop(lambda x: x[0, 0] < 9, lambda x: x @ x, x)

  with pytest.raises(ValueError, match="unknown length"):
    flops.count(jax.make_jaxpr(program)(jnp.ones((2, 2))).jaxpr)


def test_a_step_s_products_are_forward_and_backward():
  spec = cases.make_training(TINY._replace(config="splitmnist.py:sbc"))
  found = flops.step_products(spec)
  layers = [(784, 8), (8, 8), (8, 10)]
  forward = sum(2 * 16 * a * b for a, b in layers)
  no_gradient = 2 * 16 * 784 * 8  # of the images
  assert flops.total(found) == 3 * forward - no_gradient


def test_the_share_is_what_is_reached_of_the_peak(monkeypatch):
  monkeypatch.setattr(share, "SQUARE", Product(1, 64, 64, 64))
  row = share.measure(TINY, Options(rounds=2))
  reached = row["achieved"]["median"]
  assert row["share_of_peak"] == pytest.approx(reached / row["peak"])
  assert row["share_of_own_shapes"] == pytest.approx(reached / row["own_shapes"])
  assert "1x16x784x8" in row["shapes"]
  assert tables.markdown([row], *share.TABLES).count("%") == 2


def test_curves_are_measured_and_drawn(monkeypatch):
  """Two points are measured; the other axes are drawn from the first one's figures."""
  monkeypatch.setattr(curves, "_SECONDS", 0.01)
  base = curves.Sizes(labels=20, batch=16, hidden=8)
  row, several = (
    curves.measure(point, Options(rounds=1))
    for point in (
      curves.Point("labels", base),
      curves.Point("seeds", base._replace(seeds=2)),
    )
  )
  assert (row["axis"], row["value"], several["value"]) == ("labels", 20, 2)
  assert list(row["inference"]) == list(row["training"]) == ["ebmjax"]
  assert list(several["training"]) == ["ebmjax, map", "ebmjax, vmap"]
  rows = [row, row | {"axis": "batch"}, row | {"axis": "hidden"}, several]
  text = tables.markdown(rows, *curves.TABLES)
  assert [len(part.splitlines()) for part in text.split("\n\n")] == [5, 3]
  drawn = figure.draw(rows)
  assert all(axes.get_xscale() == axes.get_yscale() == "log" for axes in drawn.axes)
  assert [len(axes.lines) for axes in drawn.axes] == [2, 2, 2, 4]
  assert plotting.png(drawn)[1:4] == b"PNG" and b"<svg" in plotting.svg(drawn)


def test_a_time_is_of_a_batch_of_all_seeds():
  sizes = curves.Sizes(batch=50, seeds=2)
  found = curves._milliseconds({"ebmjax": [1000.0]}, "inference", sizes)
  assert found["ebmjax"]["median"] == pytest.approx(
    100.0
  )  # 100 images at 1,000 a second
  found = curves._milliseconds({"ebmjax": [1000.0]}, "training", sizes)
  assert found["ebmjax"]["median"] == pytest.approx(2.0)


@pytest.mark.parametrize("sizes", [{"labels": 300}, {"labels": 1000}, {"batch": 2048}])
def test_every_task_of_a_point_has_a_batch(sizes):
  spec = curves.make_point(curves.Sizes(hidden=4)._replace(**sizes))
  rows = spec.stream.train_rows[0] >= 0
  assert rows.sum(axis=1).min() >= spec.config.stream.batch_size


def test_every_point_leaves_the_base_in_one_size_at_most():
  base = np.array(curves.Sizes())
  assert len(curves.CASES) == 17
  assert all((np.array(point.sizes) != base).sum() <= 1 for point in curves.CASES)
