"""Split MNIST: digits in five tasks of two classes, class-incremental.

Reproduces the split MNIST column of the paper's tables (Li et al. 2022): mean over
tasks of the final accuracy, candidates being all ten digits.

  python -m ebmjax.main --config=configs/splitmnist.py --workdir=runs/split

| variant                     | paper          | steps  |
|-----------------------------|----------------|--------|
| (none): EBM                 | 53.12 +- 0.04  | 10,000 |
| :sbc                        | 19.90 +- 0.02  | 10,000 |
| :joint_pairs                | 60.14 +- 1.66  | 10,000 |
| :boundary_free              | 81.78 +- 1.22  |  4,350 |
| :boundary_free,sbc          | 24.03 +- 0.59  |  4,350 |

Time: about a quarter of a minute a seed on two CPU cores. The paper's seeds:
--config.seeds=10 with boundaries, 5 without. `:smoke` shrinks any of them to seconds;
its score means nothing.
"""

from ml_collections import ConfigDict

from ebmjax import config as base


def get_config(variants: str | None = None) -> ConfigDict:
  """Returns the configuration; `variants` is what follows the file name's colon."""
  config = base.default()
  config.stream.update({"name": "split", "tasks": 5})
  config.network.hidden = 400
  return base.apply_variants(config, variants, base.VARIANTS)
