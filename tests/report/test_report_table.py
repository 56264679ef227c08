"""The closing table says what was run, what came out and how to read it."""

import pytest

from ebmjax.paper.commands import with_figure
from ebmjax.report import closing_table, summarise
from ebmjax.report.table import WIDTH
from tests.report.histories import make_config, make_history

NOTE = "is not a bug"
WARNING = "not comparable with the paper's"


def results(history, config, average: float | None = None, **facts) -> dict:
  found = with_figure(summarise(history, config, facts))
  if average is not None:
    found["average_accuracy"] = {"mean": average, "sem": 0.02, "n": 2}
  return found


def flat(text: str) -> str:
  return " ".join(text.split())


def test_contents():
  run = results(
    make_history(tasks=5, classes=10),
    make_config(),
    data_source="MNIST, 70,000 images",
    wall_time=61.25,
    steps_per_second=310.4,
  )
  text = closing_table(run)
  average = run["average_accuracy"]
  assert "ebm, finetune, contrastive; split mnist, 5 tasks, boundary-aware" in text
  assert (
    "MNIST, 70,000 images" in text
    and "61.2 s (310.4 steps/s, all seeds together)" in text
  )
  line = next(row for row in text.splitlines() if row.startswith("Average accuracy"))
  assert f"{average['mean']:.2f} +- {average['sem']:.2f} (n=2)" in line
  assert line.endswith("53.12 +- 0.04")
  for name, key in (
    ("Task-incremental", "task_incremental_accuracy"),
    ("Forgetting", "forgetting"),
    ("Backward", "backward_transfer"),
    ("Forward", "forward_transfer"),
  ):
    line = next(row for row in text.splitlines() if row.startswith(name))
    assert f" {run[key]['mean']:.2f} +- {run[key]['sem']:.2f} (n=2)" in line
  assert NOTE not in text and "WARNING" not in text


def test_the_budget_is_a_line():
  costs = {"parameters": 1234, "training_flops": 5 * 10**12, "bytes_kept": 0}
  text = closing_table(results(make_history(), make_config(), budget=costs))
  assert "Budget      parameters 1.23 k; training 5 TFLOP; kept between" in text
  assert "Budget" not in closing_table(results(make_history(), make_config()))


def test_accuracy_of_each_task_is_the_mean_over_seeds():
  run = results(make_history(tasks=12, classes=12), make_config(tasks=12))
  lines = closing_table(run).splitlines()
  shown = [row for row in lines if row.startswith("  accuracy at the end")]
  numbers = [float(word) for row in shown for word in row.split("(%)")[1].split()]
  first, second = run["accuracy_matrix"]
  means = [(a + b) / 2 for a, b in zip(first[-1], second[-1], strict=True)]
  assert numbers == pytest.approx(means, abs=0.006)


@pytest.mark.parametrize("tasks", [1, 5, 50])
def test_lines_fit_a_terminal(tasks):
  config = make_config("sbc", "online_ewc", "ce", tasks=tasks)
  source = "a long sentence on where the arrays came from " * 5
  history = make_history(tasks=tasks, classes=100, runs=10, per_task=1)
  text = closing_table(
    results(history, config, 100.0 / tasks, data_source=source, data_full=False)
  )
  assert max(len(line) for line in text.splitlines()) <= WIDTH <= 100


@pytest.mark.parametrize(
  "run, average, explained",
  [
    (("sbc", "finetune", "ce"), 19.9, True),
    (("sbc", "ewc", "ce"), 20.1, True),
    (("sbc", "lwf", "ce"), 23.9, True),
    (("sbc", "finetune", "ce"), 60.0, False),
    (("sbc", "finetune", "ce"), 10.5, False),  # it has not learned the last one either
    (("sbc", "er", "ce"), 19.9, False),
    (("sbc", "finetune", "contrastive"), 19.9, False),
    (("ebm", "finetune", "contrastive"), 19.9, False),
  ],
)
def test_low_values_are_explained_where_expected(run, average, explained):
  history = make_history(tasks=5, classes=10)
  text = flat(closing_table(results(history, make_config(*run), average)))
  assert (NOTE in text) == explained
  if explained:
    assert "100/5 = 20.0 %" in text and "the last task" in text
  config = make_config(*run)
  config["stream"]["scenario"] = "task"
  assert NOTE not in flat(closing_table(results(history, config, average)))


def test_explanation_cites_the_paper():
  history = make_history(tasks=5, classes=10)
  run = results(history, make_config("sbc", "finetune", "ce"), 19.8)
  assert "The paper reports 19.90 +- 0.02 %." in flat(closing_table(run))
  run["paper"] = None
  text = closing_table(run)
  assert NOTE in flat(text) and "The paper reports" not in text
  assert "no figure for this run" in text


def test_a_low_value_is_not_excused_by_its_average_alone():
  """Where the paper's is high, or where the first task is the best one."""
  history = make_history(tasks=5, classes=10)
  run = results(history, make_config("sbc", "ewc", "ce"), 23.2)
  assert NOTE in flat(closing_table(run))
  high = run | {"paper": {"accuracy": 84.78, "sem": 1.3}}
  assert NOTE not in flat(closing_table(high))
  for matrix in run["accuracy_matrix"]:
    matrix[-1] = [98.5, 0.0, 12.25, 4.0, 1.25]
  assert NOTE not in flat(closing_table(run))


@pytest.mark.parametrize(
  "facts, warned",
  [({"data_full": False}, True), ({"data_full": True}, False), ({}, False)],
)
def test_subset_of_the_data_warns(facts, warned):
  text = flat(closing_table(results(make_history(tasks=5), make_config(), **facts)))
  assert ("WARNING" in text) == warned and (WARNING in text) == warned


def test_undefined_numbers_are_left_out():
  text = closing_table(results(make_history(tasks=1, runs=1), make_config(tasks=1)))
  assert "Forgetting" not in text and "AUROC" not in text
  assert "(n=1)" in text and "no figure for this run" in text
  assert "None" not in text and "nan" not in text
