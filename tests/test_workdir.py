"""The run's folder: one process at a time, one configuration, records that last."""

import errno
import fcntl
import json
import shutil
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebmjax import data, environment, experiment, main
from ebmjax.data import files
from ebmjax.data.registry import find
from ebmjax.errors import WorkdirError
from ebmjax.report import facts as report_facts
from ebmjax.report import markup, plots
from ebmjax.reproduce import claims, store
from ebmjax.types import Evaluation
from ebmjax.validation import resolve
from ebmjax.workdir import WEIGHTS, Record, Workdir, write_json
from tests.helpers import (
  SPLIT,
  TIMINGS,
  assert_same_bits,
  make_config,
  overrides,
  read_results,
  write_idx,
)

pytestmark = pytest.mark.usefixtures("quick_compilation")

SBC = f"{SPLIT}:smoke,sbc"
HOLD = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def make_record(step: int) -> Record:
  accuracy = np.array([[0.5, np.nan], [0.25, np.nan]])
  counts = np.arange(8, dtype=np.int32).reshape(2, 2, 2)
  evaluation = Evaluation(accuracy, accuracy / 3, counts, counts / np.float32(3))
  return Record(step, 1, True, evaluation)


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
  """Returns a folder with data/, and run/, a finished run of two seeds."""
  base = tmp_path_factory.mktemp("workdir")
  write_idx(base / "data")
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(plots, "draw", lambda history, scalars: {})
    experiment.run(make_config(SBC, base / "data", seeds=2), base / "run")
  return base


@pytest.fixture
def run(base: Path, tmp_path: Path) -> Path:
  return Path(shutil.copytree(base / "run", tmp_path / "run"))


@pytest.fixture
def no_data(monkeypatch) -> None:
  """Makes reading any data a failure."""
  monkeypatch.setattr(data, "load", None)


def test_second_process_is_refused_until_the_first_ends(
  base, tmp_path: Path, capsys, monkeypatch
):
  monkeypatch.setattr(main, "use_compilation_cache", lambda: None)
  workdir = tmp_path / "run"
  workdir.mkdir()
  holder = subprocess.Popen(
    [sys.executable, "-c", HOLD, str(workdir / ".lock")],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    text=True,
  )
  with holder:
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    arguments = [f"--config={SBC}", *overrides(base / "data"), f"--workdir={workdir}"]
    assert main.main(["ebmjax", *arguments]) == 1
    assert capsys.readouterr().err == (
      f"ebmjax: another process is running in {workdir}; wait for it, or choose "
      "another folder with --workdir.\n"
    )
    holder.kill()
  with Workdir(workdir):
    pass


def test_the_lock_is_released_on_leaving(tmp_path: Path):
  with Workdir(tmp_path) as held:
    word = held.sign()
    with pytest.raises(WorkdirError, match="another process"):
      Workdir(tmp_path).__enter__()
    assert held.is_signed(word, patience=1)  # who is refused leaves it as it is
  with Workdir(tmp_path):
    pass


def test_a_disk_without_locks_is_told(tmp_path: Path, monkeypatch):
  """As some network disks are; for a run, for who runs what, and for what is stored."""

  def none(*_: object) -> None:
    raise OSError(errno.ENOSYS, "Function not implemented")

  def enter(lock: AbstractContextManager[Any]) -> None:
    with lock:
      pass

  monkeypatch.setattr(fcntl, "flock", none)
  told = rf"the disk of {tmp_path} has no file locks \(Function not implemented\); "
  with pytest.raises(WorkdirError, match=f"{told}choose another with --workdir"):
    enter(Workdir(tmp_path))
  with pytest.raises(WorkdirError, match=f"{told}choose another with --runs"):
    enter(claims.planning(tmp_path))
  with pytest.raises(WorkdirError, match=f"{told}choose another with --runs"):
    claims.choose(tmp_path, [0])
  with pytest.raises(WorkdirError, match=f"{told}have the repository"):
    store.collect(tmp_path, [], tmp_path / "measured.json")


@pytest.mark.parametrize("content", ["{}", "[]", "[1]", '"text"', "{"])
def test_results_that_are_none_are_told(tmp_path: Path, content):
  (tmp_path / "results.json").write_text(content)
  told = (
    r"results\.json .*; remove this file, and the run's command goes on from the last"
  )
  with pytest.raises(WorkdirError, match=told):
    Workdir(tmp_path).results()
  with pytest.raises(WorkdirError, match=r"results\.json (is not|cannot)[^;]*$"):
    Workdir(tmp_path).results(remedy="")


