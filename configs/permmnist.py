"""Permuted MNIST: ten tasks of all ten digits, a fixed shuffle of the pixels in each.

Class-incremental: 100 labels, ten a task. Images are padded to 32x32, and all 1024
pixels are permuted. Reproduces the permuted MNIST column of the paper's tables (Li et
al. 2022): mean over tasks of the final accuracy, candidates being all 100 labels.

  python -m ebmjax.main --config=configs/permmnist.py --workdir=runs/perm

| variant                     | paper          | steps  |
|-----------------------------|----------------|--------|
| (none): EBM                 | 87.58 +- 0.50  | 20,000 |
| :sbc                        | 17.26 +- 0.19  | 20,000 |
| :joint_pairs                | 89.15 +- 0.89  | 20,000 |
| :boundary_free              | 92.35 +- 0.11  | 46,800 |
| :boundary_free,sbc          | 21.42 +- 0.11  | 46,800 |

Time: about two minutes a seed with boundaries on two CPU cores, twelve without. The
paper's seeds: --config.seeds=10 with boundaries, 5 without. `:smoke` shrinks any of
them to seconds; its score means nothing.
"""

from ml_collections import ConfigDict

from ebmjax import config as base


def get_config(variants: str | None = None) -> ConfigDict:
  """Returns the configuration; `variants` is what follows the file name's colon."""
  config = base.default()
  config.stream.update({"name": "permuted", "tasks": 10})
  config.network.hidden = 1000
  base.apply_variants(config, variants, base.VARIANTS)
  if config.stream.setting == "boundary_free":
    # 100,000 images times 100 labels through two gated layers: once is enough.
    config.eval.at_task_ends = False
  return config
