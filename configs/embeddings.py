"""Rows of numbers: embeddings of a frozen model, or a table, with their labels.

  python -m ebmjax.main --config=configs/embeddings.py --config.data.dir=FILE.npz

FILE.npz holds x_train [N, F] and y_train [N], x_test and y_test, or x and y, of which a
fifth of each class is then held out. Every feature is scaled by its mean and deviation
in the training rows.

Classes are distributed over config.stream.tasks tasks as evenly as possible, or as
config.stream.class_groups lists them. Over frozen features a closed form is hard to
beat: `:slda` and `:ridge` (an MLP learns nothing there that they could forget), `:ncm`,
and `:randumb` or `:ranpac` with random features in front. Without a variant it is the
energy network, with `:sbc` the softmax classifier. `:smoke` shrinks any to seconds.
"""

from ebmjax.config.experiments import Experiment

EXPERIMENT = Experiment(
  "embeddings",
  {
    "data": {"name": "own"},
    "stream": {"name": "split", "tasks": 5, "iterations": 1000, "epochs_per_task": 10},
    "network": {"name": "ebm", "hidden": 1000},
  },
)
get_config = EXPERIMENT.config
