"""What is missing is run: in processes that fail, are killed, or meet each other."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ebmjax.errors import BusyError, UserError
from ebmjax.paper import claims, commands, running
from ebmjax.paper.cells import Cell, all_cells
from ebmjax.paper.running import (
  Outcome,
  Session,
  Settings,
  read_ledger,
  run_command,
  time_left,
)
from tests.helpers import ROOT, SPLIT, environment, write_idx

# A user's own configuration file: `slow` has many stops, `broken` fails in its run.
CONFIG = f"""
from ebmjax.config import loading
from tests.helpers import SMALL

def get_config(variants=None):
  config = loading.load("{SPLIT}:smoke,sbc")
  config.update_from_flattened_dict(SMALL)
  if variants == "slow":
    config.stream.iterations = 60
    config.checkpoint.every = 10
    config.runner.chunk = 3
  if variants == "broken":
    config.stream.iterations = 1  # the cheapest, so it comes first
    config.stream.batch_size = 601
  return config
"""
SESSION = """
import sys
from pathlib import Path
from tests.test_reproduce_running import make_cell, make_settings
from ebmjax.paper.running import Session
base = Path(sys.argv[1])
Session([make_cell(base, "slow")], make_settings(base, "killed"), seeds=2).run()
"""


class Story(NamedTuple):
  """A session that is killed, what others find meanwhile, and what comes after."""

  settings: Settings
  meanwhile: list[Outcome]  # while it stands, and while its run alone is left
  begun: int  # bytes of the run's log when all was killed
  after: Outcome  # of the same seeds, with a cell that fails first
  more: Outcome  # of three seeds instead of two
  again: Outcome


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Iterator[Path]:
  """Returns a folder with data and configuration; runs share compiled programs."""
  base = tmp_path_factory.mktemp("reproduce")
  write_idx(base / "mnist")
  (base / "small.py").write_text(CONFIG)
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv("JAX_COMPILATION_CACHE_DIR", str(base / "cache"))
    yield base


def make_cell(base: Path, variants: str) -> Cell:
  """Returns a cell whose published figure is 50 +- 1."""
  chosen = f"{base / 'small.py'}:{variants}"
  cell_id = f"table/{variants}/mnist"
  return Cell(cell_id, "table", "sbc", "mnist", 50.0, 1.0, 10, chosen)


def make_settings(base: Path, runs: str) -> Settings:
  """Returns settings that allow the 600 images of the tests' own."""
  folders = {"mnist": str(base / "mnist")}
  measured = base / "no_measured.json"
  return Settings(base / runs, folders, full=False, measured=measured)


@pytest.fixture(scope="module")
def story(base: Path) -> Story:
  settings = make_settings(base, "killed")
  slow, broken = [make_cell(base, "slow")], [make_cell(base, "broken")]
  meanwhile = watch_and_kill(base, slow, settings)
  assert not any(settings.runs.glob("*/*/results.json"))
  begun = log_of(settings).stat().st_size
  limit = time.monotonic() + 300
  while (after := Session(slow + broken, settings, seeds=2).run()).busy:
    assert time.monotonic() < limit, "the killed run still holds its folder"
    time.sleep(0.05)
  more, again = (Session(slow, settings, seeds=3).run() for _ in range(2))
  return Story(settings, meanwhile, begun, after, more, again)


def watch_and_kill(base: Path, cells: list[Cell], settings: Settings) -> list[Outcome]:
  """Returns what a second session finds before and after the first one is killed."""
  process = subprocess.Popen(
    [sys.executable, "-c", SESSION, str(base)],
    cwd=ROOT,
    env=environment(base / "cache"),
    start_new_session=True,
  )
  meanwhile = []
  try:
    # Step 20 is whole by the time that step 30 is being written.
    wait_for(lambda: any(settings.runs.glob("*/*/checkpoints/30*")), process)
    os.killpg(process.pid, signal.SIGSTOP)
    meanwhile.append(Session(cells, settings, seeds=2).run())
    process.kill()
    process.wait()
    meanwhile.append(Session(cells, settings, seeds=2).run())
  finally:
    os.killpg(process.pid, signal.SIGKILL)
  return meanwhile


