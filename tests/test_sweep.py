"""Sweeps, made small: their runs, their best and their faults."""

import contextlib
import csv
import fcntl
import io
import json
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from jax.errors import JaxRuntimeError

from ebmjax import data
from ebmjax.config import loading
from ebmjax.config.validation import resolve
from ebmjax.errors import UserError
from ebmjax.report import plots
from ebmjax.tools.sweep import __main__ as sweep
from ebmjax.tools.sweep import running, tables
from tests.helpers import SPLIT, overrides, read_results, write_idx
from tests.test_sweep_settings import CHOSEN, GOOD, POOR, RATE, STRENGTH, make

# Too large for 32 bits: the pull to the weights of the first task is not a number.
HOPELESS = f"config.{RATE}=1e-2 config.{STRENGTH}=1e39"

pytestmark = [
  pytest.mark.filterwarnings("ignore:overflow encountered in cast"),  # HOPELESS
]


class Done(NamedTuple):
  """A sweep of three settings, one of them hopeless, after it was run."""

  folder: Path
  arguments: list[str]
  code: int
  out: str
  loads: int


@pytest.fixture(scope="module")
def patched():
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(plots, "draw", lambda history, scalars: {})
    yield patch


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory) -> Path:
  return write_idx(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def done(patched, data_dir: Path, tmp_path_factory) -> Done:
  folder = tmp_path_factory.mktemp("sweep") / "out"
  arguments = [f"--config={CHOSEN}", f"--out={folder}", *overrides(data_dir)]
  arguments += ["--seeds=2"]
  loaded, load = [], data.load

  def watched(config: Any) -> Any:
    loaded.append(config.validation)
    return load(config)

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(data, "load", watched)
    code, out = run(arguments, POOR, GOOD, HOPELESS)
  return Done(folder, arguments, code, out, len(loaded))


def run(arguments: list[str], *points: str, more: tuple[str, ...] = ()):
  """Returns the exit code and what was printed."""
  lists = [word for point in points for word in ("--list", point)]
  out = io.StringIO()
  with contextlib.redirect_stdout(out):
    code = sweep.main([*arguments, *lists, *more])
  return code, out.getvalue()


NO_TASK_ENDS = "--config.eval.at_task_ends=False"
FAULTS: dict[str, tuple[list[str], str]] = {
  "nothing to sweep": ([], "there is nothing to sweep; give --grid"),
  "unknown key": (["--grid", "config.method.strenght=1"], "method.strength?"),
  "wrong type": (["--grid", "config.network.hidden=8,many"], "many"),
  "wrong combination": (
    ["--list", "config.stream.setting=joint"],
    "needs task boundaries",
  ),
  "no sign": (["--grid", f"config.{STRENGTH}"], "not of the form config.KEY=VALUE."),
  "a value left out": (["--grid", f"config.{STRENGTH}=1,,2"], "has an empty value"),
  "a value twice": (
    ["--grid", f"config.{STRENGTH}=1,1.0"],
    "two settings are the same run, strength=1 and strength=1; give it once.",
  ),
  "a key in two grids": (
    ["--grid", f"config.{STRENGTH}=1", "--grid", f"config.{STRENGTH}=2"],
    "config.method.strength is swept twice",
  ),
  "a key twice in a setting": (
    ["--list", f"config.{STRENGTH}=1 config.{STRENGTH}=2"],
    "sets a key twice",
  ),
  "a list that is no file": (["--list", "none.txt"], "neither a file"),
  "seeds as a setting": (["--grid", "config.seeds=1,2"], "use --seeds."),
  "the validation images as a setting": (
    ["--grid", "config.data.validation=1,2"],
    "use --validation.",
  ),
  "validation by its key": (
    ["--grid", f"config.{STRENGTH}=1", "--config.data.validation=3"],
    "use --validation.",
  ),
  "a range without an end": (
    ["--random=3", "--range", f"config.{STRENGTH}=1"],
    "not of the form config.KEY=LOW:HIGH",
  ),
  "ranges of no random settings": (
    ["--range", f"config.{STRENGTH}=1:2", "--grid", f"config.{RATE}=1e-3"],
    "--random=0 draws from each --range once; give 1 or more",
  ),
  "no random settings": (
    ["--random=0", "--grid", f"config.{RATE}=1e-3"],
    "--random=0 draws from each --range once; give 1 or more",
  ),
  "nothing to draw from": (["--random=3"], "draws from each --range once"),
  "no end of the first task": (
    [f"--grid=config.{STRENGTH}=1", "--select=first_task", NO_TASK_ENDS],
    "set config.eval.at_task_ends=True",
  ),
  "chosen on test": (
    ["--grid", f"config.{STRENGTH}=1", "--validation=0"],
    "--validation=0 holds out no image, so the best setting would be chosen by the",
  ),
  "too many held out": (
    ["--grid", f"config.{STRENGTH}=1", "--validation=60"],
    "has only 60 training images",
  ),
  "learned by heart": (
    ["--grid", f"config.{STRENGTH}=1", "--config.data.memorise=True"],
    "config.data.memorise=True scores on the training images",
  ),
  "no seeds": (["--grid", f"config.{STRENGTH}=1", "--seeds=0"], "is too small"),
  "no seeds to test": (
    ["--grid", f"config.{STRENGTH}=1", "--test", "--test-seeds=0"],
    "config.seeds=0 is too small",
  ),
  "unknown flag": (["--gird", "x"], "'--gird' is not known"),
  "not a number": (["--seeds=two"], "--seeds"),
}
USAGE = ("'--gird' is not known", "--seeds")  # faults of the command line itself


@pytest.mark.parametrize(("arguments", "told"), FAULTS.values(), ids=FAULTS.keys())
def test_fault_is_told_in_one_sentence(
  arguments, told, data_dir: Path, tmp_path: Path, capsys
):
  """Before the first run: a mistake at the end of the list would cost hours."""
  out = tmp_path / "out"
  flags = [f"--config={CHOSEN}", f"--out={out}", *overrides(data_dir)]
  code = sweep.main([*flags, *arguments])
  (line,) = capsys.readouterr().err.splitlines()
  assert line.startswith("sweep: ") and line.endswith(".")
  assert code == (2 if told in USAGE else 1)
  assert told in line
  assert not out.exists()


def test_no_experiment_is_named(capsys):
  assert sweep.main(["--grid", f"config.{STRENGTH}=1"]) == 1
  assert "no experiment is named" in capsys.readouterr().err


def row(name: str, mean: float, status: str = "finished") -> tables.Row:
  values: dict[str, Any] = {"method.strength": float(name)}
  start = {"values": values, "workdir": name, "status": status, "reason": "why"}
  if status != "finished":
    return start
  return start | {"mean": mean, "sem": None, "n": 1, "per_seed": [mean], "seconds": 1.0}


def test_the_best_is_the_first_of_the_highest_that_finished():
  rows = [row("1", 10), row("2", 30), row("3", 30), row("4", 99, "failed")]
  assert tables.best_of(rows) is rows[1]
  assert tables.best_of(rows[3:]) is None
  header, *lines = tables.cells(rows)
  assert header == ("strength", "validation accuracy (%)", "seconds", "")
  assert [line[0] for line in lines] == ["2", "3", "1", "4"]
  assert lines[0] == ("2", "30.00 (n=1)", "1.0", "best")
  assert lines[3] == ("4", "failed", "", "")


def test_an_error_without_a_message_has_a_row():
  setting = make(f"config.{STRENGTH}=1")[0]
  made = running._row(setting, JaxRuntimeError(""), "whole_stream")
  assert (made["status"], made["reason"]) == ("failed", "JaxRuntimeError")


def test_no_best_is_named_where_a_setting_failed_for_another_reason():
  """A damaged checkpoint says nothing of how good the setting is; a divergence does."""
  assert sweep._best([row("1", 10), row("2", 99, "diverged")])["workdir"] == "1"
  with pytest.raises(UserError, match=r"1 of 2 settings failed.*the best is not known"):
    sweep._best([row("1", 10), row("2", 99, "failed")])


def read_sweep(folder: Path) -> dict[str, Any]:
  found: dict[str, Any] = json.loads((folder / "sweep.json").read_text())
  return found


def test_a_sweep_tells_the_best_and_why_a_setting_failed(done: Done):
  assert done.code == 0
  assert "6 training images of each class are held out" in done.out
  assert "a tenth of the smallest class" in done.out
  found = read_sweep(done.folder)
  poor, good, hopeless = found["settings"]
  assert [setting["status"] for setting in found["settings"]] == [
    "finished",
    "finished",
    "diverged",
  ]
  assert good["mean"] > poor["mean"]
  assert found["best"] == good["workdir"] == "strength=1,learning_rate=0.01"
  assert hopeless["reason"].startswith("the loss of ewc with seed 0 is not finite")
  assert "3 of 3: learning_rate=0.01, strength=1e+39: diverged: the loss" in done.out
  assert "Best by validation: learning_rate=0.01, strength=1: " in done.out
  assert found["test"] is None
  assert not (done.folder / "best-test").exists()
  assert done.loads == 2  # for the default of --validation, then for all settings


def test_the_scores_are_those_of_validation_images(done: Done):
  for setting in read_sweep(done.folder)["settings"][:2]:
    results = read_results(done.folder / setting["workdir"])
    assert results["facts"]["evaluated_on"] == "validation"
    assert results["config"]["data"]["validation"] == 6
    average = results["average_accuracy"]
    assert {key: setting[key] for key in average} == average
    assert average["n"] == 2
    assert setting["per_seed"] == results["per_seed"]
    assert setting["seconds"] == results["facts"]["wall_time"]
  with (done.folder / "sweep.csv").open() as file:
    rows = list(csv.DictReader(file))
  assert [float(row[RATE]) for row in rows] == [1e-4, 1e-2, 1e-2]
  assert [row["best"] for row in rows] == ["", "best", ""]
  assert [row["mean"] for row in rows[:2]] == [
    str(setting["mean"]) for setting in read_sweep(done.folder)["settings"][:2]
  ]
  assert rows[2]["mean"] == "" and rows[2]["status"] == "diverged"


def test_settings_that_differ_in_numbers_share_a_program(done: Done, tmp_path: Path):
  """Those of the sweep were trained together; in a new folder they would be again."""
  numbers = make(f"config.{STRENGTH}=1,2", f"config.{RATE}=1e-3,1e-2")
  assert running.groups(numbers, tmp_path) == [[0, 1, 2, 3]]
  assert running.groups(numbers, tmp_path, at_once=3) == [[0, 1, 2], [3]]
  sizes = make(f"config.{STRENGTH}=1,2", "config.network.hidden=4,5")
  assert running.groups(sizes, tmp_path) == [[0, 2], [1, 3]]
  poor, good = make(lists=(POOR, GOOD))
  assert running.groups([poor, good], done.folder) == [[0], [1]]  # finished


def test_the_page_has_a_table_and_pictures(done: Done):
  page = (done.folder / "sweep.html").read_text()
  assert "learning_rate=0.01, strength=1" in page
  assert page.count("<svg") == 3  # over each key, and over both
  assert "strength=1e+39: diverged: the loss of ewc" in page


def test_the_first_task_or_another_experiment_may_choose(done: Done):
  """Nothing is trained again: all is in the results."""
  before = files_of(done.folder / "strength=1,learning_rate=0.01")
  other = f"{SPLIT}:smoke,sbc,ewc,contrastive"
  arguments = [f"--config={other}", f"--choose-on={CHOSEN}", *done.arguments[1:]]
  code, out = run(arguments, POOR, GOOD, more=("--select=first_task",))
  assert code == 0
  assert files_of(done.folder / "strength=1,learning_rate=0.01") == before
  found = read_sweep(done.folder)
  assert (found["selected_by"], found["chosen_on"]) == ("first_task", CHOSEN)
  for setting in found["settings"]:
    results = read_results(done.folder / setting["workdir"])
    each = [matrix[0][0] for matrix in results["accuracy_matrix"]]
    assert setting["per_seed"] == each
    assert setting["mean"] == pytest.approx(sum(each) / len(each))
  (line,) = [line for line in out.splitlines() if "ebmjax.main" in line]
  assert f"--config={other}" in shlex.split(line)


def files_of(folder: Path) -> dict[Path, int]:
  return {
    path: path.stat().st_mtime_ns
    for path in folder.rglob("*")
    if path.is_file() and path.name != ".lock"
  }


def test_given_again_with_a_test_only_the_best_is_run(done: Done):
  settings = read_sweep(done.folder)["settings"]
  names = [each["workdir"] for each in settings if each["status"] == "finished"]
  before = {name: files_of(done.folder / name) for name in names}
  code, out = run(done.arguments, POOR, GOOD, more=("--test", "--test-seeds=1"))
  assert code == 0
  assert {name: files_of(done.folder / name) for name in before} == before
  results = read_results(done.folder / "best-test")
  assert results["facts"]["evaluated_on"] == "test"
  assert results["config"]["data"]["validation"] == 0
  assert results["config"]["optimiser"]["learning_rate"] == 1e-2
  test = read_sweep(done.folder)["test"]
  assert test["workdir"] == "best-test"
  assert (test["mean"], test["n"]) == (results["average_accuracy"]["mean"], 1)
  assert f"On the test images: {test['mean']:.2f} (n=1) %\n" in out
  # The command that is printed is that very run.
  (line,) = [line for line in out.splitlines() if "ebmjax.main" in line]
  config, workdir = loading.parse(shlex.split(line)[2:])
  assert workdir == done.folder / "best-test"
  assert json.loads(json.dumps(resolve(config).to_dict())) == results["config"]


def test_a_setting_that_is_being_run_is_passed_over(done: Done, capsys):
  lock = done.folder / "strength=1,learning_rate=0.0001" / ".lock"
  with lock.open("w") as held:
    fcntl.flock(held, fcntl.LOCK_EX)
    code, out = run(done.arguments, POOR, GOOD, more=("--test",))
  assert code == 1
  assert "1 of 2: learning_rate=0.0001, strength=1: passed over" in out
  assert "2 of 2: learning_rate=0.01, strength=1: " in out
  told = capsys.readouterr().err
  assert (
    "1 of 2 settings are being run by another process, so the best is not known" in told
  )


def test_another_sweep_s_folder_is_refused(done: Done, capsys):
  """Before the table of the first is written over."""
  before = files_of(done.folder)
  code, _ = run([*done.arguments, "--validation=5"], GOOD)
  assert code == 1
  assert capsys.readouterr().err == (
    f"sweep: {done.folder}/strength=1,learning_rate=0.01 holds a run with "
    "config.data.validation=6, not 5; give the same configuration to continue it, or "
    "another --out.\n"
  )
  assert files_of(done.folder) == before


def test_no_setting_has_finished(done: Done, capsys):
  code, out = run(done.arguments, HOPELESS)
  assert code == 1
  assert "1 of 1: " in out and "diverged" in out
  assert "no setting has finished" in capsys.readouterr().err
