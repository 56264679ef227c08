"""What the documentation shows runs: README, the site's pages and the docstrings."""

import ast
import doctest
import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

import ebmjax
from ebmjax import methods
from ebmjax.__main__ import VERBS
from ebmjax.config import loading
from ebmjax.config.experiments import Experiment
from ebmjax.paper import reproduce
from tests.helpers import ROOT

README = ROOT / "README.md"
PAGES = (
  README,
  *(ROOT / name for name in ("BENCHMARKS.md", "launch/README.md")),
  ROOT / ".github" / "CONTRIBUTING.md",
  *sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts),
)
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
# Every module that shows an example.
MODULES = sorted(
  ".".join(path.relative_to(ROOT).with_suffix("").parts)
  for path in (ROOT / "ebmjax").rglob("*.py")
  if ">>> " in path.read_text()
)
_BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_CONFIG = re.compile(r"configs/\w+\.py(?::([\w,]+))?")


class Block(NamedTuple):
  """A block of code of a page."""

  page: Path
  language: str
  text: str


BLOCKS = [
  Block(page, *found) for page in PAGES for found in _BLOCK.findall(page.read_text())
]
EXAMPLES = [block for block in BLOCKS if block.language == "python"]
SHOWING = sorted({str(block.page.relative_to(ROOT)) for block in EXAMPLES})
COMMANDS = [
  line
  for block in BLOCKS
  if block.language == "sh"
  for line in block.text.replace("\\\n", " ").splitlines()
]


def prose(page: Path) -> str:
  """Returns a page without its blocks."""
  return _BLOCK.sub("", page.read_text())


@pytest.mark.parametrize("name", SHOWING)
def test_examples_run(name, tmp_path, monkeypatch, no_plots):
  """They assert what they show; a page's later ones find the files of those before."""
  monkeypatch.chdir(tmp_path)
  for block in (block for block in EXAMPLES if block.page == ROOT / name):
    names: dict = {}
    exec(compile(block.text, name, "exec"), names)
    assert names.keys() & {"labels", "gradient", "digits"}


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


def test_every_configuration_that_is_named_exists_with_its_variants():
  found = {m for page in PAGES for m in _CONFIG.finditer(page.read_text())}
  named = {tuple(m[0].partition(":")[::2]) for m in found}
  assert len(named) > 20
  for file, variants in named:
    known = loading.variants_of(file)
    assert set(filter(None, variants.split(","))) <= set(known), (file, variants)


def test_every_block_has_a_language_that_is_checked_here_or_in_the_build():
  known = {"sh", "python", "text", "{eval-rst}", "{toctree}", "{code-cell} python"}
  for page, language, _ in BLOCKS:
    directive = re.match(r"\{(include|literalinclude|generated)\} \S+$", language)
    assert language in known or directive, (page, language)


def test_commands_name_verbs_and_make_targets_that_exist():
  targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
  for words in map(str.split, COMMANDS):
    if words[:1] == ["ebmjax"]:
      assert words[1] in VERBS, words
    if words[:1] == ["make"]:
      assert words[1] in targets, words
  assert {f"`{verb}`" for verb in VERBS} <= set(re.findall("`\\w+`", prose(README)))


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_to_files_and_headings(name):
  for link in re.findall(r"\]\((?![a-z]+:)([^)\s]+)\)", prose(ROOT / name)):
    path, _, heading = link.partition("#")
    target = (ROOT / name).parent / path if path else ROOT / name
    assert target.exists(), link
    if heading:
      titles = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
      assert heading in {title.lower().replace(" ", "-") for title in titles}, link


@pytest.mark.parametrize("name", NAMES)
def test_files_that_a_page_includes_exist(name):
  page = ROOT / name
  for _, language, _ in (block for block in BLOCKS if block.page == page):
    _, _, path = language.partition("include} ")
    assert not path or (page.parent / path).is_file()


