"""The run's folder: one configuration, one set of data, results that are its own."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ebmjax import data, experiment
from ebmjax.config.validation import resolve
from ebmjax.data import files
from ebmjax.data.registry import find
from ebmjax.errors import WorkdirError
from ebmjax.paper import store
from ebmjax.report import facts as report_facts
from ebmjax.report import markup, plots
from ebmjax.runtime import environment, json_files
from ebmjax.runtime.workdir import WEIGHTS, Workdir
from tests.helpers import (
  SPLIT,
  TIMINGS,
  make_config,
  read_results,
  write_idx,
)

SBC = f"{SPLIT}:smoke,sbc"


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


# Every part is there, but one of them is not in its form.
FACTLESS = json.dumps(
  {"config": {}, "facts": None, "average_accuracy": {}}
  | {"seeds": [0], "per_seed": [50.0], "class_names": []}
)


@pytest.mark.parametrize("content", ["{}", "[]", "[1]", '"text"', "{", FACTLESS])
def test_results_that_are_none_are_told(tmp_path: Path, content):
  (tmp_path / "results.json").write_text(content)
  told = (
    r"results\.json .*; remove this file, and the run's command continues from the last"
  )
  with pytest.raises(WorkdirError, match=told):
    Workdir(tmp_path).results()
  with pytest.raises(WorkdirError, match=r"results\.json (is not|cannot)[^;]*$"):
    Workdir(tmp_path).results(remedy="")


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
  json_files.write(path, config)
  given = resolve(make_config(SBC, base / "data", seeds=2))
  with Workdir(run) as folder:
    folder.claim(given)
    given.data.validation = 5
    with pytest.raises(WorkdirError, match="validation=0, not 5"):
      folder.claim(given)


def test_a_key_of_what_was_not_chosen_may_differ(base, run):
  """The first form stored the keys of every method, and called some by other names."""
  path = run / "config.json"
  config = json.loads(path.read_text())
  config["network"]["trunk"] = "none"
  config["method"]["adapted"] = 7
  json_files.write(path, config)
  given = resolve(make_config(SBC, base / "data", seeds=2))
  Workdir(run).claim(given)
  config["method"]["name"] = "pgma"
  json_files.write(path, config)
  changes = {"method__name": "pgma", "method__num_generated_units": 6}
  pgma = resolve(make_config(SBC, base / "data", seeds=2, **changes))
  with pytest.raises(
    WorkdirError, match=r"config\.method\.num_generated_units=7, not 6"
  ):
    Workdir(run).claim(pgma)


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
  with pytest.raises(WorkdirError, match=r"run\.json is not the facts of a run"):
    experiment.run(make_config(SBC, base / "data", seeds=2), run)


def test_other_weights_are_refused(tmp_path: Path):
  """Wherever the file lies; a run from before weights were told apart goes on."""
  facts: dict[str, Any] = {"data_digest": "a", "data_source": "b", "driver": "map"}
  facts["environment"] = {"device": "cpu"}
  for stored, given, fits in (
    ({WEIGHTS: "1"}, {WEIGHTS: "1"}, True),
    ({WEIGHTS: "1"}, {WEIGHTS: "2"}, False),
    ({}, {WEIGHTS: "2"}, True),
  ):
    json_files.write(tmp_path / "run.json", facts | stored)
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
  json_files.write(run / "run.json", facts)
  for commit in ("b", "a", None, "b"):
    (run / "results.json").unlink()
    monkeypatch.setattr(environment, "commit", lambda commit=commit: commit)
    results = experiment.run(make_config(SBC, base / "data", seeds=2), run)
    assert results["facts"]["commits"] == ["a", "b"]
    assert results["facts"]["environment"]["commit"] == "a"
  rows = markup.element("div", *report_facts.sections(results))
  assert "a, b" in str(rows)
  assert store.make_entry(results, run, {}).commits == ["a", "b"]


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
