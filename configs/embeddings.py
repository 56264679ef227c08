"""Rows of numbers: embeddings of a frozen model, or a table, with their labels.

  python -m ebmjax.main --config=configs/embeddings.py --config.data.dir=FILE.npz

FILE.npz holds x_train [N, F], y_train [N], x_test and y_test, or x and y; a fifth of
each class is then held out for testing. Every feature is standardised with its mean and
standard deviation over the training rows.

The classes are divided among config.stream.tasks tasks as evenly as possible, or as
config.stream.class_groups says. On frozen features, closed forms are hard to beat:
`:slda`, `:ridge`, `:ncm`, and `:randumb` or `:ranpac` with random features in front.
Without a variant, the experiment trains the energy network; `:sbc` trains the softmax
classifier. `:smoke` shrinks any experiment to seconds.
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
