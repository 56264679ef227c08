"""What is timed: the cases, and a run's parts made of random images for each."""

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from ebmjax.config import loading, with_settings
from ebmjax.config.validation import resolve
from ebmjax.data import DATASETS
from ebmjax.networks.cifar100 import NormTrunk, trunk_file
from ebmjax.runtime import scan
from ebmjax.runtime.trainer import RunSpec, make_run_spec
from ebmjax.types import Dataset

CONFIGS = loading.root() / "configs"
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


_STREAMS = (  # what is trained on it, and the steps of a round
  ("split MNIST", "splitmnist.py", 500),
  ("split MNIST, boundary-free", "splitmnist.py:boundary_free", 300),
  ("permuted MNIST", "permmnist.py", 200),
  ("permuted MNIST, boundary-free", "permmnist.py:boundary_free", 100),
  ("CIFAR-10", "cifar10.py", 20),
  ("CIFAR-10, boundary-free", "cifar10.py:boundary_free", 20),
  ("CIFAR-100, fixed statistics", "cifar100.py:fixed", 50),
  ("CIFAR-100, batch statistics", "cifar100.py", 30),
  ("CIFAR-100, boundary-free", "cifar100.py:boundary_free", 30),
)


def _with(chosen: str, variant: str) -> str:
  return f"{chosen}{',' if ':' in chosen else ':'}{variant}" if variant else chosen


TRAINING = tuple(
  Training(f"{network} {stream}", _with(config, variant), steps)
  for stream, config, steps in _STREAMS
  for network, variant in (("EBM", ""), ("SBC", "sbc"))
)

INFERENCE = (
  Inference("Inference, split MNIST", "splitmnist.py", "sbc", 50, 50),
  Inference(
    "Inference, split MNIST, boundary-free",
    "splitmnist.py:boundary_free",
    "sbc",
    50,
    50,
  ),
  Inference("Inference, CIFAR-10", "cifar10.py", "sbc", 10, 10),
  Inference("Inference, permuted MNIST, and the SBC", "permmnist.py", "sbc", 50, 50),
  Inference("Inference, CIFAR-100, and the SBC", "cifar100.py:fixed", "sbc", 50, 50),
  Inference("Inference, permuted MNIST", "permmnist.py", "plain", 50, 3),
  Inference(
    "Inference, permuted MNIST, boundary-free",
    "permmnist.py:boundary_free",
    "plain",
    3,
    2,
  ),
  Inference("Inference, CIFAR-100", "cifar100.py:fixed", "plain", 50, 2),
)


def quick(case: Any) -> Any:
  """Returns a case of any kind with a tenth of its work in a round."""
  amounts = {"steps", "blocks", "rival_blocks"} & set(case._fields)
  return case._replace(**{name: -(-getattr(case, name) // 10) for name in amounts})


def make_training(case: Training, seeds: int = 1, driver: str = "auto") -> RunSpec:
  """Returns the parts of the case's run, its first task as long as a round."""
  steps = {"stream.iterations": case.steps, "seeds": seeds}
  config = with_settings(load(case.config, case.changes), steps)
  return make(config, noise(config.data.name), driver)


def make_evaluation(case: Training) -> RunSpec:
  """Returns the parts of the case's run, with as many test images as the real set."""
  config = with_settings(load(case.config, case.changes), {"stream.iterations": 1})
  test_images = DATASETS[config.data.name].test.size
  return make(config, noise(config.data.name, test=test_images))


def make_inference(case: Inference, variants: str = "") -> RunSpec:
  """Returns the parts of the case's run, with test images for a round of ours."""
  config = load(_with(case.config, variants), case.changes)
  config = with_settings(config, {"stream.iterations": 1})
  test_images = case.blocks * config.eval.batch_size
  return make(config, noise(config.data.name, test=test_images))


def load(chosen: str, changes: Changes = ()) -> ConfigDict:
  """Returns the configuration of a file of configs/ with its variants, changed."""
  return with_settings(loading.load(str(CONFIGS / chosen)), dict(changes))


def make(config: ConfigDict, dataset: Dataset, driver: str = "auto") -> RunSpec:
  """Returns the parts of a run of `config`; its trunk has random weights."""
  driver = scan.choose_driver(driver, jax.default_backend())
  with tempfile.TemporaryDirectory() as folder:
    if "pretrained" in config.network:
      config.network.pretrained = str(write_trunk(Path(folder)))
    return make_run_spec(resolve(config), dataset, driver)


def write_trunk(folder: Path) -> Path:
  """Returns the file, in `folder`, of a trunk that was never trained."""
  variables = jax.jit(NormTrunk().init)(jax.random.key(0), jnp.zeros((1, 32, 32, 3)))
  path = folder / "trunk.npz"
  path.write_bytes(trunk_file(variables))
  return path


def noise(name: str, train: int = 0, test: int = 0, classes: int = 0) -> Dataset:
  """Returns random images of the set's shape, all classes equally often.

  Without numbers it has few training images, one test image a class (a stream wants
  them), and the set's own classes.
  """
  info, rng = DATASETS[name], np.random.default_rng(0)
  classes = classes or info.num_classes

  def draw(count: int) -> tuple[np.ndarray, np.ndarray]:
    x = rng.integers(0, 256, (count, *info.image_shape), dtype=np.uint8)
    return x, np.arange(count, dtype=np.int32) % classes

  drawn = draw(train or _TRAIN_IMAGES.get(name, _FEWER)), draw(max(test, classes))
  return Dataset(name, "noise", False, *drawn[0], *drawn[1], classes)
