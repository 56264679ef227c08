"""Split MNIST: digits in five tasks of two classes, class-incremental.

Reproduces the split MNIST column of the paper's tables (Li et al. 2022): the mean over
tasks of the final accuracy, with all ten digits as candidates.

  python -m ebmjax.main --config=configs/splitmnist.py --workdir=runs/split

| variant                     | paper          | steps  |
|-----------------------------|----------------|--------|
| (none): EBM                 | 53.12 +- 0.04  | 10,000 |
| :sbc,source                 | 19.90 +- 0.02  | 10,000 |
| :joint_pairs                | 60.14 +- 1.66  | 10,000 |
| :boundary_free,all_of_batch | 81.78 +- 1.22  |  4,350 |
| :boundary_free,sbc          | 24.03 +- 0.59  |  4,350 |
| :ewc,sbc,source (and online_ewc, si, lwf) | 20.01, 19.96, 19.99, 23.85 | 10,000 |
| :mas,sbc,source (and bgd)   | 19.50, 19.64   |  1,850 |
| :er,sbc  :er (EBM)          | 90.65, 91.13   | 10,000 |
| :icarl,sbc,source (and dgr, bir) | 94.57, 91.30, 94.41 | 10,000 |
| :gss_greedy,sbc,source      | 84.80 +- 1.80  |    500 |
| :pgma,sbc,source            | 81.70          |  3,000 |
| :contrastive,sbc            | 44.98 +- 0.05  | 10,000 |
| :contrastive,ewc,sbc (and online_ewc, si) | 50.68, 50.99, 49.44 | 10,000 |
| :boundary_free,online_ewc,sbc (and si, bgd) | 39.62, 28.79, 21.65 | 4,350 |

`:source` after a baseline uses its authors' learning rate, order of classes and number
of iterations; for `bgd` also their pixels and initial weights. `:domain` shares two
labels among all tasks, and `:hsu,domain` is the setting of Hsu et al. (2018), who
report 58.9 for EWC, 57.3 for Online EWC, 64.8 for SI and 68.6 for MAS. `:joint` shows
all tasks at once. Baselines also run on the EBM: leave out `sbc`.

Time: about 15 seconds per seed on two CPU cores; with a generator (`dgr`, `bir`), about
five minutes on one. `:pgma,sbc,source` needs a GPU. The paper has ten seeds
(--config.seeds=10) with boundaries and five without. `:smoke` shrinks any experiment to
seconds; its score means nothing.
"""

from ebmjax.config.experiments import Experiment

EXPERIMENT = Experiment(
  "splitmnist",
  {
    "stream": {"name": "split", "tasks": 5, "iterations": 2000, "epochs_per_task": 10},
    "network": {"name": "ebm", "hidden": 400},
  },
)
get_config = EXPERIMENT.config
