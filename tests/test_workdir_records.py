"""What a run's folder keeps of scalars and evaluations: whole lines, whole files."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from ebmjax.errors import WorkdirError
from ebmjax.runtime import json_files
from ebmjax.runtime.records import Record
from ebmjax.runtime.workdir import Workdir
from ebmjax.types import RANKING, Evaluation
from tests.helpers import assert_same_bits


def make_record(step: int) -> Record:
  accuracy = np.array([[0.5, np.nan], [0.25, np.nan]])
  counts = np.arange(8, dtype=np.int32).reshape(2, 2, 2)
  ranking = [np.array([0.1 * place, np.nan]) for place in range(5)]
  evaluation = Evaluation(
    accuracy, accuracy / 3, counts, counts / np.float32(3), *ranking
  )
  return Record(step, 1, True, evaluation)


@pytest.mark.parametrize(
  "torn", [b'{"step": 3, "se', b"{", b"\x00\x00\x00", b'{"loss": "\xff', b"\xc3\n"]
)
def test_torn_last_line_of_scalars_is_left_out(tmp_path: Path, torn):
  lines = [{"step": 1, "seed": 0, "loss": 0.5}, {"step": 2, "seed": 0, "loss": 0.25}]
  with Workdir(tmp_path) as folder:
    folder.add_scalars(lines)
    with (tmp_path / "scalars.jsonl").open("ab") as file:
      file.write(torn)
    assert folder.scalars() == lines
    folder.rewind(2)
    folder.add_scalars([{"step": 3, "seed": 0, "loss": 1.0}])
    assert [line["step"] for line in folder.scalars()] == [1, 2, 3]
  text = (tmp_path / "scalars.jsonl").read_text()
  assert [json.loads(line)["step"] for line in text.splitlines()] == [1, 2, 3]


@pytest.mark.parametrize(
  "odd", ["3", "[1]", "null", '"text"', "{}", '{"step": 1}', '{"step": 1, "se']
)
def test_lines_that_are_no_scalars_are_passed_over(tmp_path: Path, odd):
  """Wherever they stand; what follows them is kept."""
  points = [{"step": step, "seed": 0, "loss": 0.5} for step in (1, 2)]
  lines = [json.dumps(points[0]), odd, json.dumps(points[1])]
  (tmp_path / "scalars.jsonl").write_text("\n".join(lines) + "\n")
  with Workdir(tmp_path) as folder:
    assert folder.scalars() == points
    folder.rewind(1)
    assert folder.scalars() == points[:1]


def test_without_scalars_there_are_none(tmp_path: Path):
  with Workdir(tmp_path) as folder:
    assert folder.scalars() == []
    assert folder.evaluations() == []


@pytest.mark.parametrize(
  ("step", "kept"), [(-1, []), (0, [0]), (9, [0, 5]), (10, [0, 5, 10])]
)
def test_rewind_drops_later_records(tmp_path: Path, step, kept):
  with Workdir(tmp_path) as folder:
    for made in (0, 5, 10):
      folder.add_scalars([{"step": made, "seed": 0, "loss": 0.1}])
      folder.add_evaluation(make_record(made))
    folder.rewind(step)
    assert [record.step for record in folder.evaluations()] == kept
    assert [line["step"] for line in folder.scalars()] == kept


def test_evaluations_come_back_as_they_were_in_order(tmp_path: Path):
  with Workdir(tmp_path) as folder:
    for step in (1_000_000, 20, 3):
      folder.add_evaluation(make_record(step))
    (tmp_path / "evaluations" / "000000004.npz.tmp").write_bytes(b"half")
    found = folder.evaluations()
  assert [record.step for record in found] == [3, 20, 1_000_000]
  assert_same_bits(found[0].evaluation, make_record(3).evaluation)
  assert (found[0].tasks_finished, found[0].at_task_end) == (1, True)


def test_an_older_evaluation_is_read_without_what_it_lacks(tmp_path: Path):
  with Workdir(tmp_path) as folder:
    folder.add_evaluation(make_record(3))
    (path,) = (tmp_path / "evaluations").glob("*.npz")
    with np.load(path) as file:
      content = {name: file[name] for name in file if name not in (*RANKING, "digest")}
    np.savez(path, **content)
    (record,) = folder.evaluations()
  wanted = make_record(3).evaluation
  assert_same_bits(record.evaluation[:4], wanted[:4])
  np.testing.assert_array_equal(record.evaluation[4:], np.full((5, 2), np.nan))


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "text", "incomplete"])
def test_damaged_evaluation_is_named(tmp_path: Path, damage):
  with Workdir(tmp_path) as folder:
    folder.add_evaluation(make_record(12))
    (path,) = (tmp_path / "evaluations").glob("*.npz")
    content = bytearray(path.read_bytes())
    if damage == "empty":
      content.clear()
    elif damage == "cut":
      del content[len(content) // 2 :]
    elif damage == "flipped":
      content[70] ^= 0xFF  # within the first array, after its name and header
    elif damage == "text":
      content[:] = b"not an archive"
    path.write_bytes(content)
    if damage == "incomplete":
      np.savez(path, accuracy=np.zeros(1))
    with pytest.raises(WorkdirError) as caught:
      folder.evaluations()
  assert str(caught.value).startswith(f"{path} is damaged; remove it and ")


def test_write_json_replaces_whole_files(tmp_path: Path):
  json_files.write(tmp_path / "a.json", {"b": 1, "a": [1.5, None]})
  json_files.write(tmp_path / "a.json", {"b": 2})
  assert json_files.read(tmp_path / "a.json", {"b": int}, "") == {"b": 2}
  assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_no_flipped_bit_of_an_evaluation_is_read(tmp_path: Path):
  """Or what it stands in is nothing that is read."""
  record = make_record(12)
  with Workdir(tmp_path) as folder:
    folder.add_evaluation(record)
    (path,) = (tmp_path / "evaluations").glob("*.npz")
    content = path.read_bytes()
    for place in range(0, len(content), 23):
      flipped = bytearray(content)
      flipped[place] ^= 1 << place % 8
      path.write_bytes(flipped)
      try:
        (found,) = folder.evaluations()
      except WorkdirError:
        continue
      assert_same_bits(found.evaluation, record.evaluation)


@pytest.mark.parametrize("name", ["config.json", "run.json"])
def test_a_pipe_is_no_file_of_a_run(tmp_path: Path, name):
  os.mkfifo(tmp_path / name)
  with pytest.raises(WorkdirError, match="cannot be read as JSON"):
    json_files.read(tmp_path / name, {}, "")


def test_changed_json_is_noticed(tmp_path: Path):
  path = tmp_path / "config.json"
  json_files.write(path, {"seeds": 10, "name": "\x1b[31mred"})
  assert json_files.read(path, {"seeds": int}, "")["name"] == "\ufffd[31mred"
  path.write_text(path.read_text().replace("10", "11"))
  with pytest.raises(WorkdirError, match=r"config\.json has changed since it was"):
    json_files.read(path, {"seeds": int}, "")


def test_a_changed_point_is_left_out_and_told(tmp_path: Path, caplog):
  points = [{"step": step, "seed": 0, "loss": 0.5} for step in (1, 2, 3)]
  with Workdir(tmp_path) as folder:
    folder.add_scalars(points)
    path = tmp_path / "scalars.jsonl"
    path.write_text(path.read_text().replace("0.5", "0.25", 1))
    assert folder.scalars() == points[1:]
  assert "has damaged lines; they are left out" in caplog.text
