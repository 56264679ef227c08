"""The paper's figure beside a run, and whether the run is the one it belongs to."""

import json
from typing import Any

import pytest

from ebmjax.config.identity import Difference, differences
from ebmjax.paper import commands
from ebmjax.paper.commands import with_figure
from ebmjax.report import (
  closing_table,
  page,
  paper_comparison,
  summarise,
)
from ebmjax.runtime import json_files
from ebmjax.tools.report import main
from tests.helpers import read_results
from tests.report.histories import make_history
from tests.report.pages import FACTS, Reader, store

SPLIT = "configs/splitmnist.py"
STAR = "* The paper's figure is of another configuration than "


pytestmark = pytest.mark.usefixtures("no_plots")


def config_of(chosen: str, **changes: Any) -> dict[str, Any]:
  """Returns the configuration of FILE[:variants] with a__b=value for a.b."""
  config = commands.load(chosen).copy_and_resolve_references()
  given = {name.replace("__", "."): value for name, value in changes.items()}
  with config.unlocked():  # a run of another version may have keys of other choices
    config.update_from_flattened_dict(given)
  return config.to_dict()


def results_of(history, chosen: str, **changes: Any) -> dict[str, Any]:
  return with_figure(summarise(history, config_of(chosen, **changes), FACTS))


def departures(chosen: str, config: dict[str, Any]) -> tuple[Difference, ...]:
  return differences(config, commands.load(chosen).to_dict())


def test_a_key_that_decides_the_result_is_told_with_both_values():
  history = make_history(tasks=5, classes=10)
  run = results_of(history, SPLIT, stream__iterations=200, network__gate="none")
  gate = commands.load(SPLIT).network.gate
  assert paper_comparison.remarks(run) == [
    f"network.gate=none (there {gate})",
    "stream.iterations=200 (there 2000)",
  ]
  text = " ".join(closing_table(run).split())
  assert f"not that of the paper's figure, here {SPLIT}: network.gate=none" in text
  assert "stream.iterations=200 (there 2000)." in text


def test_a_key_that_decides_nothing_is_not_told():
  history = make_history(tasks=5, classes=10)
  run = results_of(history, SPLIT, seeds=2, eval__every=7, data__dir="elsewhere")
  assert paper_comparison.remarks(run) == [] and paper_comparison.note(run) is None
  assert "not that of" not in closing_table(run)


@pytest.mark.parametrize(
  "chosen, changes",
  [
    (f"{SPLIT}:boundary_free", {"stream__iterations": 30}),
    (f"{SPLIT}:sbc,source", {"network__gate": "none"}),
    (f"{SPLIT}:bgd,sbc,source", {"optimiser__learning_rate": 0.1}),
    ("configs/cifar10.py", {"network__hidden": 3}),
  ],
)
def test_a_key_that_neither_reads_is_not_told(chosen, changes):
  assert departures(chosen, config_of(chosen, **changes)) == ()


def test_a_key_of_the_same_value_is_not_told_though_one_does_not_read_it():
  chosen = "configs/cifar10.py:online_ewc,sbc"
  changed = config_of(chosen, method__consolidate_every=500)
  assert [found.key for found in departures(chosen, changed)] == [
    "method.consolidate_every"
  ]


def test_a_key_that_another_choice_lacks_is_told_by_the_choice():
  config = config_of(SPLIT, optimiser__name="sgd")
  config["network"]["old"] = 3  # of a version before: it decides nothing any more
  run = with_figure(summarise(make_history(tasks=5, classes=10), config, FACTS))
  assert paper_comparison.remarks(run) == ["optimiser.name=sgd (there adam)"]


def test_a_figure_of_another_protocol_is_told_as_the_ledger_does():
  history = make_history(tasks=5, classes=10)
  run = results_of(history, "configs/cifar10.py:dgr,sbc")
  assert paper_comparison.remarks(run) == [
    "another protocol (its own network, a ResNet, and 5,000 iterations of 256 images)"
  ]
  text = Reader(page.render(run, history, {})).text
  assert "No run of ours can be set against it: another protocol (its own" in text