def test_every_page_is_in_a_table_of_contents():
  docs = ROOT / "docs"
  listed = {docs / "index.md"}
  for page, language, text in BLOCKS:
    if language == "{toctree}":
      entries = [line for line in text.splitlines() if line and line[0] != ":"]
      listed |= {(page.parent / entry).with_suffix(".md") for entry in entries}
  assert listed == {page for page in PAGES if docs in page.parents}


def test_every_method_is_on_the_page_of_methods():
  names = set(re.findall(r"\w+", (ROOT / "docs" / "methods.md").read_text()))
  assert set(methods.METHODS) <= names
  objectives = {"contrastive", "joint_pairs", "joint_triples", "all_of_batch"}
  # Objectives are on the page of concepts.
  assert set(Experiment("splitmnist", {}).variants) - objectives - {"smoke"} <= names


def test_troubleshooting_quotes_messages_as_the_program_prints_them():
  page = (ROOT / "docs" / "troubleshooting.md").read_text()
  quoted = re.findall(r'^\*\*"(.*)"\*\*$', page, re.MULTILINE)
  assert len(quoted) > 9
  texts = (path.read_text() for path in (ROOT / "ebmjax").rglob("*.py"))
  # Parts of a sentence on several lines are joined; a `{value}` is the page's `...`.
  joined = [re.sub(r"\{[^{}]*\}", "...", re.sub(r'"\s+f?"', "", t)) for t in texts]
  for message in quoted:
    assert any(message in text for text in joined), message


def test_the_reference_has_every_public_module():
  pages = "".join(page.read_text() for page in (ROOT / "docs" / "api").glob("*.md"))
  shown = set(re.findall(r"auto(?:module|function):: ebmjax\.([\w.]+)", pages))
  assert set(ebmjax._MODULES) | {"report", "experiment.run"} <= shown


def test_the_reference_has_every_public_name():
  """Functions and classes by their docstrings; constants and types in the page."""
  pages = "".join(page.read_text() for page in (ROOT / "docs" / "api").glob("*.md"))
  written = set(re.findall(r"`(\w+)`", pages))
  for place in re.findall(r"automodule:: (ebmjax\.[\w.]+)", pages):
    module = importlib.import_module(place)
    for name in public_names(module):
      value = getattr(module, name)
      is_code = inspect.isclass(value) or inspect.isfunction(inspect.unwrap(value))
      assert name in written or (is_code and value.__doc__), (place, name)


def public_names(module: ModuleType) -> list[str]:
  """Returns a module's `__all__`; without one, what it defines without underscore."""
  if hasattr(module, "__all__"):
    return list(module.__all__)
  found: list[str] = []
  for node in ast.parse(inspect.getsource(module)).body:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
      found.append(node.name)
    if isinstance(node, ast.Assign | ast.AnnAssign):
      targets = node.targets if isinstance(node, ast.Assign) else [node.target]
      found += [target.id for target in targets if isinstance(target, ast.Name)]
  return [name for name in found if not name.startswith("_")]


def test_the_table_of_results_says_what_was_measured():
  assert reproduce.main([f"--check={README}"]) == 0


def test_commands_do_not_ask_for_each_other_s_folders():
  """`make run` comes first, with the default configuration and nothing else."""
  folders: dict[str, set[str]] = {"runs/permmnist": {"--config=configs/permmnist.py"}}
  run = re.compile(r"^(?:srun )?(?:python -m ebmjax\.main|ebmjax run) (.*)$")
  for command in filter(None, map(run.match, COMMANDS)):
    words = command[1].split()
    chosen = next((word for word in words if word.startswith("--config=")), "FILE")
    given = [word for word in words if word.startswith("--workdir=")]
    place = loading.default_workdir(chosen.removeprefix("--config="))
    folder = given[0].removeprefix("--workdir=") if given else str(place)
    # These stand for the reader's own, and help makes no folder.
    if not {"FILE", "my_package", "--help"} & set(re.split(r"[.:= ]", command[1])):
      folders.setdefault(folder, set()).add(" ".join(sorted({*words} - {*given})))
  folders.pop("DIR", None)
  assert len(folders) > 4
  assert all(len(several) == 1 for several in folders.values()), folders
