"""What the documentation shows runs."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

from ebmjax.config.loading import default_workdir

README = Path(__file__).parent.parent / "README.md"
# Every module that shows an example.
MODULES = sorted(
  ".".join(path.relative_to(README.parent).with_suffix("").parts)
  for path in (README.parent / "ebmjax").rglob("*.py")
  if ">>> " in path.read_text()
)


BLOCKS = re.findall(
  r"^```(\w*)\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE
)
EXAMPLES = [text for language, text in BLOCKS if language == "python"]


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_of_the_readme_runs(number, tmp_path, monkeypatch):
  """It asserts what it shows."""
  monkeypatch.chdir(tmp_path)
  names: dict = {}
  exec(compile(EXAMPLES[number], str(README), "exec"), names)
  assert names.keys() & {"labels", "gradient", "SPEC"}


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
  found = doctest.testmod(importlib.import_module(name.removesuffix(".__init__")))
  assert found.attempted > 0
  assert found.failed == 0


def test_the_parts_that_others_import_show_an_example():
  parts = (
    "methods.buffers",
    "losses",
    "metrics",
    "negatives",
    "networks.gates",
    "prediction",
  )
  assert {f"ebmjax.{part}" for part in parts} <= set(MODULES)


def test_every_config_named_in_the_readme_exists():
  files = set(re.findall(r"configs/\w+\.py", README.read_text()))
  assert files
  assert all((README.parent / file).is_file() for file in files)


def test_the_readme_s_commands_do_not_ask_for_each_other_s_folders():
  """`make run` comes first, with the default configuration and nothing else."""
  blocks = "".join(text for language, text in BLOCKS if not language)
  commands = re.findall(r"^(?:srun )?python -m ebmjax\.main (.*)$", blocks, re.M)
  folders: dict[str, set[str]] = {"runs/permmnist": {"--config=configs/permmnist.py"}}
  for command in commands:
    words = command.split()
    chosen = next(word for word in words if word.startswith("--config="))
    given = [word for word in words if word.startswith("--workdir=")]
    place = default_workdir(chosen.removeprefix("--config="))
    folder = given[0].removeprefix("--workdir=") if given else str(place)
    if "FILE" not in chosen and folder != "DIR":  # these stand for the reader's own
      folders.setdefault(folder, set()).add(" ".join(sorted({*words} - {*given})))
  assert len(folders) > 4
  assert all(len(several) == 1 for several in folders.values()), folders
