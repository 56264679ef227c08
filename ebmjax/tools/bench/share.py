"""What share of the machine's matrix products a training step makes use of.

The peak is the best of the rounds of a large square product; `own shapes` is what the
step's own products, each alone and at its best, would reach together.
"""

from collections import Counter

import jax
import numpy as np

from ebmjax.tools.bench import measuring, training
from ebmjax.tools.bench.cases import TRAINING, Training, make_training
from ebmjax.tools.bench.flops import Product, step_products, total
from ebmjax.tools.bench.measuring import OURS, Options, Rate, Row, spread, timed
from ebmjax.tools.bench.tables import median, number, percent

TITLE = "Share of the machine's matrix products, GFLOP/s"
CASES = TRAINING

SQUARE = Product(1, 2048, 2048, 2048)
_COVERED = 0.98  # of the step's FLOPs, by the shapes that are timed
_MOST_SHAPES = 12
_WORK = 4e9  # FLOPs of a call, where the operands stay small
_NUMBERS = 30_000_000  # of all operands of a call


def measure(case: Training, options: Options) -> Row:
  """Returns the step's GFLOP/s, the machine's, and the share."""
  spec = make_training(case)
  products = step_products(spec)
  timed = largest(products)
  runners = {OURS: training.ours(spec, case.steps)}
  names = {product: "x".join(map(str, product)) for product in (SQUARE, *timed)}
  runners |= {name: alone(product) for product, name in names.items()}
  rates = measuring.interleave(runners, options.rounds)
  best = {product: max(rates[name]) for product, name in names.items()}
  own = total(timed) / sum(p.flops * n / best[p] for p, n in timed.items())
  step = total(products) / 1e9
  achieved = spread([step * rate for rate in rates[OURS]])
  return {
    "case": case.name,
    "rounds": options.rounds,
    "gflop_per_step": step,
    "achieved": achieved,
    "peak": best[SQUARE],
    "own_shapes": own,
    "share_of_peak": achieved["median"] / best[SQUARE],
    "share_of_own_shapes": achieved["median"] / own,
    "shapes": {names[p]: {"times": n, "best": best[p]} for p, n in timed.items()},
  }


def largest(products: Counter[Product]) -> Counter[Product]:
  """Returns the few products that nearly all of the FLOPs are in."""
  found: Counter[Product] = Counter()
  ordered = sorted(products, key=lambda p: p.flops * products[p], reverse=True)
  for product in ordered[:_MOST_SHAPES]:
    if total(found) < _COVERED * total(products):
      found[product] = products[product]
  return found


def alone(product: Product) -> Rate:
  """Returns a function that does the product some times, to its rate in GFLOP/s."""
  batch, rows, inner, columns = product
  rng = np.random.default_rng(0)
  # Without an axis of one, which may keep the compiler from its fastest product.
  lead = (batch,) if batch > 1 else ()
  size = batch * (rows * inner + rows * columns)
  times = int(np.clip(_WORK / product.flops, 1, max(1, _NUMBERS // size)))
  times = min(times, 64)

  def draw(*shape: int) -> jax.Array:
    return jax.device_put(rng.random((*lead, *shape), np.float32))

  left, right = [draw(rows, inner) for _ in range(times)], draw(inner, columns)
  multiply = jax.jit(lambda left, right: [one @ right for one in left])
  gflop = times * product.flops / 1e9
  return timed(lambda: jax.block_until_ready(multiply(left, right)), gflop)


def cells(row: Row) -> dict[str, str]:
  """Returns a row of the table, in GFLOP/s."""
  return {
    "GFLOP a step": f"{row['gflop_per_step']:.3g}",
    "reached": median(row["achieved"]),
    "peak": number(row["peak"]),
    "at its own shapes": number(row["own_shapes"]),
    "share of peak": percent(row["share_of_peak"]),
    "share of own shapes": percent(row["share_of_own_shapes"]),
  }


TABLES = (cells,)
