"""Times add up: over activities that fail, and over the starts of a run."""

import datetime
import json
import shutil
import time

import pytest

from ebmjax import experiment
from ebmjax.report import plots
from ebmjax.runtime import json_files
from ebmjax.runtime.timing import Stopwatch
from tests.helpers import SPLIT, make_config, write_idx


def test_an_activity_counts_even_when_it_fails():
  watch = Stopwatch(time.perf_counter(), "saving", "training")
  for _ in range(2):
    with pytest.raises(OSError), watch("saving"):
      raise OSError
  seconds = watch.spent()["seconds"]
  assert seconds["saving"] > 0 == seconds["training"]


def test_the_first_chunk_is_not_in_the_speed(monkeypatch):
  now = 100.0
  monkeypatch.setattr("ebmjax.runtime.timing.time.perf_counter", lambda: now)
  watch = Stopwatch(now - 5, "training")
  assert watch.summary()["steps_per_second"] is None
  for seconds in (8.0, 1.0, 3.0):
    with watch("training"):
      now += seconds
    watch.count(100)
  summary = watch.summary()
  assert datetime.datetime.fromisoformat(summary.pop("finished")).tzinfo is not None
  assert summary == {
    "steps_per_second": 50,
    "seconds_to_first_chunk": 13,
    "wall_time": 17,
    "seconds": {"training": 12},
  }


def test_a_run_that_goes_on_counts_the_time_up_to_its_checkpoint(tmp_path, monkeypatch):
  monkeypatch.setattr(plots, "draw", lambda history, scalars: {})
  config = make_config(f"{SPLIT}:smoke", write_idx(tmp_path / "data"))
  workdir = tmp_path / "run"
  once = experiment.run(config, workdir)["facts"]
  assert once["wall_time"] > sum(once["seconds"].values()) > 0
  boundary, end = sorted(int(path.name) for path in (workdir / "checkpoints").iterdir())
  manifest = workdir / "checkpoints" / str(boundary) / "manifest.json"
  content = json.loads(manifest.read_text())
  assert 0 < content["spent"]["wall_time"] < once["wall_time"]
  content["spent"]["wall_time"] += 1000
  content["spent"]["seconds"]["training"] += 900
  json_files.write(manifest, content)
  shutil.rmtree(workdir / "checkpoints" / str(end))
  (workdir / "results.json").unlink()
  again = experiment.run(config, workdir)["facts"]
  assert 1000 < again["wall_time"] < 1000 + 2 * once["wall_time"] + 60
  assert 900 < again["seconds"]["training"] < 1000
