"""Several runs side by side: the table, the tests over seeds, the warnings."""

import csv
import json

import numpy as np
import pytest

from ebmjax.report import (
  compare,
  compare_files,
  compare_page,
  compare_plots,
  significance,
  stored,
)
from ebmjax.tools.report import main
from tests.report.pages import FACTS, Reader, store

pytestmark = pytest.mark.usefixtures("no_plots")


@pytest.fixture
def runs(tmp_path, make_history, make_config):
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
  assert "network.name=sbc, objective=ce" in printed
  assert f"sbc minus ebm: {means[1] - means[0]:+.2f} points, 95 % conf" in printed
  assert "(paired t-test, 3 seeds)." in printed
  assert f"one minus ebm: {means[2] - means[0]:+.2f} points (one seed: no te" in printed
  assert "holm" not in printed  # there is one p-value
  cells = [line.split() for line in printed.splitlines()]
  assert ["Training", *["1.69", "TFLOP"] * 3] in cells
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


def test_runs_are_told_apart_without_colours(runs):
  found = [stored.read(run) for run in [*runs, runs[0]]]
  rows = compare.rows(found)
  charts = compare_plots.draw(found, rows)
  lines = charts["curves"].figure.axes[0].get_lines()
  assert len({line.get_marker() for line in lines}) == 4
  made = compare_page.render(found, rows, [])
  for number, row in enumerate(rows, start=1):
    assert made.count(f">{number}: {row['name']}</text>") == 2  # a legend per chart


def test_the_curves_are_means_over_the_tasks_so_far(runs):
  found = [stored.read(run) for run in runs]
  charts = compare_plots.draw(found, compare.rows(found))
  line = charts["curves"].figure.axes[0].get_lines()[1]
  accuracy = found[1].history.evaluations.accuracy[1:]
  wanted = 100 * np.nanmean(accuracy, axis=-1).mean(axis=1)
  np.testing.assert_allclose(np.asarray(line.get_ydata(), float), wanted)


def test_runs_that_are_not_like_for_like(tmp_path, make_history, make_config):
  evil = "<script>x</script>"
  facts = FACTS | {"data_full": False}
  free = make_config(setting="boundary_free", scenario="domain")
  other = make_config(stream="permuted", tasks=3)
  paths = [
    store(tmp_path / evil.replace("/", "") / "run", make_history(), make_config()),
    store(tmp_path / "b" / "run", make_history(), free, facts),
    store(tmp_path / "c", make_history(tasks=2), other),
  ]
  runs = [stored.read(path) for path in paths]
  names = compare.names([*runs, runs[2]])
  assert names == ["<script>x<script>/run", "b/run", "c (1)", "c (2)"]
  notes = compare.warnings(runs)
  assert notes == [
    "Not directly comparable: the runs differ in stream.name (split, permuted).",
    "Not directly comparable: the runs differ in stream.scenario (class, domain).",
    "Not directly comparable: the runs differ in stream.setting (boundary_aware, "
    "boundary_free).",
    "Not directly comparable: the runs differ in stream.tasks (5, 3).",
    "Not the full data set: b/run; not comparable with the paper's.",
  ]
  rows = compare.rows(runs)
  reader = Reader(compare_page.render(runs, rows, notes))
  assert reader.faults == []
  assert all(note in reader.text for note in notes)
  assert "<script>x<script>/run" in reader.text


def test_other_images_are_told(tmp_path, make_history, make_config):
  facts = FACTS | {"data_digest": "another"}
  paths = [
    store(tmp_path / "a", make_history(), make_config()),
    store(tmp_path / "b", make_history(), make_config(), facts),
  ]
  notes = compare.warnings([stored.read(path) for path in paths])
  assert notes[0] == "Not directly comparable: the images of the runs are not the same."


def test_what_the_runs_are_scored_on_and_start_from_is_told(
  tmp_path, make_history, make_config
):
  held_out = make_config(tasks=4)
  held_out["data"]["validation"] = 500
  facts = FACTS | {"data_digest": "another", "weights_digest": "a"}
  paths = [
    store(tmp_path / "a", make_history(), make_config(), facts),
    store(tmp_path / "b", make_history(), held_out, FACTS | {"weights_digest": "b"}),
    store(tmp_path / "c", make_history(), make_config()),  # its weights are not known
  ]
  assert compare.warnings([stored.read(path) for path in paths]) == [
    "Not directly comparable: the runs differ in data.validation (0, 500).",
    "Not directly comparable: the runs differ in stream.tasks (5, 4).",
    "Not directly comparable: the images of the runs are not the same.",
    "Not directly comparable: the runs start from different pre-trained weights.",
    compare.NOT_RANKED,
  ]


