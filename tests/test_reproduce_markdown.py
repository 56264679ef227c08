"""The measured tables of BENCHMARKS.md and README.md."""

import json
import re
import shutil
from pathlib import Path

import pytest

from ebmjax.errors import UserError
from ebmjax.paper import markdown, store, wording
from ebmjax.paper import reproduce as reproduce
from ebmjax.paper.cells import all_cells, every_cell
from ebmjax.paper.ledger import Ledger
from ebmjax.tools.bench import sections
from tests.helpers import ROOT

BENCHMARKS = ROOT / "BENCHMARKS.md"


@pytest.fixture(scope="module")
def ledger() -> Ledger:
  return Ledger(all_cells(), store.read())


def ours(ledger: Ledger) -> str:
  """Returns what the table of runs without boundaries says of the EBM."""
  names = {row.cell.id: row.measured for row in ledger.rows}
  measured = names["boundary_free/ebm/split_mnist"]
  assert measured is not None
  return wording.mean(measured.summary)


def test_the_benchmarks_say_what_was_measured():
  assert reproduce.main([f"--check={BENCHMARKS}"]) == 0


def test_every_block_has_its_place_and_every_reading_its_row(ledger):
  text = BENCHMARKS.read_text() + (ROOT / "README.md").read_text()
  for name in markdown.blocks(ledger):
    assert text.count(f"<!-- measured: {name} -->") == 1
  assert all(row.measured for row in ledger.rows if row.cell.note)
  commands = {found.command for found in ledger.variants()}
  assert wording.readings().keys() <= commands


def test_only_the_blocks_are_rewritten(tmp_path: Path, ledger):
  path = tmp_path / "page.md"
  before, between, after = "# Title  \r\n\ttext \u00e9\n", "\n\nreading\n", "no newline"
  block = "<!-- measured: {} -->\nold\n<!-- end -->"
  first, second = block.format("boundary_free"), block.format("data")
  path.write_bytes((before + first + between + second + after).encode())
  markdown.write(path, ledger)
  written = path.read_bytes().decode()
  assert written.startswith(before + "<!-- measured: boundary_free -->\n")
  assert f"<!-- end -->{between}<!-- measured: data -->\n" in written
  assert written.endswith(f"<!-- end -->{after}")
  assert "old" not in written
  start = "| `ebm/split_mnist` | `splitmnist.py:boundary_free,all_of_batch` | "
  assert f"{start}{ours(ledger)} | 81.78 +- 1.22 |" in written
  markdown.write(path, ledger)
  assert path.read_bytes().decode() == written


def test_a_changed_number_is_found(tmp_path: Path, capsys, ledger):
  path = tmp_path / "page.md"
  text = BENCHMARKS.read_text()
  assert text.count(ours(ledger)) == 2  # beside the replay-free methods, too
  path.write_text(text.replace(ours(ledger), "81.78 +- 1.22 (5)"))
  assert reproduce.main([f"--check={path}"]) == 1
  error = capsys.readouterr().err
  assert (
    "(replay_free, boundary_free); run python -m ebmjax.reproduce --write=" in error
  )
  assert reproduce.main([f"--write={path}"]) == 0
  assert path.read_bytes() == BENCHMARKS.read_bytes()


def test_a_changed_figure_of_the_benchmark_is_found(monkeypatch, tmp_path):
  folder = tmp_path / "measured"
  shutil.copytree(sections.MEASURED, folder)
  monkeypatch.setattr(sections, "MEASURED", folder)
  path = folder / "training.json"
  figures = json.loads(path.read_text())
  figures["training"][0]["rate"]["ebmjax"]["median"] += 100
  path.write_text(json.dumps(figures))
  with pytest.raises(UserError, match=r"results hold \(speed_training\); run python"):
    markdown.check(BENCHMARKS, Ledger(every_cell(), store.read()))


@pytest.mark.parametrize("times", [0, 2])
def test_a_block_that_is_missing_or_twice_there_is_found(tmp_path, ledger, times):
  path = tmp_path / "page.md"
  text = BENCHMARKS.read_text()
  block = re.search(r"<!-- measured: data -->.*?<!-- end -->\n", text, re.DOTALL)
  assert block is not None
  path.write_text(text.replace(block[0], times * block[0]))
  with pytest.raises(UserError, match=f"the block data once, and has it {times} times"):
    markdown.check(path, ledger)


def test_the_summary_is_the_first_block(ledger):
  assert next(iter(markdown.blocks(ledger))) == markdown.SUMMARY
  text = BENCHMARKS.read_text()
  assert text.index("<!-- measured: ") == text.index("<!-- measured: summary -->")


@pytest.mark.parametrize(
  ("text", "sentence"),
  [
    ("nothing", "there is no block to write"),
    ("<!-- measured: nonesuch -->\n<!-- end -->", "no table is called 'nonesuch'"),
    (
      "<!-- measured: data -->\n<!-- end -->\n<!-- measured: capacity -->\n",
      "a marker is left open",
    ),
    (
      "<!-- measured: data -->\n<!-- measured: capacity -->\n<!-- end -->",
      "a marker is left open",
    ),
  ],
)
def test_wrong_markers_are_refused(tmp_path: Path, text, sentence, ledger):
  path = tmp_path / "page.md"
  path.write_text(text)
  with pytest.raises(UserError, match=sentence):
    markdown.write(path, ledger)
  assert path.read_text() == text
