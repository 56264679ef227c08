"""The same run has one meaning: configurations of any age, versions, differences."""

import json
from typing import Any

import pytest

from ebmjax import methods
from ebmjax.config import default, flat_keys, loading, with_settings
from ebmjax.config.identity import Difference, differences, identity, obstacles
from ebmjax.config.upgrade import upgrade
from ebmjax.config.validation import resolve
from tests.helpers import SPLIT


def run(chosen: str = SPLIT, **changes: Any) -> dict[str, Any]:
  """Returns a run's stored configuration; `a__b=1` sets config.a.b."""
  given = {name.replace("__", "."): value for name, value in changes.items()}
  config = resolve(with_settings(loading.load(chosen), given))
  stored: dict[str, Any] = json.loads(json.dumps(config.to_dict()))
  return stored


def test_seeds_places_and_how_a_run_is_evaluated_do_not_matter():
  changes: dict[str, Any] = {"seed": 3, "seeds": 2, "eval__every": 5, "data__dir": "x"}
  other = run(**changes, runner__chunk=7, checkpoint__every=3)
  assert identity(run()) == identity(other)
  assert differences(run(), other) == ()


def test_what_decides_a_result_is_a_difference():
  other = run(f"{SPLIT}:si,sbc", optimiser__learning_rate=0.5)
  found = {d.key: (d.first, d.second) for d in differences(run(), other)}
  assert found["optimiser.learning_rate"] == (1e-4, 0.5)
  assert found["method.name"] == ("finetune", "si")
  assert found["method.damping"] == (None, 0.1)
  assert found["network.gate"] == ("l2", None)
  assert "stream.tasks" not in found


def test_a_result_version_makes_another_run(monkeypatch):
  """After a method's results have changed, those from before no longer count."""
  before = run(f"{SPLIT}:ewc,sbc")
  changed = methods.METHODS["ewc"]._replace(version=2)
  monkeypatch.setitem(methods.METHODS, "ewc", changed)
  after = run(f"{SPLIT}:ewc,sbc")
  assert differences(before, after) == (Difference("version.method", 1, 2),)
  assert identity(before) != identity(after)
  assert obstacles(before, after)  # nor is its run continued


def test_a_run_from_before_there_were_versions_has_version_1():
  stored = run()
  del stored["version"]
  assert identity(stored) == identity(run())


def test_a_run_is_continued_only_as_it_was_evaluated_and_stored():
  assert not obstacles(run(), run(data__dir="elsewhere", runner__devices=2))
  (found,) = obstacles(run(), run(eval__every=5))
  assert found == Difference("eval.every", 0, 5)


# A configuration as version 0.1.0 stored it: every key of every component.
FIRST_FORM = {
  "network": {"name": "sbc", "trunk": "conv5", "conv": "fixed_statistics"},
  "method": {"name": "bgd", "draws": 3, "strength": 7.0, "std_init": 0.05},
  "stream": {"name": "split", "tasks": 5, "iterations": 9, "epochs_per_task": 4},
  "data": {"name": "cifar100"},
  "optimiser": {"learning_rate": 0.5},
  "objective": "ce",
}


def test_the_first_form_is_upgraded():
  flat = flat_keys(upgrade(FIRST_FORM))
  assert flat["network.name"] == "sbc_conv5"
  assert flat["network.backbone_mode"] == "fixed_statistics"
  assert (flat["method.mc_samples"], flat["method.std_init"]) == (3, 0.05)
  assert flat["stream.iterations"] == 9
  for gone in ("method.strength", "network.trunk", "stream.epochs_per_task"):
    assert gone not in flat
  assert flat["optimiser.name"] == "none"  # BGD takes steps of its own
  assert flat["network.hidden"] == 400  # the default of that time, not today's


def test_keys_that_the_first_form_did_not_read_do_not_matter():
  other = json.loads(json.dumps(FIRST_FORM))
  other["method"]["strength"] = 1.0
  other["stream"]["epochs_per_task"] = 5
  assert identity(FIRST_FORM) == identity(other)


def test_upgrading_twice_changes_nothing():
  once = upgrade(FIRST_FORM)
  assert upgrade(once) == once


@pytest.mark.parametrize("trunk", ["none", "conv4", "conv5", "resnet18", "flat"])
def test_every_network_of_the_first_form_has_a_name_now(trunk):
  stored = {"network": {"name": "sbc", "trunk": trunk}}
  assert upgrade(stored)["network"]["name"].startswith("sbc")


def test_a_context_of_the_first_form_is_a_network_of_its_own():
  stored = {"network": {"name": "sbc", "trunk": "none", "context": 16}}
  assert upgrade(stored)["network"]["name"] == "context_mlp"


def test_every_setting_of_a_swapped_group_is_the_new_choice_s():
  config = with_settings(default(), {"network.name": "sbc", "network.hidden": 7})
  assert dict(config.network) == {"name": "sbc", "hidden": 7, "init": "pytorch"}
