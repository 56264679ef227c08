"""What a step asks of an accelerator, against numbers by hand."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from ebmjax.tools.bench import roofline
from ebmjax.tools.bench.measuring import Options
from ebmjax.tools.bench.tables import markdown
from tests.helpers import tiny_training


def test_traffic_is_that_of_products():
  def work(x, w):
    h, _ = lax.scan(lambda h, _: (jnp.tanh(h @ w), None), x, None, length=3)
    return lax.cond(h[0, 0] > 0, lambda: h @ w, lambda: h)

  shapes = jax.ShapeDtypeStruct((2, 4), jnp.float32), jnp.zeros((4, 4))
  once = 4 * (2 * 4 + 4 * 4 + 2 * 4)
  assert roofline.traffic(jax.make_jaxpr(work)(*shapes).jaxpr) == 4 * once


@pytest.mark.parametrize("config", ["splitmnist.py", "cifar10.py"])
def test_the_slower_of_memory_and_products_bounds_a_step(config: str, few_images):
  case = tiny_training(steps=2)._replace(config=config)
  row = roofline.measure(case, Options())
  assert row["flops"] > 0 and row["bytes"] > 0
  for device in roofline.DEVICES:
    seconds = {
      "memory": row["bytes"] / device.bytes,
      "products": row["flops"] / device.flops,
    }
    slower = max(seconds, key=lambda name: seconds[name])
    assert row["bound"][device.name] == slower
    assert row["steps_per_second"][device.name] == pytest.approx(1 / seconds[slower])
  text = markdown([row], *roofline.TABLES)
  assert "NVIDIA A100 (40 GB), steps per second" in text
