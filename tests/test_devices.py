"""Seeds over several devices give the bits of one; split batches the same numbers."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebmjax.errors import ConfigError
from ebmjax.runtime.sharding import make_sharding
from ebmjax.types import RANKING
from tests.helpers import ROOT, SPLIT, assert_same_bits, environment, make_config
from tests.on_devices import RUNS, SETTINGS


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
  """Returns the folder with what a process of four devices has found."""
  base = tmp_path_factory.mktemp("devices")
  four = "--xla_force_host_platform_device_count=4"
  variables = {
    "XLA_FLAGS": f"{os.environ['XLA_FLAGS']} {four}",
    "JAX_PLATFORMS": "cpu",
  }
  subprocess.run(
    [sys.executable, "-m", "tests.on_devices", str(base)],
    env=environment(base / "cache") | variables,
    cwd=ROOT,
    timeout=600,
    check=True,
  )
  return base


def load(base: Path, name: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
  assert name.removesuffix(", together") in RUNS
  with np.load(base / f"{name}.npz") as file:
    found = dict(file)
  return found, json.loads(str(found.pop("about")))


def assert_close(found: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
  """Asserts what sums in another order may change, and no more."""
  assert found.keys() == other.keys()
  for name, values in found.items():
    expected = other[name][: len(values)]
    shares = ("accuracy", "masked_accuracy", *RANKING)  # of a few images
    tolerance = 0.05 if name in shares else 1e-4
    if name == "confusion":
      assert np.abs(values - expected).sum() <= 4 * len(values)
    else:
      np.testing.assert_allclose(values, expected, rtol=1e-3, atol=tolerance)


def test_one_device_is_told_as_such(base):
  _, about = load(base, "si")
  assert (about["devices"], about["batch_devices"], about["processes"]) == (1, 1, 1)
  assert about["told"] == "all seeds on one device"


def test_seeds_over_devices_have_the_bits_of_one_device(base):
  """Of weights, what SI keeps of them, losses, accuracies and counts."""
  alone, (found, about) = load(base, "si")[0], load(base, "si on four")
  assert about["devices"] > 1
  assert_same_bits(found, alone)


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_swept_over_devices_have_the_bits_of_runs_alone(base, setting):
  """Ten runs on four devices: most hold seeds of one setting, one of both."""
  alone, (found, about) = load(base, setting)[0], load(base, f"{setting}, together")
  assert about["told"].startswith("3 seeds on each of 4 devices; 2 places to spare")
  assert_same_bits(found, alone)


def test_settings_differ(base):
  """Or a device that trains another setting would not be noticed."""
  one, other = (load(base, setting)[0]["loss"] for setting in SETTINGS)
  assert (one[:, -1] != other[:, -1]).all()


def test_seeds_that_do_not_divide_are_told(base):
  """Five seeds on four devices: no faster than two on each of three."""
  found, about = load(base, "si on four")
  assert found["loss"].shape == (5, 12)
  assert about["devices"] == 3
  assert about["told"] == (
    "2 seeds on each of 3 devices; 1 place to spare, filled with the last seed again, "
    "whose results there are dropped"
  )


def test_memory_is_that_of_one_device(base):
  """Which holds two of the five seeds, takes them in turn, and has every image."""
  alone, found = (load(base, name)[1]["memory_bytes"] for name in ("si", "si on four"))
  a_seed = alone["state"] // 5
  assert (found["state"], found["copies"]) == (2 * a_seed, 3 * a_seed)
  assert found["tables"] * 5 == alone["tables"] * 2
  assert found["images"] == alone["images"]
  side_by_side = load(base, "si side by side on two")[1]["memory_bytes"]
  assert (side_by_side["state"], side_by_side["copies"]) == (a_seed, 0)


def test_seeds_differ(base):
  """Or a device that runs another's seeds would not be noticed."""
  losses = load(base, "si")[0]["loss"]
  assert len(np.unique(losses[:, 0])) == 5


def test_seeds_side_by_side_come_close(base):
  found, about = load(base, "si side by side on two")
  assert about["told"] == "1 seed on each of 2 devices"
  assert_close(found, load(base, "si")[0])


@pytest.mark.parametrize(
  ("one", "split", "told"),
  [
    ("ebm", "ebm, split batches", "1 seed on each of 2 groups of 2 devices"),
    ("si", "si, split batches", "1 seed on each of 1 group of 2 devices"),
  ],
)
def test_split_batches_come_close(base, one, split, told):
  """Negatives are drawn from, and gradients taken of, the whole batch."""
  found, about = load(base, split)
  assert (about["told"], about["batch_devices"]) == (told, 2)
  assert_close(found, load(base, one)[0])


@pytest.mark.parametrize(
  ("name", "parts"),
  [
    ("too many", ["config.runner.devices=5", "sees 4 devices; give 0 for all."]),
    ("too many of a batch", ["config.runner.batch_devices=4", "has 2 devices"]),
    ("uneven", ["config.stream.batch_size=16", "config.runner.batch_devices=3"]),
  ],
)
def test_wishes_that_cannot_be_met(base, name, parts):
  told = json.loads((base / "faults.json").read_text())[name]
  assert told.endswith(".")
  for part in parts:
    assert part in told


def test_more_devices_than_there_are(tmp_path: Path):
  config = make_config(f"{SPLIT}:smoke", tmp_path, runner__devices=1000)
  with pytest.raises(ConfigError, match=r"config\.runner\.devices=1000 is too large"):
    make_sharding(config, 1, "map")
