"""Your own images: an npz file, a folder of images by class, or a prepared TFDS set.

  python -m ebmjax.main --config=configs/own.py --config.data.dir=FILE.npz
  python -m ebmjax.main --config=configs/own.py:conv --config.data.dir=FOLDER

FILE.npz holds x_train, y_train and x_test, y_test, or x and y, of which a fifth of each
class is then held out. FOLDER holds one such file, or train/CLASS/*.png (or jpg), with
or without test/CLASS/. Images are [N, H, W] or [N, H, W, 1 or 3] of any size and range;
labels are integers or strings. Normalisation is estimated from the training images.

Classes are distributed over config.stream.tasks tasks as evenly as possible, or as
config.stream.class_groups lists them. Without a variant the energy network is an MLP;
`:conv` takes convolutions, `:sbc` the softmax classifier to compare with, `:slda` or
another method's name that method. `:online` shows every image once, in batches of ten,
and evaluates during training. `:smoke` shrinks any of them to seconds.
"""

from ebmjax.config.experiments import Experiment

EXPERIMENT = Experiment(
  "own",
  {
    "data": {"name": "own"},
    "stream": {"name": "split", "tasks": 2, "iterations": 2000, "epochs_per_task": 10},
    "network": {"name": "ebm", "hidden": 400},
  },
  variants={"conv": {"network.name": "ebm_conv4"}},
)
get_config = EXPERIMENT.config