@pytest.mark.parametrize("inside", ["", "below"])
def test_a_file_in_its_place(tmp_path: Path, inside):
  (tmp_path / "file").write_text("")
  with pytest.raises(WorkdirError, match=r"file.* cannot be written \(.+\); choose"):
    Workdir(tmp_path / "file" / inside).__enter__()


@pytest.mark.parametrize(
  ("changes", "told"),
  [
    ({"network__hidden": 9}, "config.network.hidden=8, not 9;"),
    ({"seeds": 3}, "config.seeds=2, not 3;"),
    ({"negatives": "all_of_batch"}, "config.negatives='all_seen', not 'all_of_batch';"),
    ({"optimiser__learning_rate": 2e-4}, "learning_rate=0.0001, not 0.0002;"),
  ],
)
@pytest.mark.usefixtures("no_data")
def test_another_configuration_is_refused(base, run, changes, told):
  config = make_config(SBC, base / "data", **({"seeds": 2} | changes))
  with pytest.raises(WorkdirError) as caught:
    experiment.run(config, run)
  assert told in str(caught.value)
  assert str(run) in str(caught.value)


def test_a_run_from_before_a_key_goes_on_at_its_default(base, run):
  path = run / "config.json"
  config = json.loads(path.read_text())
  del config["data"]["validation"]
  write_json(path, config)
  given = resolve(make_config(SBC, base / "data", seeds=2))
  with Workdir(run) as folder:
    folder.claim(given)
    given.data.validation = 5
    with pytest.raises(WorkdirError, match="validation=0, not 5"):
      folder.claim(given)


def test_a_key_from_after_a_run_that_nothing_reads_may_differ(base, run):
  """As those of a method that came later, and that is not this run's."""
  path = run / "config.json"
  config = json.loads(path.read_text())
  del config["method"]["adapted"]
  write_json(path, config)
  given = resolve(make_config(SBC, base / "data", seeds=2))
  given.method.adapted = 8
  Workdir(run).claim(given)
  given.method.name = "pgma"
  with pytest.raises(WorkdirError, match=r"config\.method.adapted=80, not 8"):
    Workdir(run).claim(given)


@pytest.mark.usefixtures("no_data")
def test_another_run_is_refused_where_only_results_tell_of_it(base, run):
  (run / "config.json").unlink()
  config = make_config(SBC, base / "data", seeds=2)
  assert experiment.run(config, run) == read_results(base / "run")
  config.network.hidden = 9
  with pytest.raises(WorkdirError, match="hidden=8, not 9"):
    experiment.run(config, run)
  (run / "results.json").unlink()
  with pytest.raises(WorkdirError, match=r"config\.json is gone, which says what"):
    experiment.run(config, run)


def test_facts_that_say_nothing_are_told(base, run):
  (run / "results.json").unlink()
  (run / "run.json").write_text("{}")
  with pytest.raises(WorkdirError, match=r"run\.json does not say what the run was"):
    experiment.run(make_config(SBC, base / "data", seeds=2), run)


def test_other_weights_are_refused(tmp_path: Path):
  """Wherever the file lies; a run from before weights were told apart goes on."""
  facts = {"data_digest": "a", "data_source": "b", "driver": "map"}
  for stored, given, fits in (
    ({WEIGHTS: "1"}, {WEIGHTS: "1"}, True),
    ({WEIGHTS: "1"}, {WEIGHTS: "2"}, False),
    ({}, {WEIGHTS: "2"}, True),
  ):
    write_json(tmp_path / "run.json", facts | stored)
    if fits:
      assert Workdir(tmp_path).settle(facts | given) == facts | stored
    else:
      with pytest.raises(WorkdirError, match="other pre-trained weights"):
        Workdir(tmp_path).settle(facts | given)


def test_other_data_are_refused(base, run, tmp_path: Path):
  (run / "results.json").unlink()
  other = write_idx(tmp_path / "other", seed=1)
  with pytest.raises(WorkdirError, match="holds a run on other data"):
    experiment.run(make_config(SBC, other, seeds=2), run)


