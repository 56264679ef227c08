"""One command with verbs: each is found, and what is not a verb is refused."""

import importlib
import resource
import subprocess
import sys
import tomllib

import pytest

from ebmjax.__main__ import VERBS, cli, main
from ebmjax.errors import BusyError, UsageError, UserError
from tests.helpers import ROOT, SPLIT

# Ends with an error if one of them was imported on the way.
HELP = """
import sys
from ebmjax.__main__ import main
code = main({arguments})
late = {{"jax", "numpy", "matplotlib", "ml_collections"}} & set(sys.modules)
sys.exit(code or (f"imported: {{late}}" if late else 0))
"""


def test_help_lists_the_verbs_without_waiting_for_jax():
  script = HELP.format(arguments=["--help"])
  before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
  done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
  assert (done.returncode, done.stderr) == (0, "")
  assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 1  # seconds
  lines = [line.split() for line in done.stdout.splitlines()]
  assert [words[0] for words in lines if words and words[0] in VERBS] == list(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_has_help(verb, capsys):
  """Where a parser prints it, it ends by SystemExit(0), as argparse does."""
  try:
    code = main([verb, "--help"])
  except SystemExit as end:
    code = int(end.code or 0)
  assert code == 0
  assert "usage:" in capsys.readouterr().out or verb == "run"
  assert callable(importlib.import_module(VERBS[verb][0]).main)


@pytest.mark.parametrize("verb", [[], ["run"]])
def test_flags_without_a_verb_are_those_of_run(verb, capsys):
  assert main([*verb, f"--config={SPLIT}", "--help"]) == 0
  assert f"Keys of {SPLIT}:" in capsys.readouterr().out


@pytest.mark.parametrize(
  ("verb", "sentence"),
  [
    ("repord", "there is no verb 'repord'; did you mean 'report'? See ebmjax --help."),
    ("xyz", "there is no verb 'xyz'; see ebmjax --help."),
  ],
)
def test_an_unknown_verb_names_the_nearest(verb, sentence, capsys):
  assert main([verb, "--out=x"]) == 2
  assert capsys.readouterr().err == f"ebmjax: {sentence}\n"


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "run"])
def test_an_unknown_flag_is_a_fault_of_usage(verb, capsys):
  words = (
    ["x", "y.npz"]
    if verb in ("export", "predict")
    else ["x"]
    if verb == "report"
    else []
  )
  assert main([verb, *words, "--no_such_flag=1"]) == 2
  (line,) = capsys.readouterr().err.splitlines()
  assert "--no_such_flag=1" in line and line.endswith("see --help.")


def test_exit_codes_tell_faults_apart():
  assert (UserError.exit_code, UsageError.exit_code, BusyError.exit_code) == (1, 2, 75)


def test_the_script_finds_modules_of_the_current_folder(monkeypatch, tmp_path, capsys):
  (tmp_path / "lying_here.py").write_text("SPEC = 1\n")
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
  flags = ["run", f"--config={SPLIT}", "--config.method.name=lying_here:SPEC", "--help"]
  monkeypatch.setattr(sys, "argv", ["ebmjax", *flags])
  with pytest.raises(SystemExit) as caught:
    cli()
  assert caught.value.code == 1
  assert "cannot be imported" not in capsys.readouterr().err


def test_both_names_of_the_command_are_one():
  project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
  assert project["scripts"] == {"ebmjax": "ebmjax.__main__:cli"}
  done = subprocess.run(
    [sys.executable, "-m", "ebmjax", "no-verb"], capture_output=True, cwd=ROOT
  )
  assert done.returncode == 2
