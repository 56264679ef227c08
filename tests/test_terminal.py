"""Wrong flags of every command line end in one sentence."""

import argparse
import os
import subprocess
import sys
import time

import pytest

from ebmjax.config.loading import python_path
from ebmjax.paper import reproduce as reproduce
from ebmjax.runtime.terminal import positive_number, run_cli, whole_number
from ebmjax.tools import processes, report
from ebmjax.tools.bench import command as bench
from tests.helpers import PERMUTED, ROOT

LAUNCHED = "nothing to run: give the flags of `ebmjax run` after `--`"


@pytest.mark.parametrize(
  ("command", "argument", "sentence"),
  [
    (
      reproduce.main,
      "--seeds=abc",
      "--seeds: 'abc' is not a whole number of 1 or more",
    ),
    (reproduce.main, "--budget=nan", "--budget: 'nan' is not a number above 0"),
    (reproduce.main, "--sedes=3", "unrecognized arguments: --sedes=3"),
    (report.main, "--out", "--out: expected one argument"),
    (bench.main, "--rounds=0", "--rounds: '0' is not a whole number of 1 or more"),
    (bench.main, "--fast", "unrecognized arguments: --fast"),
    (processes.main, "--processes=-1", "'-1' is not a whole number of 1 or more"),
    (processes.main, "--platform=gpu", "invalid choice: 'gpu'"),
    (processes.main, "--devices=1", LAUNCHED),
  ],
)
def test_a_wrong_flag_is_told_in_one_sentence(command, argument, sentence, capsys):
  assert command([argument]) == 2
  told = capsys.readouterr()
  (line,) = told.err.splitlines()
  name = "launch" if command is processes.main else "ebmjax"
  assert line.startswith(f"{name}: ")
  assert sentence in line and line.endswith("; see --help.")
  assert told.out == ""


def test_numbers_are_read():
  assert (whole_number("3"), positive_number("0.5")) == (3, 0.5)
  for text in ("1.5", "", "0", "-2"):
    with pytest.raises(argparse.ArgumentTypeError, match="1 or more"):
      whole_number(text)
  for text in ("inf", "0", "-2", "x"):
    with pytest.raises(argparse.ArgumentTypeError, match="above 0"):
      positive_number(text)


def test_an_interruption_says_how_to_go_on(capsys):
  def work() -> int:
    raise KeyboardInterrupt

  assert run_cli("ebmjax", work, "do it again") == 130
  assert capsys.readouterr().err == "ebmjax: interrupted; do it again.\n"


@pytest.mark.parametrize(
  "module", [["ebmjax.reproduce"], ["ebmjax.main", "--help", f"--config={PERMUTED}"]]
)
def test_a_reader_that_leaves_is_no_fault(module):
  """As `head` does, and a pager that is quit."""
  reading, writing = os.pipe()
  os.close(reading)
  with os.fdopen(writing, "wb") as closed:
    done = subprocess.run(
      [sys.executable, "-m", *module], stdout=closed, stderr=subprocess.PIPE, cwd=ROOT
    )
  assert (done.returncode, done.stderr) == (141, b"")


class Finalised:
  """Drops an interrupt, as Python does in every finaliser."""

  def __del__(self) -> None:
    raise KeyboardInterrupt


def test_an_interrupt_within_a_finaliser_arrives(capsys):
  def work() -> int:
    Finalised()
    time.sleep(10)
    return 0

  begin = time.monotonic()
  assert run_cli("ebmjax", work) == 130
  assert time.monotonic() - begin < 2
  assert capsys.readouterr().err.startswith("ebmjax: interrupted; ")


def test_an_interrupt_while_a_program_starts_ends_it_at_once():
  """Even in a finaliser, as imports run them."""
  code = (
    "import os, signal, time\n"
    "from ebmjax.runtime.terminal import leave_on_interrupt\n"
    "class Late:\n"
    "  def __del__(self): os.kill(os.getpid(), signal.SIGINT); time.sleep(1)\n"
    "with leave_on_interrupt('ebmjax: interrupted.'):\n"
    "  Late()\n"
    "  time.sleep(10)\n"
  )
  child = [sys.executable, "-c", code]
  environment = os.environ | {"PYTHONPATH": python_path()}
  done = subprocess.run(child, env=environment, capture_output=True, text=True)
  assert (done.returncode, done.stderr) == (130, "ebmjax: interrupted.\n")


def test_figures_need_no_backend():
  code = (
    "from ebmjax.report import plotting\n"
    "with plotting.style():\n"
    "  assert plotting.png(plotting.new_figure(2, 2)[0]).startswith(b'\\x89PNG')"
  )
  environment = os.environ | {"MPLBACKEND": "bogus", "PYTHONPATH": python_path()}
  child = [sys.executable, "-W", "error", "-c", code]
  done = subprocess.run(child, env=environment, capture_output=True, text=True)
  assert (done.returncode, done.stderr) == (0, "")