@pytest.mark.usefixtures("no_data")
def test_finished_run_is_only_read(base, run, tmp_path: Path, caplog):
  """Wherever the data lie now: they are not needed."""
  before = {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in files_of(run)}
  config = make_config(SBC, tmp_path / "gone", seeds=2)
  with caplog.at_level("INFO", "ebmjax"):
    assert experiment.run(config, run) == read_results(base / "run")
  assert {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in files_of(run)} == before
  source = read_results(run)["facts"]["data_source"]
  assert f"finished, on {source}; nothing is left" in caplog.text


@pytest.mark.usefixtures("no_data")
def test_a_finished_run_on_other_data_is_no_answer(base, run):
  """Neither to who asks for the full set, nor to who brings another one."""
  config = make_config(SBC, base / "data", seeds=2)
  full = make_config(SBC, base / "data", seeds=2, data__require_full=True)
  with pytest.raises(WorkdirError, match=r"asks for the full set; .* --workdir\.$"):
    experiment.run(full, run)
  same = files.load(find("mnist"), base / "data")
  assert experiment.run(config, run, same) == read_results(base / "run")
  other = same._replace(test_y=same.test_y[::-1])
  with pytest.raises(WorkdirError, match="finished, on other data"):
    experiment.run(config, run, other)


def files_of(run: Path) -> list[Path]:
  return sorted(p for p in run.rglob("*") if p.is_file() and p.name != ".lock")


def test_same_data_elsewhere_and_lost_results(base, run, tmp_path: Path, monkeypatch):
  """The report is made again from the records, without a step of training."""
  monkeypatch.setattr(plots, "draw", lambda history, scalars: {})
  (run / "results.json").unlink()
  moved = Path(shutil.copytree(base / "data", tmp_path / "moved"))
  scalars = (run / "scalars.jsonl").read_bytes()
  results = experiment.run(make_config(SBC, moved, seeds=2), run)
  expected = read_results(base / "run")
  assert results["facts"]["steps_per_second"] is None
  for made in (results, expected):
    for timing in TIMINGS:
      del made["facts"][timing]
    del made["config"]["data"]["dir"]
  assert results == expected
  assert (run / "scalars.jsonl").read_bytes() == scalars


def test_the_commits_of_all_starts_are_kept(base, run, monkeypatch):
  """Of a run from before they were, that of its first start."""
  monkeypatch.setattr(plots, "draw", lambda history, scalars: {})
  facts = json.loads((run / "run.json").read_text())
  del facts["commits"]
  facts["environment"]["commit"] = "a"
  write_json(run / "run.json", facts)
  for commit in ("b", "a", None, "b"):
    (run / "results.json").unlink()
    monkeypatch.setattr(environment, "commit", lambda commit=commit: commit)
    results = experiment.run(make_config(SBC, base / "data", seeds=2), run)
    assert results["facts"]["commits"] == ["a", "b"]
    assert results["facts"]["environment"]["commit"] == "a"
  rows = markup.element("div", *report_facts.sections(results))
  assert "a, b" in str(rows)
  assert store.make_entry(results, "now", {}).commits == ["a", "b"]


@pytest.mark.parametrize("name", ["config.json", "run.json", "results.json"])
@pytest.mark.parametrize("content", [b"", b'{"a": 1', b"\xff\xfe\x00"])
def test_damaged_json_is_named(base, run, name, content):
  if name == "run.json":
    (run / "results.json").unlink()
  (run / name).write_bytes(content)
  with pytest.raises(WorkdirError) as caught:
    experiment.run(make_config(SBC, base / "data", seeds=2), run)
  assert f"{run / name} cannot be read as JSON; remove" in str(caught.value)


def test_a_damaged_results_file_is_mended_as_told(base, run, monkeypatch):
  """The run is not lost with it."""
  monkeypatch.setattr(plots, "draw", lambda history, scalars: {})
  (run / "results.json").write_text("{")
  config = make_config(SBC, base / "data", seeds=2)
  with pytest.raises(WorkdirError, match=r"remove this file, and the run's command"):
    experiment.run(config, run)
  (run / "results.json").unlink()
  results = experiment.run(config, run)
  assert results["per_seed"] == read_results(base / "run")["per_seed"]


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
      folder.add_scalars([{"step": made, "loss": 0.1}])
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
  write_json(tmp_path / "a.json", {"b": 1, "a": [1.5, None]})
  write_json(tmp_path / "a.json", {"b": 2})
  assert json.loads((tmp_path / "a.json").read_text()) == {"b": 2}
  assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
