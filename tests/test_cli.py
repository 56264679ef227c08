"""The command line: what is wrong with it is told in one sentence, nothing else."""

import subprocess
from pathlib import Path

import jax
import pytest

from ebmjax import data, main
from ebmjax.config import loading
from ebmjax.tools import capacity
from ebmjax.tools.sweep import __main__ as sweep
from tests.command_lines import FAULTS, SMOKE
from tests.helpers import (
  command,
  environment,
  overrides,
  write_idx,
)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
  return write_idx(tmp_path / "data")


def sentence_of(stderr: str) -> str:
  """Returns what follows `ebmjax: ` in the only line, asserted to be a sentence."""
  (line,) = stderr.splitlines()
  assert line.startswith("ebmjax: ")
  assert line.endswith(".")
  return line.removeprefix("ebmjax: ")


@pytest.mark.parametrize("error", [RuntimeError("no backend 'foo'"), AssertionError()])
def test_a_platform_that_is_not_there_is_told(error, monkeypatch, capsys):
  def none() -> None:
    raise error

  monkeypatch.setattr(jax, "devices", none)
  monkeypatch.setenv("JAX_PLATFORMS", "foo")
  for name, entry, arguments in (
    ("ebmjax", main.main, [SMOKE]),
    ("sweep", sweep.main, [SMOKE, "--grid=config.network.hidden=8,9"]),
    ("capacity", capacity.main, []),
  ):
    assert entry(arguments) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{name}: JAX finds no device with JAX_PLATFORMS='foo'; ")


@pytest.mark.parametrize(("arguments", "parts"), FAULTS.values(), ids=FAULTS.keys())
def test_fault_is_told_in_one_sentence(
  arguments, parts, tmp_path: Path, capsys, monkeypatch
):
  """Before any data are read, and with the workdir untouched."""
  monkeypatch.setattr(data, "load", None)
  workdir = tmp_path / "run"
  usage = any(not word.startswith(("--config", "--flagfile")) for word in arguments)
  code = main.main([*arguments, f"--workdir={workdir}"])
  assert code == (2 if usage else 1)
  printed = capsys.readouterr()
  sentence = sentence_of(printed.err)
  for part in parts:
    assert part in sentence
  assert printed.out == ""
  assert not workdir.exists()


def test_the_workdir_may_be_in_one_s_home(tmp_path: Path, monkeypatch, capsys):
  monkeypatch.setenv("HOME", str(tmp_path))
  assert loading.parse(["ebmjax", SMOKE, "--workdir=~/x"])[1] == tmp_path / "x"
  assert main.main([SMOKE, "--workdir=~nobody_here/x"]) == 1
  sentence = sentence_of(capsys.readouterr().err)
  assert (
    sentence == "~nobody_here/x is in the home of an unknown user; give another path."
  )


MISTYPED = """
from ebmjax.config import default

def get_config(variants=None):
  config = default()
  config.stream.iterationz = 3
  return config
"""
INCOMPLETE = """
from ml_collections import ConfigDict

def get_config(variants=None):
  return ConfigDict({"seed": 0})
"""


@pytest.mark.parametrize(
  ("content", "problem"),
  [
    ("def get_config(:", "is not valid Python"),
    ("x = 1", "has no function get_config(variants)"),
    ("import no_such_module", "no_such_module"),
    ("def get_config(variants=None):\n  return missing", "missing"),
    ("def get_config(variants=None):\n  pass", "returns NoneType, not a ConfigDict"),
    (MISTYPED, "'iterationz' is not a key here; did you mean 'iterations'?"),
    (INCOMPLETE, "is missing in"),
  ],
)
def test_broken_configuration_file(content, problem, tmp_path: Path, capsys):
  path = tmp_path / "mine.py"
  path.write_text(content)
  assert main.main([f"--config={path}"]) == 1
  sentence = sentence_of(capsys.readouterr().err)
  assert str(path) in sentence
  assert problem in sentence