def test_holm_s_correction():
  # By hand: 3 * 0.01, then 2 * 0.03, and 0.04 not below the one before it.
  assert significance.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
  assert significance.holm([0.6, 0.9]) == [1.0, 1.0]
  assert significance.holm([]) == []


def test_several_p_values_are_corrected(runs):
  found = [stored.read(run) for run in (*runs, runs[1])]
  rows = compare.rows(found)
  ps = [row["difference"]["p"] for row in (rows[1], rows[3])]
  corrected = [row["difference"]["p_holm"] for row in (rows[1], rows[3])]
  assert ps[0] == ps[1] and corrected == pytest.approx([2 * p for p in ps])
  assert compare.several_tests(rows) and not compare.several_tests(rows[:3])
  text = compare_files.text(found, rows, [])
  said = significance.p_text(corrected[0])
  assert text.count(f"(holm {said})") == 2 and compare_files.HOLM in text
  assert f"(holm {said})" in compare_page.render(found, rows, [])


def test_the_keys_in_which_runs_differ_are_listed(tmp_path, make_history, make_config):
  """Two runs of the same method are told apart; seeds and places do not count."""
  slow, fast = make_config(), make_config()
  slow |= {"optimiser": {"learning_rate": 0.5}, "seed": 0}
  fast |= {"optimiser": {"learning_rate": 0.25}, "seed": 7}
  found = [
    stored.read(store(tmp_path / name, make_history(), config))
    for name, config in (("slow", slow), ("fast", fast), ("again", slow))
  ]
  rows = compare.rows(found)
  key = "optimiser.learning_rate"
  assert [row["differing"] for row in rows] == [{key: 0.5}, {key: 0.25}, {key: 0.5}]
  text = compare_files.text(found, rows, [])
  lines = {line.split()[0]: line for line in reversed(text.splitlines())}
  assert lines["slow"].endswith(f"{key}=0.5") and lines["again"].endswith(f"{key}=0.5")
  assert lines["fast"].endswith(f"{key}=0.25")
  page = Reader(compare_page.render(found, rows, []))
  assert f"{key} 0.5 0.25 0.5" in page.text
  assert f"differing.{key}" in compare_files.to_csv(rows).splitlines()[0]
  alike = [found[0], found[2]]
  page = Reader(compare_page.render(alike, compare.rows(alike), []))
  assert "differ in no configuration key" in page.text


@pytest.mark.parametrize("by", ["digest", "name", "validation"])
def test_other_data_have_neither_a_p_value_nor_a_winner(
  by, tmp_path, make_history, make_config
):
  config, facts = make_config(), FACTS
  if by == "digest":
    facts = FACTS | {"data_digest": "another"}
  elif by == "name":
    config = make_config(data="fashion_mnist")
  else:
    config["data"]["validation"] = 10
  other = make_history()
  other.evaluations.accuracy[:] *= np.array([[0.5], [0.6]])
  found = [
    stored.read(store(tmp_path / "a", make_history(), make_config())),
    stored.read(store(tmp_path / "b", other, config, facts)),
  ]
  rows, notes = compare.rows(found), compare.warnings(found)
  assert rows[1]["difference"]["p"] is None is rows[1]["difference"]["low"]
  assert rows[1]["difference"]["test"] == compare.OTHER_DATA
  assert any("have no p-value" in note for note in notes)
  page = Reader(compare_page.render(found, rows, notes)).text
  assert "highest average" not in page and "different data" in page
  assert "p = " not in page + compare_files.text(found, rows, notes)


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
    ([good, good, f"--out={good}/results.html"], "lies in the folder of another run"),
    ([good, f"--out={odd}/report.html"], "lies in the folder of another run"),
    ([good, good, f"--out={foreign.with_suffix('.html')}"], "no comparison's table"),
    ([good, f"--out={tmp_path}/a.csv"], "give it a name that ends in .html"),
  ):
    assert main(list(map(str, arguments))) == 1
    told = capsys.readouterr()
    assert sentence in told.err and told.out == ""
    assert told.err.startswith("ebmjax: ") and told.err.count("\n") == 1


def test_help_helps(capsys):
  with pytest.raises(SystemExit) as ended:
    main(["--help"])
  assert ended.value.code == 0
  text = capsys.readouterr().out
  for part in ("RUN", "--out FILE", "confidence interval", "examples:", "runs/splitm"):
    assert part in text