def wait_for(reached: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
  limit = time.monotonic() + 300
  while not reached():
    assert process.poll() is None, "the session ended too early"
    assert time.monotonic() < limit
    time.sleep(0.001)


def log_of(settings: Settings) -> Path:
  return next(settings.runs.glob("small-slow-*/seeds_0-1.log"))


def test_a_second_session_passes_on_what_another_process_runs(base, story):
  for outcome in story.meanwhile:
    assert [line.split(", in ")[0] for line in outcome.busy] == [
      f"{base / 'small.py'}:slow: seeds 0, 1"
    ]
    assert not outcome.finished
    assert not outcome.failed


def test_a_killed_session_is_gone_on_with(base, story):
  assert story.after.finished == [f"{base / 'small.py'}:slow: seeds 0, 1"]
  said = log_of(story.settings).read_text()[story.begun :]
  found = re.search(r"Continuing from the checkpoint of step (\d+)", said)
  assert found is not None
  assert int(found[1]) >= 20
  assert "accuracy at the end" in said


def test_a_failure_does_not_stop_the_rest(base, story):
  assert len(story.after.failed) == 1
  start = f"{base / 'small.py'}:broken: seeds 0, 1: config.stream.batch_size=601"
  assert story.after.failed[0].startswith(start)
  tried = [path.parent for path in story.settings.runs.glob("*/seeds_0-1.log")]
  logs = {path.name.split("-")[1]: path / "seeds_0-1.log" for path in tried}
  assert logs["broken"].stat().st_mtime < logs["slow"].stat().st_mtime


def test_only_missing_seeds_are_run(base, story):
  assert story.more.finished == [f"{base / 'small.py'}:slow: seed 2"]
  assert not any(story.again)
  runs = story.settings.runs
  finished = sorted(path.parent.name for path in runs.glob("*/*/results.json"))
  assert finished == ["seeds_0-1", "seeds_2-2"]
  log = next(runs.glob("small-slow-*/seeds_2-2.log")).read_text()
  assert log.count("--config.seed=2 --config.seeds=1 ") == 1
  row = read_ledger([make_cell(base, "slow")], story.settings).rows[0]
  assert row.measured is not None
  assert list(row.measured.accuracies) == [0, 1, 2]
  assert (row.verdict, row.reason) == ("not comparable", "not the full data set")


def test_a_run_s_command_has_the_data_whole_and_the_weights(base):
  cell = next(c for c in all_cells() if c.dataset == "cifar100")
  settings = Settings(base / "runs", {"cifar100": str(base)}, "weights.npz")
  claim = claims.Claim(base / "seeds_3-5", range(3, 6), handle=-1)
  command = run_command(cell.command, claim, settings)
  assert command[1:] == [
    "-m",
    "ebmjax.main",
    f"--config={ROOT / cell.command}",
    "--config.seed=3",
    "--config.seeds=3",
    "--config.data.require_full=True",
    "--config.data.source=files",
    f"--config.data.dir={base}",
    f"--config.network.pretrained={Path('weights.npz').resolve()}",
    f"--workdir={base / 'seeds_3-5'}",
  ]
  elsewhere = run_command(cell.command, claim, settings._replace(folders={}))
  assert not any("data.dir" in part or "data.source" in part for part in elsewhere)
  assert "--config.data.require_full=True" in elsewhere


def test_nothing_is_started_that_cannot_end(base):
  settings = make_settings(base, "none")
  outcome = Session([make_cell(base, "plain")], settings, budget=1e-9).run()
  assert outcome.too_long == [f"{base / 'small.py'}:plain: seed 0"]  # not all ten
  assert not any(settings.runs.glob("*/seeds_*"))


def test_a_log_that_cannot_be_written_does_not_stop_the_rest(base):
  cells, settings = [make_cell(base, "plain")], make_settings(base, "no_log")
  name = commands.short_name(cells[0].command)
  log = settings.runs / name / "seeds_0-0.log"
  log.mkdir(parents=True)  # as good as a full disk
  outcome = Session(cells, settings, seeds=1).run()
  assert outcome.failed == [
    f"{base / 'small.py'}:plain: seed 0: {log} cannot be written (Is a directory); "
    "make it writable, and the same command continues from the last checkpoint."
  ]


def test_what_a_broken_off_run_has_done_is_not_counted_again(base, tmp_path: Path):
  chosen = make_cell(base, "slow").command
  claim = claims.Claim(tmp_path, range(3), handle=-1)
  assert time_left(chosen, claim, 10.0) == 30.0
  step = 60 * commands.load(chosen).stream.tasks // 4
  (tmp_path / "scalars.jsonl").write_text(f'{{"step": {step}, "seed": 2}}\n')
  assert time_left(chosen, claim, 10.0) == 30.0 * 3 / 4


# Claims.


def test_claims_go_on_with_broken_off_runs_then_take_consecutive_seeds(tmp_path: Path):
  folder = tmp_path / "command"
  (folder / "seeds_4-5" / "checkpoints" / "20").mkdir(parents=True)
  (folder / "seeds_0-0").mkdir()
  (folder / "seeds_0-0" / "results.json").touch()
  held = []
  with claims.planning(tmp_path):
    for expected, missing in (
      (range(4, 6), range(1, 8)),
      (range(1, 4), range(1, 8)),
      (range(6, 8), range(1, 8)),
    ):
      choice = claims.choose(folder, missing)
      assert choice.claim is not None
      assert choice.claim.seeds == expected
      held.append(choice.claim)
    assert claims.choose(folder, range(1, 8)) == (None, list(range(1, 8)))
    held.pop(0).release()
    choice = claims.choose(folder, range(1, 8))
    assert choice.claim is not None
    assert (choice.claim.seeds, choice.busy) == (range(4, 6), [1, 2, 3, 6, 7])
  for claim in [*held, choice.claim]:
    claim.release()


def test_no_more_seeds_are_claimed_than_there_is_time_for(tmp_path: Path):
  for expected in (range(2), range(2, 4), range(4, 5)):
    choice = claims.choose(tmp_path, range(expected[0], 5), most=2)
    assert choice.claim is not None
    assert choice.claim.seeds == expected
    choice.claim.release()


def test_a_broken_off_run_of_more_seeds_than_asked_is_left_alone(tmp_path: Path):
  (tmp_path / "seeds_0-9" / "checkpoints" / "20").mkdir(parents=True)
  choice = claims.choose(tmp_path, range(3))
  assert choice.claim is not None
  assert choice.claim.workdir.name == "seeds_0-2"
  choice.claim.release()


def test_a_run_that_failed_at_once_binds_nobody_to_its_seeds(tmp_path: Path):
  """Five seeds were claimed without their data; now there is time for two, or ten."""
  with claims.planning(tmp_path):
    failed = claims.choose(tmp_path, range(5)).claim
  assert failed is not None
  failed.release()
  (failed.workdir / "checkpoints").mkdir(parents=True)
  for most, expected in ((2, range(2)), (None, range(10))):
    choice = claims.choose(tmp_path, range(10), most)
    assert choice.claim is not None
    assert choice.claim.seeds == expected
    choice.claim.release()


def test_runs_that_cannot_be_written_are_refused(tmp_path: Path):
  (tmp_path / "file").touch()
  with (
    pytest.raises(UserError, match="give another with --runs"),
    claims.planning(tmp_path / "file" / "runs"),
  ):
    pass


def test_a_run_s_remedies_are_told_as_the_flags_that_are_taken_here(tmp_path):
  log = tmp_path / "log"
  log.write_text("ebmjax: old\nebmjax: set config.data.dir, or another --workdir.\n")
  told = running._last_sentence(log, len("ebmjax: old\n"), 1, "mnist")
  assert told == "set config.data.dir, or another --runs. (Here: --mnist=DIR.)"
  log.write_text("ebmjax: the loss is not finite.\n")
  assert running._last_sentence(log, 0, 1, "mnist") == "the loss is not finite."
  assert running._last_sentence(log, 0, -9, "mnist").endswith(
    f"its output is in {log}."
  )


@pytest.mark.parametrize(("code", "busy"), [(BusyError.exit_code, 1), (1, 0)])
def test_a_busy_run_is_recognised_by_its_exit_code(base, monkeypatch, code, busy):
  """Whatever the words are in which it says so."""
  said = "import sys; print('ebmjax: in other words.'); sys.exit(int(sys.argv[1]))"
  command = [sys.executable, "-c", said, str(code)]
  monkeypatch.setattr(running, "run_command", lambda *_: command)
  settings = make_settings(base, f"busy-{code}")
  outcome = Session([make_cell(base, "slow")], settings, seeds=1).run()
  assert (len(outcome.busy), len(outcome.failed)) == (busy, 1 - busy)