@pytest.mark.parametrize("key", ["network.hidden", "data.mean", "objective"])
def test_none_is_no_value(key, tmp_path: Path, capsys):
  path = tmp_path / "mine.py"
  path.write_text(MISTYPED.replace("stream.iterationz = 3", f"{key} = None"))
  assert main.main([f"--config={path}"]) == 1
  sentence = sentence_of(capsys.readouterr().err)
  assert sentence == f"config.{key}=None is not a value; leave it out for its default."


# Faults that only the data reveal: (overrides, parts of the sentence).
DATA_FAULTS = {
  "more tasks than classes": (
    ["--config.stream.tasks=11"],
    "config.stream.tasks=11 exceeds the data set's 10 classes; choose at most 10.",
  ),
  "one class a task": (
    ["--config.stream.tasks=10"],
    "config.stream.tasks=10 leaves one class in a task, which "
    "config.method.name='finetune' with config.negatives='one_of_task' cannot "
    "compare with another; use fewer tasks.",
  ),
  "batch larger than a task": (
    ["--config.stream.tasks=5", "--config.stream.batch_size=121"],
    "config.stream.batch_size=121 exceeds the smallest task's 120 images; choose at "
    "most 120.",
  ),
}


@pytest.mark.parametrize(
  ("given", "told"), DATA_FAULTS.values(), ids=DATA_FAULTS.keys()
)
def test_fault_that_the_data_reveal(given, told, data_dir, tmp_path: Path, capsys):
  """The workdir stays free for the corrected command."""
  workdir = tmp_path / "run"
  arguments = [SMOKE, *overrides(data_dir), f"--workdir={workdir}"]
  assert main.main(arguments + given) == 1
  assert sentence_of(capsys.readouterr().err) == told
  assert not (workdir / "config.json").exists()


def test_missing_data_dir(tmp_path: Path, capsys):
  missing = tmp_path / "missing"
  arguments = [SMOKE, *overrides(missing), f"--workdir={tmp_path / 'run'}"]
  assert main.main(arguments) == 1
  sentence = sentence_of(capsys.readouterr().err)
  assert f"{missing} is not a folder: correct config.data.dir." in sentence


def test_truncated_data_file(data_dir, tmp_path: Path, capsys):
  path = data_dir / "train-images-idx3-ubyte"
  path.write_bytes(path.read_bytes()[:-1])
  arguments = [SMOKE, *overrides(data_dir), f"--workdir={tmp_path / 'run'}"]
  assert main.main(arguments) == 1
  sentence = sentence_of(capsys.readouterr().err)
  assert f"{path} is truncated" in sentence
  assert "announces 470400 bytes of data and holds 470399" in sentence


def test_help_of_a_missing_file_is_a_fault(capsys):
  assert main.main(["--config=nowhere.py", "--help"]) == 1
  assert "nowhere.py" in sentence_of(capsys.readouterr().err)


def test_interrupt_says_how_to_go_on(monkeypatch, tmp_path: Path, capsys):
  from ebmjax import experiment

  def interrupted(config, workdir, command):
    raise KeyboardInterrupt

  monkeypatch.setattr(experiment, "run", interrupted)
  assert main.main([SMOKE, f"--workdir={tmp_path / 'run'}"]) == 130
  sentence = sentence_of(capsys.readouterr().err)
  assert sentence == "interrupted; the same command continues from the last checkpoint."


@pytest.mark.parametrize(
  ("arguments", "code"),
  [
    (["--help"], 0),
    (
      [
        SMOKE,
        "--config.stream.setting=boundary_free",
        "--config.negatives=one_of_task",
      ],
      1,
    ),
  ],
)
def test_exit_code_of_the_process(arguments, code, tmp_path: Path):
  """By the real command, with JAX and TFDS freshly imported."""
  done = subprocess.run(
    command(*arguments),
    env=environment(tmp_path / "cache"),
    cwd=tmp_path,
    capture_output=True,
    text=True,
    timeout=600,
  )
  assert done.returncode == code
  if code:
    assert "needs task boundaries" in sentence_of(done.stderr)
    assert done.stdout == ""
  else:
    assert done.stderr == ""
