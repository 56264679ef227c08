"""Several runs side by side: the table, the tests over seeds, the warnings."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from ebmjax.report import (
  compare,
  compare_files,
  compare_page,
  compare_plots,
  compare_tables,
  significance,
  stored,
)
from ebmjax.tools.report import main
from tests.report.histories import make_config, make_history
from tests.report.pages import FACTS, Reader, store

pytestmark = pytest.mark.usefixtures("no_plots")


@pytest.fixture
def runs(tmp_path):
  """Returns the folders of two runs of the same three seeds, and one of a seed."""
  better = make_history(tasks=5, classes=10, runs=3)
  worse = make_history(tasks=5, classes=10, runs=3)
  worse.evaluations.accuracy[:] *= np.array([[0.5], [0.55], [0.62]])
  one = make_history(tasks=5, classes=10, runs=1)
  return [
    store(tmp_path / "ebm", better, make_config()),
    store(tmp_path / "sbc", worse, make_config("sbc", objective="ce")),
    store(tmp_path / "one", one, make_config("sbc", objective="ce")),
  ]


def compared(*folders: Path) -> compare.Comparison:
  return compare.compare([stored.read(folder) for folder in folders])


def shown(found: compare.Comparison) -> tuple[str, str]:
  """Returns the page and the plain text of a comparison."""
  return compare_page.render(found), compare_files.text(found)


def test_the_same_seeds_are_compared_pair_by_pair():
  # Student's sleep data (1908): a textbook's t = -4.0621 with 9 degrees of freedom.
  first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
  second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
  a, b = dict(enumerate(first)), dict(reversed(list(enumerate(second))))
  found = significance.compare(a, b)
  assert found.test == "paired t-test, 10 seeds"
  assert found.mean == pytest.approx(-1.58)
  assert found.p == pytest.approx(0.002833, abs=1e-6)
  assert found.low == pytest.approx(-2.4598858, abs=1e-6)
  assert found.high == pytest.approx(-0.7001142, abs=1e-6)
  # The same data as independent samples: t = -1.8608 with 17.776 degrees of freedom.
  apart = significance.compare(a, {seed + 1: value for seed, value in b.items()})
  assert apart.test == "Welch's t-test, 10 and 10 seeds"
  assert apart.p == pytest.approx(0.079394, abs=1e-6)
  assert apart.low == pytest.approx(-3.3654832, abs=1e-6)
  assert apart.high == pytest.approx(0.2054832, abs=1e-6)


def test_where_there_is_nothing_to_test():
  assert significance.compare({0: 5.0}, {0: 3.0}) == (
    *(2.0, None, None, None),
    "one seed: no test",
  )
  assert significance.compare({0: 5.0, 1: 6.0}, {3: 3.0}).test == "one seed: no test"
  same = significance.compare({0: 5.0, 1: 6.0}, {1: 5.0, 0: 4.0})
  assert same == (1.0, None, None, None, "the same in every seed: no test")
  assert significance.p_text(3e-5) == "p < 0.0001"
  assert significance.p_text(0.04931) == "p = 0.0493"


def test_the_command_compares_runs(runs, tmp_path, capsys):
  out = tmp_path / "both.html"
  assert main([*map(str, runs), f"--out={out}"]) == 0
  printed = capsys.readouterr().out
  means = [stored.read(run).results["average_accuracy"]["mean"] for run in runs]
  assert "ebm  3  finetune  ebm      split MNIST  boundary-aware" in printed
  assert "holm" not in printed  # there is one p-value
  cells = [line.split() for line in printed.splitlines()]
  assert ["network.name", "ebm", "sbc", "sbc"] in cells
  assert ["Training", *["1.69", "TFLOP"] * 3] in cells
  signed = [f"{mean - means[0]:+.2f}" for mean in means]
  assert ["one", signed[2], *["-", "-", "one", "seed:", "no", "test"]] in cells
  (tested,) = [line for line in cells if line[:2] == ["sbc", signed[1]]]
  assert tested[3] == "to" and " ".join(tested[-4:]) == "paired t-test, 3 seeds"
  assert any(line[:4] == ["AUROC,", "free", "energy", "(%)"] for line in cells)
  assert "Not directly comparable" not in printed
  widths = {len(line) for line in printed.splitlines() if line.startswith("---")}
  assert len(widths) == 1
  content = json.loads((tmp_path / "both.json").read_text())
  assert [row["name"] for row in content["runs"]] == ["ebm", "sbc", "one"]
  with (tmp_path / "both.csv").open(newline="") as file:
    rows = list(csv.DictReader(file))
  assert float(rows[1]["metrics.average_accuracy.mean"]) == means[1]
  assert float(rows[1]["difference.mean"]) == pytest.approx(means[1] - means[0])
  assert float(rows[1]["difference.p"]) == content["runs"][1]["difference"]["p"]
  assert [row["budget.training_flops"] for row in rows] == ["1691053790000"] * 3
  assert rows[0]["difference.p"] == rows[2]["difference.p"] == ""
  reader = Reader(out.read_text("utf-8"))
  assert reader.faults == []
  assert reader.tags["svg"] == 2
  for part in (
    *("3 runs compared", "53.12 ± 0.04", "paired t-test, 3 seeds", "95 %"),
    "The highest average accuracy is that of ebm",
    "network.name ebm sbc sbc",
  ):
    assert part in reader.text


def test_charts_have_a_line_a_run_told_apart_without_colours(runs):
  """The curves are means over the tasks so far, then over seeds."""
  found = compared(*runs, runs[0])
  charts = compare_plots.draw(found)
  lines = charts["curves"].figure.axes[0].get_lines()
  assert len({line.get_marker() for line in lines}) == 4
  accuracy = found.runs[1].history.evaluations.accuracy[1:]
  wanted = 100 * np.nanmean(accuracy, axis=-1).mean(axis=1)
  np.testing.assert_allclose(np.asarray(lines[1].get_ydata(), float), wanted)
  page, _ = shown(found)
  for number, row in enumerate(found.rows, start=1):
    assert page.count(f">{number}: {row['name']}</text>") == 2  # a legend per chart


def test_runs_that_are_not_like_for_like(tmp_path):
  evil = "<script>x</script>"
  facts = FACTS | {"data_full": False}
  free = make_config(setting="boundary_free", scenario="domain")
  other = make_config(stream="permuted", tasks=3)
  paths = [
    store(tmp_path / evil.replace("/", "") / "run", make_history(), make_config()),
    store(tmp_path / "b" / "run", make_history(), free, facts),
    store(tmp_path / "c", make_history(tasks=2), other),
  ]
  found = compared(*paths, paths[2])
  names = [row["name"] for row in found.rows]
  assert names == ["<script>x<script>/run", "b/run", "c (1)", "c (2)"]
  assert compare.notes(found) == [
    "Not directly comparable: the runs differ in stream.name (split, permuted).",
    "Not directly comparable: the runs differ in stream.scenario (class, domain).",
    "Not directly comparable: the runs differ in stream.setting (boundary_aware, "
    "boundary_free).",
    "Not directly comparable: the runs differ in stream.tasks (5, 3).",
    "Not the full data set: b/run; not comparable with the paper's.",
  ]
  reader = Reader(shown(found)[0])
  assert reader.faults == []
  assert all(note in reader.text for note in compare.notes(found))
  assert "<script>x<script>/run" in reader.text


def test_what_the_runs_are_scored_on_and_start_from_is_told(tmp_path):
  held_out = make_config(tasks=4)
  held_out["data"]["validation"] = 500
  facts = FACTS | {"data_digest": "another", "weights_digest": "a"}
  paths = [
    store(tmp_path / "a", make_history(), make_config(), facts),
    store(tmp_path / "b", make_history(), held_out, FACTS | {"weights_digest": "b"}),
    store(tmp_path / "c", make_history(), make_config()),  # its weights are not known
  ]
  assert compare.notes(compared(*paths)) == [
    "Not directly comparable: the runs differ in data.validation (0, 500).",
    "Not directly comparable: the runs differ in stream.tasks (5, 4).",
    "Not directly comparable: the images of the runs are not the same.",
    "Not directly comparable: the runs start from different pre-trained weights.",
    compare.NOT_RANKED,
  ]


def test_holm_s_correction():
  # By hand: 3 * 0.01, then 2 * 0.03, and 0.04 not below the one before it.
  assert significance.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
  assert significance.holm([0.6, 0.9]) == [1.0, 1.0] and significance.holm([]) == []


def test_several_p_values_are_corrected(runs):
  found = compared(*runs, runs[1])
  differences = [found.rows[place]["difference"] for place in (1, 3)]
  ps = [difference["p"] for difference in differences]
  corrected = [difference["p_holm"] for difference in differences]
  assert ps[0] == ps[1] and corrected == pytest.approx([2 * p for p in ps])
  page, text = shown(found)
  said = significance.p_text(corrected[0])
  assert text.count(f"(holm {said})") == 2 and compare_tables.HOLM in text
  assert f"(holm {said})" in page


def test_the_keys_in_which_runs_differ_are_listed(tmp_path):
  """Two runs of the same method are told apart; seeds and places do not count."""
  slow, fast = make_config(), make_config()
  slow |= {"optimiser": {"learning_rate": 0.5}, "seed": 0}
  fast |= {"optimiser": {"learning_rate": 0.25}, "seed": 7}
  folders = [
    store(tmp_path / name, make_history(), config)
    for name, config in (("slow", slow), ("fast", fast), ("again", slow))
  ]
  found = compared(*folders)
  key = "optimiser.learning_rate"
  differing = [row["differing"] for row in found.rows]
  assert differing == [{key: 0.5}, {key: 0.25}, {key: 0.5}]
  page, text = shown(found)
  assert [key, "0.5", "0.25", "0.5"] in [line.split() for line in text.splitlines()]
  assert f"{key} 0.5 0.25 0.5" in Reader(page).text
  assert f"differing.{key}" in compare_files.to_csv(found.rows).splitlines()[0]
  alike = shown(compared(*folders[::2]))
  assert all(compare_tables.ALIKE in part for part in alike)


@pytest.mark.parametrize("by", ["digest", "name", "validation"])
def test_other_data_have_neither_a_p_value_nor_a_winner(by, tmp_path):
  config, facts = make_config(), FACTS
  if by == "digest":
    facts = FACTS | {"data_digest": "another"}
  elif by == "name":
    config = make_config(data="fashion_mnist")
  else:
    config["data"]["validation"] = 10
  other = make_history()
  other.evaluations.accuracy[:] *= np.array([[0.5], [0.6]])
  found = compared(
    store(tmp_path / "a", make_history(), make_config()),
    store(tmp_path / "b", other, config, facts),
  )
  difference = found.rows[1]["difference"]
  assert difference["p"] is None is difference["low"]
  assert difference["test"] == compare.OTHER_DATA
  assert any("have no p-value" in note for note in compare.notes(found))
  page, text = shown(found)
  assert "highest average" not in page and "different data" in page
  assert "p = " not in page + text


def test_faults_are_told_in_a_sentence(runs, tmp_path, capsys):
  good, damaged, odd = runs
  empty = tmp_path / "empty"
  (damaged / "results.json").write_text('{"average')
  (odd / "results.json").write_text("[1]")
  empty.mkdir()
  foreign = tmp_path / "sweep.json"
  foreign.write_text("{}")
  lost = tmp_path / "lost"
  lost.mkdir()
  (lost / "results.json").write_bytes((good / "results.json").read_bytes())
  for arguments, sentence in (
    ([tmp_path / "nowhere"], "there is no folder"),
    ([empty], "holds no finished run (no results.json)"),
    ([good, damaged], "cannot be read as JSON"),
    ([odd], "is not the results of a run"),
    ([lost], "no evaluations/*.npz"),
    ([good, good, f"--out={tmp_path}/no/a.html"], "cannot be written (No such file"),
    ([good, good, f"--out={good}/results.html"], "is in the folder of a run"),
    ([good, f"--out={odd}/report.html"], "is in the folder of a run"),
    (
      [good, good, f"--out={foreign.with_suffix('.html')}"],
      "it is not the table of a comparison",
    ),
    ([good, f"--out={tmp_path}/a.csv"], "give it a name that ends in .html"),
  ):
    assert main(list(map(str, arguments))) == 1
    told = capsys.readouterr()
    assert sentence in told.err and told.out == ""
    assert told.err.startswith("ebmjax: ") and told.err.count("\n") == 1
