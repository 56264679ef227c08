"""Pre-trains the CIFAR-100 experiments' trunk on all of CIFAR-10.

Ordinary classification, one task of ten classes: the five convolutions and two layers
of 2000 units, cross-entropy, 100 epochs of 390 batches, Adam at 1e-4, crops of mirrored
images and flips. Then the trunk is written to a file for config.network.pretrained:

  python -m ebmjax.main --config=configs/pretrain_cifar10.py --workdir=runs/pretrain
  python -m ebmjax.tools.export runs/pretrain trunk.npz

Measured: 81.8 % of the test images with seed 0, reached within 70 epochs. On one
CPU core, beside other work, it took 2 h 9 min. The published weights (an npz file in
PyTorch's layout) can be used in place of these.
"""

from ml_collections import ConfigDict

from ebmjax.config import default
from ebmjax.config import variants as base


def get_config(variants: str | None = None) -> ConfigDict:
  """Returns the configuration; `variants` is what follows the file name's colon."""
  config = default()
  config.objective = "ce"
  config.data.update({"name": "cifar10", "augment": "mirror_crop_and_flip"})
  config.data.std = (0.2470, 0.2435, 0.2616)
  config.stream.update({"name": "split", "tasks": 1, "iterations": 39_000})
  config.network.update({"name": "sbc", "trunk": "conv5", "conv": "finetune"})
  config.network.hidden = 2000
  config.eval.every = 3_900
  config.runner.chunk = 30
  base.apply_variants(config, variants, {"smoke": base.VARIANTS["smoke"]})
  config.stream.tasks = 1
  return config
