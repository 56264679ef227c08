"""Several runs side by side: the table, the tests over seeds, the warnings."""

import csv
import json
import re

import numpy as np
import pytest

from ebmjax.report import compare, compare_page, plots, significance, stored
from ebmjax.report.__main__ import main
from ebmjax.report.charts import Dots, dot_chart
from tests.report.pages import FACTS, Reader, store


@pytest.fixture(autouse=True)
def no_plots(monkeypatch) -> None:
  monkeypatch.setattr(plots, "draw", lambda history, scalars: {})


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
  assert significance.told(3e-5) == "p < 0.0001"
  assert significance.told(0.04931) == "p = 0.0493"


def test_the_command_compares_runs(runs, tmp_path, capsys):
  out = tmp_path / "both.html"
  assert main([*map(str, runs), f"--out={out}"]) == 0
  printed = capsys.readouterr().out
  means = [stored.read(run).results["average_accuracy"]["mean"] for run in runs]
  assert "ebm  finetune  ebm      split MNIST  boundary-aware" in printed
  assert f"sbc less ebm: {means[1] - means[0]:+.2f} points, 95 % conf" in printed
  assert "(paired t-test, 3 seeds)." in printed
  assert f"one less ebm: {means[2] - means[0]:+.2f} points (one seed: no te" in printed
  assert "not corrected for their number" not in printed  # there is one p-value
  assert "Not like for like" not in printed
  widths = {len(line) for line in printed.splitlines() if line.startswith("---")}
  assert len(widths) == 1
  content = json.loads((tmp_path / "both.json").read_text())
  assert [row["name"] for row in content["runs"]] == ["ebm", "sbc", "one"]
  with (tmp_path / "both.csv").open(newline="") as file:
    rows = list(csv.DictReader(file))
  assert float(rows[1]["average_accuracy_mean"]) == means[1]
  assert float(rows[1]["difference_mean"]) == pytest.approx(means[1] - means[0])
  assert float(rows[1]["difference_p"]) == content["runs"][1]["difference"]["p"]
  assert rows[0]["difference_p"] == rows[2]["difference_p"] == ""
  reader = Reader(out.read_text("utf-8"))
  assert reader.faults == []
  assert reader.tags["svg"] == 2
  for part in ("3 runs compared", "53.12 ± 0.04", "paired t-test, 3 seeds", "95 %"):
    assert part in reader.text


def test_runs_are_told_apart_without_colours(runs):
  found = [stored.read(run) for run in [*runs, runs[0]]]
  rows = compare.rows(found)
  made = compare_page.render(found, rows, [])
  for number, row in enumerate(rows, start=1):
    assert made.count(f"<span>{number}: {row['name']}</span>") == 2  # a key a figure
  curves, dots = re.findall(r"<svg.*?</svg>", made, re.DOTALL)
  for shown in ("1", "2", "3", "4"):
    assert curves.count(f">{shown}</text>") == 1
    assert dots.count(f">{shown}</text>") == 5 + 1  # a dot a task, and the task's name


def test_dots_without_room_for_their_numbers_are_threaded():
  series = [
    Dots(np.linspace(90, 10, 50) + run, None, "red", str(run)) for run in (1, 2)
  ]
  series[0].y[7] = np.nan
  made = dot_chart(series, alt="a", y_title="b")
  threads = re.findall(r'class="thread" points="([^"]+)"', made)
  assert [len(points.split()) for points in threads] == [49, 50]
  ends = re.findall(r'<text x="463"[^>]*>(.*?)</text>', made)
  assert ends == ["1", "2"]


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
    "Not like for like: the runs differ in their kind of tasks (split, permuted).",
    "Not like for like: the runs differ in their number of tasks (5, 3).",
    "Not like for like: the runs differ in their setting (boundary_aware, "
    "boundary_free).",
    "Not like for like: the runs differ in their scenario (class, domain).",
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
  assert notes == ["Not like for like: the images of the runs are not the same."]


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
    "Not like for like: the runs differ in their images of a class held out to be "
    "scored on (0, 500).",
    "Not like for like: the runs differ in their number of tasks (5, 4).",
    "Not like for like: the runs start from different pre-trained weights.",
  ]


def test_p_values_are_many_from_the_second_on(runs):
  rows = compare.rows([stored.read(run) for run in (*runs, runs[1])])
  assert compare.several_tests(rows) and not compare.several_tests(rows[:3])
  assert compare.MANY in compare.text(rows, []).replace("\n", " ")


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
