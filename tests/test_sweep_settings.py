"""The settings of a sweep: grids, lists, random points, and the names of folders."""

from pathlib import Path

from ebmjax.tools.sweep import settings as sweeping
from tests.helpers import SPLIT

RATE, STRENGTH = "optimiser.learning_rate", "method.strength"
CHOSEN = f"{SPLIT}:smoke,sbc,ewc"
POOR = f"config.{RATE}=1e-4 config.{STRENGTH}=1"
GOOD = f"config.{RATE}=1e-2 config.{STRENGTH}=1"


def make(*grids: str, lists: tuple[str, ...] = (), rest: tuple[str, ...] = ()):
  return sweeping.make(CHOSEN, grids, lists, rest)


def test_grids_multiply():
  found = make(f"config.{STRENGTH}=1,1e2", f"config.{RATE}=1e-4,1e-3,1e-2")
  assert [tuple(setting.values.items()) for setting in found] == [
    ((STRENGTH, strength), (RATE, rate))
    for strength in (1.0, 100.0)
    for rate in (1e-4, 1e-3, 1e-2)
  ]
  for setting in found:
    assert setting.config.method.strength == setting.values[STRENGTH]
    assert setting.config.optimiser.learning_rate == setting.values[RATE]
    assert setting.config.network.hidden == 32  # the variant's, as without a sweep
  assert found[1].name == "strength=1,learning_rate=0.001"
  turned = make(f"config.{RATE}=1e-4,1e-3,1e-2", f"config.{STRENGTH}=1,1e2")
  assert {setting.name for setting in turned} == {setting.name for setting in found}


def test_a_list_is_joint_and_multiplies_with_grids(tmp_path: Path):
  file = tmp_path / "settings.txt"
  file.write_text(f"# the usual ones\n{POOR}\n\n--config.network.hidden=7  # small\n")
  found = make("eval.at_task_ends=True,False", lists=(str(file), GOOD))
  values = [tuple(setting.values.values()) for setting in found]
  keys = [RATE, STRENGTH, "network.hidden", "eval.at_task_ends"]
  assert list(found[0].values) == keys
  assert values[::2] == [
    (1e-4, 1.0, 32, True),
    (1e-4, 1e8, 7, True),  # what it does not name is as in the experiment's file
    (1e-2, 1.0, 32, True),
  ]
  assert [each[3] for each in values] == [True, False] * 3


def test_random_points_lie_in_their_ranges_and_begin_alike():
  ranges = [f"config.{STRENGTH}=1:1e6", "config.data.images=0:50"]
  points = sweeping.draw(ranges, 40)
  assert sweeping.draw(ranges, 7) == points[:7]
  strengths = [float(point[STRENGTH]) for point in points]
  assert 1 <= min(strengths) < 100 and 1e4 < max(strengths) <= 1e6
  assert all(0 <= float(point["data.images"]) <= 50 for point in points)
  made = sweeping.make(CHOSEN, [], [], [], sweeping.draw(ranges[:1], 2))
  assert len(made) == 2


def test_values_are_typed_as_on_the_command_line():
  (number,) = make("config.network.hidden=12")
  assert number.config.network.hidden == 12
  first, second = make("config.data.std=(0.1,),(0.2,)")
  assert (first.config.data.std, second.config.data.std) == ((0.1,), (0.2,))
  assert first.name.startswith("std=_0.1,_-") and first.name != second.name


def test_names_of_folders_are_safe_and_distinct():
  long = ",".join(f"{'x' * 120}/{end}" for end in "ab")
  names = [setting.name for setting in make(f"config.data.dir={long}")]
  assert len(set(names)) == 2
  assert all(len(name) < 120 and "/" not in name for name in names)
  assert sweeping.short_names(["method.name", "network.name", "seed"]) == [
    "method.name",
    "network.name",
    "seed",
  ]


def test_points_may_choose_methods_with_other_keys():
  points = ["config.method.name=ewc config.method.strength=2", "config.method.name=bgd"]
  found = sweeping.make(f"{SPLIT}:sbc,smoke", [], points, [])
  assert [point.name for point in found] == ["name=ewc,strength=2", "name=bgd"]
  assert [point.values["method.strength"] for point in found] == [2.0, None]
