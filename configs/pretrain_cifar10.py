"""Pre-trains the CIFAR-100 experiments' trunk on all of CIFAR-10.

Ordinary classification with one task of ten classes: five convolutions and two layers
of 2000 units, cross-entropy, 100 epochs of 390 batches, Adam at 1e-4, crops of mirrored
images and flips. The second command writes the trunk to a file for
config.network.pretrained:

  python -m ebmjax.main --config=configs/pretrain_cifar10.py --workdir=runs/pretrain
  ebmjax export --trunk runs/pretrain trunk.npz

Measured: 81.8 % test accuracy with seed 0, reached within 70 epochs. On one CPU core,
with other work running, it took 2 h 9 min. The published weights (an npz file in
PyTorch's layout) can be used instead.
"""

from ebmjax.config.experiments import Experiment

EXPERIMENT = Experiment(
  "pretrain_cifar10",
  {
    "objective": "ce",
    "data": {
      "name": "cifar10",
      "augment": "mirror_crop_and_flip",
      "std": (0.2470, 0.2435, 0.2616),
    },
    "stream": {"name": "split", "tasks": 1, "iterations": 39_000},
    "network": {"name": "sbc_conv5", "backbone_mode": "finetune", "hidden": 2000},
    "eval": {"every": 3_900},
    "runner": {"chunk": 30},
  },
  variants={"smoke": {"stream.tasks": 1}},
  shared=("smoke",),
  with_methods=False,
)
get_config = EXPERIMENT.config
