"""Permuted MNIST: ten tasks of all ten digits, a fixed shuffle of the pixels in each.

Class-incremental: 100 labels, ten per task. Images are padded to 32x32, and all 1024
pixels are permuted. Reproduces the permuted MNIST column of the paper's tables (Li et
al. 2022): the mean over tasks of the final accuracy, with all 100 labels as candidates.

  python -m ebmjax.main --config=configs/permmnist.py --workdir=runs/perm

| variant                     | paper          | steps  |
|-----------------------------|----------------|--------|
| (none): EBM                 | 87.58 +- 0.50  | 20,000 |
| :sbc,source                 | 17.26 +- 0.19  | 50,000 |
| :joint_pairs                | 89.15 +- 0.89  | 20,000 |
| :boundary_free              | 92.35 +- 0.11  | 46,800 |
| :boundary_free,sbc          | 21.42 +- 0.11  | 46,800 |
| :ewc,sbc,source (and online_ewc, si, lwf) | 25.04, 33.88, 29.31, 22.64 | 50,000 |
| :bgd,sbc,source             | 84.78 +- 1.30  | 46,900 |
| :er,sbc  :er (EBM)          | 93.70, 94.59   | 20,000 |
| :icarl,sbc,source           | 94.85 +- 0.03  | 50,000 |
| :dgr,sbc,source             | 92.19 +- 0.09  | 50,000 |
| :gss_greedy,sbc,source      | 77.30 +- 0.50  |  1,000 |
| :ctn,sbc,source             | 79.01 +- 0.65  |  2,000 |
| :boundary_free,online_ewc,sbc (and si, bgd) | 41.37, 35.71, 26.15 | 46,800 |

`:source` after a baseline uses its authors' number of iterations, 5,000 per task, which
the published figures come from. For `bgd`, it also uses the normalised pixels and
Xavier's weights that decide the score. For `gss_greedy` and `ctn`, it uses their whole
protocol: domain-incremental, and with the task of each test image given. `:joint` shows
all tasks at once. Baselines also run on the EBM: leave out `sbc`. There is no published
figure for MAS.

Time: about two minutes per seed with boundaries on two CPU cores, twelve without. With
a generator (`dgr`, `bir`), expect eight times the classifier's time (not measured). The
paper has ten seeds (--config.seeds=10) with boundaries and five without. `:smoke`
shrinks any experiment to seconds; its score means nothing.
"""

from ebmjax.config.experiments import Experiment

EXPERIMENT = Experiment(
  "permmnist",
  {
    "stream": {"name": "permuted", "tasks": 10, "iterations": 2000},
    "network": {"name": "ebm", "hidden": 1000},
  },
  variants={
    # 100,000 images times 100 labels through two gated layers: once is enough.
    "boundary_free": {"eval.at_task_ends": False},
    "online": {"eval.every": 5000},
    # A factor for each of 100 labels: smaller ones.
    "fourier_sqda": {
      "network.num_features": 2000,
      "method.rank": 20,
      "method.own": 0.4,
    },
  },
)
get_config = EXPERIMENT.config
