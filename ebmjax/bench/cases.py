"""What is timed: the cases, and a run's parts made of random images for each."""

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from ebmjax import cli, runner
from ebmjax.data import DATASETS
from ebmjax.machine import Setup, make_setup
from ebmjax.networks.cifar100 import NormTrunk, save_trunk
from ebmjax.types import Dataset
from ebmjax.validation import resolve

_CONFIGS = Path(__file__).parents[2] / "configs"
_TRAIN_IMAGES = {"mnist": 20_000}  # of other sets fewer: their images are larger
_FEWER = 5_000

Changes = tuple[tuple[str, Any], ...]  # dotted keys of a configuration, and values


class Training(NamedTuple):
  """A network to train, named as on the command line: a file of configs/, variants."""

  name: str
  config: str
  steps: int  # of one round
  changes: Changes = ()


class Inference(NamedTuple):
  """An energy network to ask for all labels, and what it is set against."""

  name: str
  config: str
  rival: str  # sbc: the classifier; plain: the same network, one label at a time
  blocks: int  # of images that ours is asked for in a round
  rival_blocks: int  # the same of the rival
  changes: Changes = ()


TRAINING = (
  Training("EBM split MNIST", "splitmnist.py", 500),
  Training("SBC split MNIST", "splitmnist.py:sbc", 500),
  Training("EBM split MNIST, boundary-free", "splitmnist.py:boundary_free", 300),
  Training("EBM permuted MNIST", "permmnist.py", 200),
  Training("SBC permuted MNIST", "permmnist.py:sbc", 200),
  Training("EBM permuted MNIST, boundary-free", "permmnist.py:boundary_free", 100),
  Training("EBM CIFAR-10", "cifar10.py", 20),
  Training("SBC CIFAR-10", "cifar10.py:sbc", 20),
  Training("EBM CIFAR-100, fixed statistics", "cifar100.py:fixed", 50),
  Training("SBC CIFAR-100, fixed statistics", "cifar100.py:fixed,sbc", 50),
  Training("EBM CIFAR-100, batch statistics", "cifar100.py", 30),
  Training("SBC CIFAR-100, batch statistics", "cifar100.py:sbc", 30),
)

INFERENCE = (
  Inference("Inference, split MNIST", "splitmnist.py", "sbc", 50, 50),
  Inference("Inference, CIFAR-10", "cifar10.py", "sbc", 10, 10),
  Inference("Inference, permuted MNIST", "permmnist.py", "plain", 50, 3),
  Inference("Inference, CIFAR-100", "cifar100.py:fixed", "plain", 50, 2),
)


def make_training(case: Training) -> Setup:
  """Returns the parts of the case's run, its first task as long as a round."""
  config = _load(case.config, case.changes)
  config.stream.iterations = case.steps
  return _make(config, test_images=0)


def make_inference(case: Inference, variants: str = "") -> Setup:
  """Returns the parts of the case's run, with test images for a round of ours."""
  config = _load(_with(case.config, variants), case.changes)
  config.stream.iterations = 1
  return _make(config, test_images=case.blocks * config.eval.batch_size)


def _with(chosen: str, variants: str) -> str:
  if not variants:
    return chosen
  return f"{chosen}{',' if ':' in chosen else ':'}{variants}"


def _load(chosen: str, changes: Changes) -> ConfigDict:
  config = cli.load(str(_CONFIGS / chosen))
  config.update_from_flattened_dict(dict(changes))
  return config


def _make(config: ConfigDict, *, test_images: int) -> Setup:
  dataset = _noise(config.data.name, test_images)
  driver = runner.choose_driver("auto", jax.default_backend())
  with tempfile.TemporaryDirectory() as folder:
    if config.network.trunk == "conv5":
      config.network.pretrained = str(_random_trunk(Path(folder)))
    return make_setup(resolve(config), dataset, driver)


def _random_trunk(folder: Path) -> Path:
  """Returns the file, in `folder`, of a trunk that was never trained."""
  variables = jax.jit(NormTrunk().init)(jax.random.key(0), jnp.zeros((1, 32, 32, 3)))
  path = folder / "trunk.npz"
  save_trunk(path, variables)
  return path


def _noise(name: str, test_images: int) -> Dataset:
  """Returns random images of the set's shape, all classes equally often.

  There is at least one test image a class: a stream wants them.
  """
  info, rng = DATASETS[name], np.random.default_rng(0)

  def draw(count: int) -> tuple[np.ndarray, np.ndarray]:
    x = rng.integers(0, 256, (count, *info.image_shape), dtype=np.uint8)
    return x, np.arange(count, dtype=np.int32) % info.num_classes

  train = draw(_TRAIN_IMAGES.get(name, _FEWER))
  test = draw(max(test_images, info.num_classes))
  return Dataset(name, "noise", False, *train, *test, info.num_classes)
