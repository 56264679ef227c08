"""Runs from Python: what a script or a notebook is shown, and what it gets back."""

import io
import logging
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

import ebmjax
from ebmjax import report
from ebmjax.config import default, loading, with_settings
from ebmjax.errors import ConfigError, UserError
from ebmjax.report import plots
from ebmjax.runtime import environment
from ebmjax.runtime.console import logging_untouched, show_messages
from ebmjax.runtime.progress import Progress
from tests.helpers import SPLIT, make_config, read_results, write_idx

SCRIPT = """
import sys
from pathlib import Path
import ebmjax
from ebmjax.report import plots
from tests.helpers import SPLIT, make_config, write_idx

plots.draw = lambda history, scalars: {}
config = make_config(f"{SPLIT}:smoke", write_idx(Path(sys.argv[1]) / "data"))
print(ebmjax.run(config, Path(sys.argv[1]) / "run"))
"""


class Terminal(io.StringIO):
  """A standard error that can show bars."""

  def isatty(self) -> bool:
    return True


def forget_logging(monkeypatch) -> None:
  """Leaves logging as a script finds it that has not set it up."""
  monkeypatch.setattr(logging.root, "handlers", [])
  monkeypatch.setattr(logging.getLogger("ebmjax"), "level", logging.NOTSET)


def test_a_script_is_shown_the_run_and_its_table_and_keeps_programs(tmp_path: Path):
  unset = {"JAX_COMPILATION_CACHE_DIR", "COLUMNS"}
  kept = {name: value for name, value in os.environ.items() if name not in unset}
  kept["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"  # however fast the machine
  done = subprocess.run(
    [sys.executable, "-c", SCRIPT, str(tmp_path)],
    env=kept | {"XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": loading.python_path()},
    capture_output=True,
    text=True,
    timeout=600,
  )
  lines = done.stderr.splitlines()
  assert done.returncode == 0, done.stderr
  assert [line[:11] for line in lines[-3:-1]] == ["step 12 of ", "step 24 of "]
  assert lines[-1] == "Drawing figures and writing the report."
  assert "Average accuracy (%)" in done.stdout
  assert any((tmp_path / "ebmjax" / "xla").iterdir())


def test_results_are_a_mapping_that_shows_as_the_table(tmp_path: Path, monkeypatch):
  monkeypatch.setattr(plots, "draw", lambda history, scalars: {})
  config = make_config(f"{SPLIT}:smoke", write_idx(tmp_path / "data"))
  results = ebmjax.run(config, tmp_path / "run")
  assert results == read_results(tmp_path / "run")
  stored = report.read(tmp_path / "run")
  table = report.closing_table(dict(results))
  for shown in (str(results), repr(stored), report.closing_table(stored)):
    assert shown == table
  assert results._repr_html_() == stored._repr_html_()
  assert results._repr_html_().startswith("<pre>---")
  assert ebmjax.run(config, tmp_path / "run")._repr_html_() == results._repr_html_()
  assert repr(report.Results()) == "{}"


def test_a_bar_names_the_task_and_lines_stand_above_it(monkeypatch):
  forget_logging(monkeypatch)
  terminal = Terminal()
  monkeypatch.setattr(sys, "stderr", terminal)
  show_messages()
  with Progress(20, 0, num_tasks=2) as progress:
    for task in range(2):
      progress.task(task)
      progress.steps(10, loss=0.5)
      progress.accuracy(10 * (task + 1), [50.0] * (task + 1), 50.0)
  shown = [part.strip() for part in terminal.getvalue().replace("\n", "\r").split("\r")]
  assert "step 10 of 20: accuracy 50.00 % (tasks: 50.0)" in shown
  bars = [part for part in shown if part.startswith("task 2 of 2: 100%")]
  assert bars and "accuracy=50.00%" in bars[-1]


def test_a_pipe_gets_lines_alone(monkeypatch):
  forget_logging(monkeypatch)
  pipe = io.StringIO()
  monkeypatch.setattr(sys, "stderr", pipe)
  show_messages()
  with Progress(20, 0, num_tasks=2) as progress:
    progress.task(0)
    progress.steps(20, loss=0.5)
    progress.accuracy(20, [50.0, 75.0], 62.5)
  line = "step 20 of 20: accuracy 62.50 % (tasks: 50.0 75.0)\n"
  assert pipe.getvalue() == line


def test_a_terminal_obeys_no_name_of_a_file(monkeypatch):
  forget_logging(monkeypatch)
  pipe = io.StringIO()
  monkeypatch.setattr(sys, "stderr", pipe)
  show_messages()
  logging.getLogger("ebmjax").info("Data: %s.", "\x1b[31mred\r")
  assert pipe.getvalue() == "Data: \ufffd[31mred\ufffd.\n"
  assert str(UserError("caf\udce9 is\nno \x9bfile.")) == "caf\ufffd is\nno \ufffdfile."


def test_what_a_user_has_set_up_is_left(monkeypatch):
  forget_logging(monkeypatch)
  own = logging.StreamHandler(io.StringIO())
  logging.root.addHandler(own)
  logging.getLogger("ebmjax").setLevel(logging.WARNING)
  show_messages()
  assert logging.root.handlers == [own]
  assert logging.getLogger("ebmjax").level == logging.WARNING


def test_an_import_that_logs_sets_nothing_up(monkeypatch):
  forget_logging(monkeypatch)
  with logging_untouched():
    logging.info("as absl does")
  assert logging.root.handlers == []


@pytest.mark.parametrize("given", ["", "/own/place"])
def test_the_cache_of_programs_is_where_jax_has_it_or_at_home(
  given, monkeypatch, tmp_path
):
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
  before = {
    name: jax.config.values[name]
    for name in (
      "jax_compilation_cache_dir",
      "jax_persistent_cache_min_compile_time_secs",
    )
  }
  try:
    jax.config.update("jax_compilation_cache_dir", given or None)
    environment.use_compilation_cache()
    found = jax.config.values["jax_compilation_cache_dir"]
  finally:
    for name, value in before.items():
      jax.config.update(name, value)
  assert found == (given or str(tmp_path / "ebmjax" / "xla"))


@pytest.mark.parametrize(
  "make",
  [
    default,
    lambda: with_settings(default(), {"method.name": "si"}),
    lambda: loading.load(f"{SPLIT}:smoke"),
  ],
)
def test_a_mistyped_key_of_a_configuration_is_refused(make):
  config = make()
  config.network.hidden = 16
  with pytest.raises(
    ConfigError, match="'netwrok' is not a key here; did you mean 'netw"
  ):
    config.netwrok = 3
  with pytest.raises(ConfigError, match=r"did you mean 'hidden'.*are [a-z_, ]+[.]$"):
    config.network.hiden = 3


def test_losses_and_negatives_import_little_beside_jax():
  """Nor does the package itself: its modules are imported when they are first used."""
  program = (
    "import sys, time, jax; before = time.process_time();"
    "import ebmjax.losses; losses = time.process_time() - before;"
    "ebmjax.negatives, ebmjax.prediction;"
    "heavy = {'flax', 'optax', 'orbax', 'absl', 'matplotlib', 'ml_collections'};"
    "print(sorted(heavy & sys.modules.keys()), losses < 0.05)"  # of a second
  )
  done = subprocess.run(
    [sys.executable, "-c", program],
    env=os.environ | {"PYTHONPATH": loading.python_path()},
    capture_output=True,
    text=True,
    check=True,
  )
  assert done.stdout == "[] True\n"
