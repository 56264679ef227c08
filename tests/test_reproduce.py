"""The command `ebmjax reproduce`: what it lists, draws and refuses."""

import errno
import os
from pathlib import Path

import pytest

from ebmjax.paper import reproduce as reproduce
from ebmjax.paper import store
from ebmjax.paper.cells import every_cell
from ebmjax.runtime import atomic


@pytest.fixture
def folder(tmp_path: Path) -> str:
  return f"--runs={tmp_path / 'runs'}"


def test_without_a_choice_everything_is_listed_and_nothing_runs(folder, capsys):
  assert reproduce.main([folder]) == 0
  out = capsys.readouterr().out
  for cell in every_cell():
    assert f"  {cell.short_id} " in out
  assert f"{len(every_cell())} cells: " in out
  assert "within 2 points of zero" in out
  assert "The EBM is above the softmax classifier on every benchmark: " in out
  assert not Path(folder.removeprefix("--runs=")).exists()


def test_a_table_alone_is_listed_with_its_commands(folder, capsys):
  chosen = "--table=alternative_objective,negative_sampling"
  assert reproduce.main([chosen, folder]) == 0
  out = capsys.readouterr().out
  assert out.count("python -m ebmjax.main --config=") == 5
  assert "--config=configs/cifar100.py:all_seen,fixed --config.seeds=10" in out
  assert not Path(folder.removeprefix("--runs=")).exists()


def test_variants_are_listed_apart(folder, capsys):
  assert reproduce.main(["--variants", folder]) == 0
  out = capsys.readouterr().out
  assert "configs/permmnist.py:sbc\n" in out
  assert "17.26 +- 0.19 (other configuration)" in out


@pytest.mark.parametrize(
  ("arguments", "sentence"),
  [
    (["--table=boundary_fre"], "did you mean 'boundary_free'?"),
    (["--cell=boundary_free/ebm/splitmnist"], "'boundary_free/ebm/split_mnist'?"),
    (["--seeds=3"], "but not what; give --table=NAME"),
    (["--table=all", "--variants"], "--table and --cell do not go with --variants"),
    (["--variants", "--collect=x"], "--variants do not go with --collect"),
    (["--collect=/nonesuch"], "/nonesuch is not a folder"),
    (["--check=/nonesuch"], "/nonesuch cannot be read"),
    (["--seeds=abc"], "--seeds: 'abc' is not a whole number of 1 or more; see --help."),
    (["--budget=-1"], "--budget: '-1' is not a number above 0; see --help."),
  ],
)
def test_mistakes_end_in_a_sentence(arguments, sentence, folder, capsys):
  usage = sentence.endswith("see --help.")  # what the flags' parser refuses
  assert reproduce.main([*arguments, folder]) == (2 if usage else 1)
  error = capsys.readouterr().err
  assert error.startswith("ebmjax: ")
  assert sentence in error


@pytest.mark.parametrize("flag", ["--write", "--collect"])
def test_a_place_that_cannot_be_written_is_told(flag, tmp_path, monkeypatch, capsys):
  """A read-only place, which a superuser's tests cannot make."""

  def refuse(path, content):
    raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

  monkeypatch.setattr(atomic, "write", refuse)
  file = tmp_path / "tables.md"
  file.write_text("<!-- measured: data -->\n<!-- end -->\n")
  before = store.MEASURED.read_bytes()
  assert reproduce.main([f"{flag}={file if flag == '--write' else tmp_path}"]) == 1
  name = file if flag == "--write" else store.MEASURED
  (line,) = capsys.readouterr().err.splitlines()
  assert f"ebmjax: {name} cannot be written (Read-only file system); make" in line
  assert store.MEASURED.read_bytes() == before
