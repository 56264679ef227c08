"""Permuted MNIST: ten tasks of all ten digits, a fixed shuffle of the pixels in each.

Class-incremental: 100 labels, ten a task. Images are padded to 32x32, and all 1024
pixels are permuted. Reproduces the permuted MNIST column of the paper's tables (Li et
al. 2022): mean over tasks of the final accuracy, candidates being all 100 labels.

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

`:source` after a baseline takes its authors' own number of iterations (5,000 a task,
where the published figures come from; of `gss_greedy` its whole protocol, which is
domain-incremental, and of `ctn`, which is given the task of each test image; of `bgd`
also the normalised pixels and Xavier's weights that decide it); `:joint` shows all
tasks at once. Baselines run on the EBM, too: leave `sbc` out. There is no
published MAS.

Time: about two minutes a seed with boundaries on two CPU cores, twelve without; with a
generator (`dgr`, `bir`; not measured) eight times the classifier's, by their products.
The paper's seeds: --config.seeds=10 with boundaries, 5 without. `:smoke` shrinks any of
them to seconds; its score means nothing.
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
