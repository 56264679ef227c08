"""Settings that are trained together equal the same runs alone."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ebmjax import experiment
from ebmjax.config import flat_keys, with_settings
from ebmjax.config.groups import keys_of
from ebmjax.errors import DivergenceError
from ebmjax.runtime import checkpoints, scan
from ebmjax.runtime.trainer import Trainer, make_run_spec
from ebmjax.runtime.varied import Value, values_of
from ebmjax.streams import task_ends
from ebmjax.tools.sweep import running
from ebmjax.tools.sweep.settings import Setting
from tests.states import made, small

COMMAND = "configs/splitmnist.py:online_ewc,sbc"
STRENGTH, DECAY, RATE = "method.strength", "method.decay", "optimiser.learning_rate"
# Numbers that single precision rounds, as do their halves and products.
POINTS = [{STRENGTH: 123.4, DECAY: 0.7, RATE: 3e-3}, {STRENGTH: 7.1, DECAY: 0.9}]


def configs(*points: dict[str, Any], command: str = COMMAND) -> list[Any]:
  base = small(command)
  with base.unlocked():
    del base["version"]
  return [with_settings(base, {"seeds": 2} | point) for point in points]


def trained(spec: Any) -> Trainer:
  trainer, end = Trainer(spec), task_ends(spec.stream)[0]
  trainer.train(next(scan.chunks(spec.stream, 0, 4, 4)))
  trainer.consolidate(0)
  trainer.train(next(scan.chunks(spec.stream, end, end + 4, 4)))
  return trainer


def assert_same_states(alone: Any, together: Any, exactly: bool = True) -> None:
  pairs = zip(jax.tree.leaves(alone), jax.tree.leaves(together), strict=True)
  for one, other in pairs:
    if exactly:
      np.testing.assert_array_equal(one, other)
    else:
      np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("driver", ["map", "vmap"])
def test_each_setting_is_the_same_run_alone(driver: str):
  """To the bit in turn, but for rounding side by side."""
  settings, images = configs(*POINTS), made("mnist")
  together = trained(make_run_spec(settings, images, driver))
  for point, config in enumerate(settings):
    alone = trained(make_run_spec(config, images, "map"))
    assert_same_states(alone.saved(), together.saved(point), driver == "map")


@pytest.mark.parametrize(
  "command",
  [
    "configs/splitmnist.py:bgd,sbc",
    "configs/splitmnist.py:bir,sbc",
    "configs/splitmnist.py:icarl,sbc",
    "configs/splitmnist.py:lwf,sbc",
    "configs/splitmnist.py:si,sbc",
    "configs/permmnist.py:ctn,sbc",
  ],
)
def test_every_traced_key_of_a_method_may_differ(command: str):
  images = made("mnist")
  (usual,) = configs({}, command=command)
  found = flat_keys(usual)
  keys = keys_of(found)
  own = [
    name for name, key in keys.items() if key.traced and name.startswith("method.")
  ]
  assert own
  own_values = {name: 0.7 * found[name] for name in own}
  one_seed = {"seeds": 1}
  settings = configs(one_seed, one_seed | own_values, command=command)
  together = trained(make_run_spec(settings, images, "map"))
  alone = trained(make_run_spec(settings[1], images, "map"))
  assert_same_states(alone.saved(), together.saved(1))


def test_numbers_are_rounded_as_constants_are():
  x = jnp.linspace(0.1, 1, 7)
  for value in (0.7, 3.3):

    @jax.jit
    def varied(point, x):
      number = Value(np.array([9.0, 0.7, 3.3]), point)
      return x / number, x * (number / 2 * 0.8), 1 - number * x, number**2 * x

    @jax.jit
    def constant(x, value=value):
      return x / value, x * (value / 2 * 0.8), 1 - value * x, value**2 * x

    point = jnp.int32([9.0, 0.7, 3.3].index(value))
    for one, other in zip(varied(point, x), constant(x), strict=True):
      np.testing.assert_array_equal(one, other)


def test_a_value_is_not_compared():
  value = Value(np.array([1.0, 2.0]), jnp.int32(0))
  with pytest.raises(TypeError, match="cannot be compared"):
    bool(value)
  with pytest.raises(TypeError, match="cannot be compared"):
    value > 0  # noqa: B015


def test_only_traced_keys_may_differ():
  assert set(values_of(configs(*POINTS))) == {DECAY, STRENGTH, RATE}
  with pytest.raises(ValueError, match=r"network\.hidden is not marked as traced"):
    values_of(configs({}, {"network.hidden": 9}))


def read(folder: Path) -> list[Any]:
  """Returns what a run keeps: its evaluations, and its last states."""
  found = []
  for path in sorted((folder / "evaluations").glob("*.npz")):
    with np.load(path) as file:
      found += [path.name, *(file[name] for name in sorted(file.files))]
  return found


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_an_interrupted_group_continues_to_the_same_bits(tmp_path: Path, monkeypatch):
  """With one setting that diverges: the others are none the worse for it."""
  monkeypatch.setattr("ebmjax.report.plots.draw", lambda history, scalars: {})
  hopeless = {STRENGTH: 1e39}  # too large for 32 bits
  settings, images = configs(*POINTS, hopeless), made("mnist")
  runs = [(config, tmp_path / str(n)) for n, config in enumerate(settings)]
  saved: list[int] = []
  save = checkpoints.Checkpoints.save

  def once(keeper: Any, step: int, *rest: Any) -> None:
    if len(saved) == 2:
      raise InterruptedError
    saved.append(step)
    save(keeper, step, *rest)

  with monkeypatch.context() as patch:
    patch.setattr(checkpoints.Checkpoints, "save", once)
    with pytest.raises(Exception):  # noqa: B017
      experiment.run_together(runs, images)
  names = [Setting(str(n), (), {}, config) for n, config in enumerate(settings)]
  for group in running.groups(names, tmp_path):
    if group == [2]:  # left behind without a checkpoint
      with pytest.raises(DivergenceError):
        experiment.run_together([runs[2]], images)
      continue
    assert group == [0, 1]
    found = experiment.run_together([runs[place] for place in group], images)
    first, second = found
    assert not isinstance(first, DivergenceError)
    assert not isinstance(second, DivergenceError)
    # One of them is enough here: the test above compares each with its run alone.
    expected = experiment.run(settings[1], tmp_path / "alone", images)
    assert second["accuracy_matrix"] == expected["accuracy_matrix"]
    for one, other in zip(read(tmp_path / "alone"), read(runs[1][1]), strict=True):
      np.testing.assert_array_equal(one, other)