def test_a_stored_run_has_the_figure_of_this_version(tmp_path, capsys):
  history = make_history(tasks=5, classes=10)
  config = config_of(SPLIT, stream__scenario="domain")
  run = store(tmp_path / "run", history, config_of(SPLIT))
  path = run / "results.json"
  older = {"cell": "boundary_aware/ebm/split_mnist", "accuracy": 53.12, "sem": 0.04}
  content = read_results(run) | {"paper": older}
  json_files.write(path, content | {"config": config})
  assert commands.cell_for(config) is None
  assert main([str(run)]) == 0 and "53.12" not in capsys.readouterr().out
  json_files.write(path, content)
  assert main([str(run)]) == 0 and "53.12" in capsys.readouterr().out
  assert "Our command for it" in Reader((run / page.NAME).read_text("utf-8")).text


def test_a_figure_without_a_command_is_shown_alone():
  """As an earlier version stored it, and as others may hand one in."""
  history = make_history(tasks=5, classes=10)
  paper = {"cell": "boundary_aware/ebm/split_mnist", "accuracy": 53.12, "sem": 0.04}
  run = summarise(history, config_of(SPLIT), FACTS, paper=paper)
  text = Reader(page.render(run, history, {})).text
  assert "53.12 ± 0.04" in text and "The paper's figure" not in text
  assert paper_comparison.remarks(run) == []
  none = results_of(history, SPLIT, stream__scenario="domain")
  text = Reader(page.render(none, history, {})).text
  assert none["paper"] is None and "The paper's figure" not in text


def test_of_many_departures_the_number_is_told():
  changes = {
    "stream__iterations": 20,
    "stream__batch_size": 16,
    "network__hidden": 4,
    "optimiser__learning_rate": 0.5,
    "optimiser__b1": 0.5,
    "negatives": "one_by_frequency",
  }
  run = results_of(make_history(tasks=5, classes=10), SPLIT, **changes)
  assert len(paper_comparison.remarks(run)) == 6
  assert str(paper_comparison.note(run)).endswith(" and 2 others.")


def test_a_page_sets_the_run_against_the_figure_s_command():
  history = make_history(tasks=5, classes=10)
  run = results_of(history, "configs/splitmnist.py:ewc,sbc")
  reader = Reader(page.render(run, history, {}))
  assert reader.faults == []
  for part in (
    "20.01 ± 0.06 other configuration",
    "The paper's figure Run by van de Ven and Tolias, Three scenarios (2019).",
    "Our command for it: python -m ebmjax.main --config=configs/splitmnist.py:ewc,sbc,"
    "source --config.seeds=10 --config.data.require_full=True",
    "Where this run departs from that command key this run the command",
    "optimiser.learning_rate 0.0001 0.001",
  ):
    assert part in reader.text, part


def test_a_page_of_the_figure_s_own_run_says_so():
  history = make_history(tasks=5, classes=10)
  chosen = "configs/splitmnist.py:boundary_free,si,sbc"
  text = Reader(page.render(results_of(history, chosen), history, {})).text
  assert "This run has the configuration of that command." in text
  assert "otherwise than the published run: consolidates every 100 steps" in text
  assert "other configuration" not in text and "not that of" not in text


def test_a_comparison_stars_the_figures_of_others(tmp_path, capsys):
  history = make_history(tasks=5, classes=10)
  own = store(tmp_path / "own", history, config_of(SPLIT))
  short = store(tmp_path / "short", history, config_of(SPLIT, stream__iterations=9))
  out = tmp_path / "both.html"
  assert main([str(own), str(short), f"--out={out}"]) == 0
  said = f"{STAR}short: stream.iterations=9 (there 2000)."
  lines = capsys.readouterr().out.splitlines()
  (cited,) = [line for line in lines if line.startswith("Paper (%)")]
  assert cited.split("  ")[-1].endswith("53.12 +- 0.04 *") and cited.count("*") == 1
  assert said in lines and said in Reader(out.read_text()).text
  rows = json.loads(out.with_suffix(".json").read_text())["runs"]
  assert [row["departures"] for row in rows] == [
    [],
    ["stream.iterations=9 (there 2000)"],
  ]
  assert main([str(own), str(own), f"--out={out}"]) == 0
  assert STAR not in capsys.readouterr().out
