"""A run that has lost a part of itself says so, and is mended as it tells."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ebmjax import experiment
from ebmjax.errors import WorkdirError
from ebmjax.paper import reproduce as reproduce
from ebmjax.paper import store
from ebmjax.paper.figures import FIGURES
from ebmjax.paper.figures.pooling import choose, scan
from ebmjax.report import plots, stored
from ebmjax.runtime import json_files
from ebmjax.tools.report import main as report
from tests.helpers import SPLIT, make_config, read_results, write_idx

pytestmark = pytest.mark.usefixtures("no_plots")

# Two tasks of 12 steps, evaluated at 0, 8, 12, 16 and 24.
CHANGES = {"eval__every": 8, "checkpoint__keep": 9}
FACTS = {"data_source": "mnist", "data_digest": "abc", "data_full": True}


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
  """Returns a folder with data/, and run/, a finished run."""
  base: Path = tmp_path_factory.mktemp("lost")
  write_idx(base / "data")
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(plots, "draw", lambda history, scalars: {})
    experiment.run(config_of(base), base / "run")
  return base


@pytest.fixture
def run(base: Path, tmp_path: Path) -> Path:
  return Path(shutil.copytree(base / "run", tmp_path / "run"))


def config_of(base: Path) -> Any:
  return make_config(f"{SPLIT}:smoke,sbc", base / "data", **CHANGES)


def evaluation(run: Path, step: int) -> Path:
  return run / "evaluations" / f"{step:09d}.npz"


def change_results(run: Path, **changes: Any) -> None:
  json_files.write(run / "results.json", read_results(run) | changes)


# ---- evaluations ----


@pytest.mark.parametrize("step", [12, 24])
@pytest.mark.parametrize("damage", ["lost", "damaged"])
def test_an_evaluation_is_made_again_as_told(base, run, step, damage, capsys):
  path = evaluation(run, step)
  content = path.read_bytes()
  fault = "damaged; remove it, results.json and"
  path.write_bytes(b"no numbers")
  if damage == "lost":
    path.unlink()
    fault = "missing; put it back, or remove results.json and"
  assert report([str(run)]) == 1
  told = capsys.readouterr().err
  assert told.startswith(f"ebmjax: {path} is {fault} the checkpoints of its step and")
  assert told.count("\n") == 1
  path.unlink(missing_ok=True)
  (run / "results.json").unlink()
  for checkpoint in (run / "checkpoints").iterdir():
    if int(checkpoint.name) >= step:
      shutil.rmtree(checkpoint)
  results = experiment.run(config_of(base), run)
  assert path.read_bytes() == content
  assert results["accuracy_matrix"] == read_results(base / "run")["accuracy_matrix"]
  assert report([str(run)]) == 0


@pytest.mark.parametrize("step", [0, 8, 12, 24])
@pytest.mark.parametrize("damage", ["lost", "damaged"])
def test_a_run_does_not_go_on_without_an_evaluation(base, run, step, damage):
  """Nor does it lose anything then."""
  (run / "results.json").unlink()
  path = evaluation(run, step)
  path.write_bytes(b"no numbers")
  fault = "damaged; remove it and"
  if damage == "lost":
    path.unlink()
    fault = "missing; put it back, or remove"
  before = sorted(run.rglob("*"))
  with pytest.raises(WorkdirError) as caught:
    experiment.run(config_of(base), run)
  assert str(caught.value).startswith(f"{path} is {fault} the checkpoints of its step")
  assert sorted(run.rglob("*")) == before


def test_an_evaluation_after_the_last_checkpoint_is_not_asked_for(base, run):
  """It is made again in any case."""
  (run / "results.json").unlink()
  for step in (16, 24):
    shutil.rmtree(run / "checkpoints" / str(step))
  evaluation(run, 16).unlink()
  evaluation(run, 24).write_bytes(b"no numbers")
  results = experiment.run(config_of(base), run)
  assert results["per_seed"] == read_results(base / "run")["per_seed"]


def test_results_that_alone_say_what_was_run_are_not_given_up(run):
  (run / "config.json").unlink()
  evaluation(run, 24).unlink()
  with pytest.raises(WorkdirError, match="put it back, or start the run again in"):
    stored.read(run)


def test_results_that_do_not_tell_their_plan_are_read(run):
  """As those of tools, or of whoever has cut them down."""
  results = read_results(run)
  evaluation(run, 12).unlink()
  config = {k: v for k, v in results["config"].items() if k != "eval"}
  facts = {k: v for k, v in results["facts"].items() if k != "steps"}
  for changes in ({"config": config}, {"facts": facts}):
    change_results(run, **(results | changes))
    assert len(stored.read(run).history.steps) == 4


def test_figures_leave_a_run_with_a_lost_evaluation_out(run, caplog):
  evaluation(run, 24).unlink()
  spec = FIGURES["predicted_labels"]
  (role,) = (r for r in spec.roles if r.name == "SBC, split")
  role = role._replace(keys=tuple(set(role.keys) - {"stream.tasks"}))  # it has two
  found = choose(scan(run.parent), spec._replace(roles=(role,)), allow_partial=True)
  assert found == {role.name: ()}
  assert "run is left out: " in caplog.text
  assert f"{evaluation(run, 24)} is missing; put it back" in caplog.text


# ---- the configuration ----


@pytest.mark.parametrize("content", ["{", "[1]"])
def test_a_damaged_configuration_of_a_finished_run_is_no_loss(base, run, content):
  (run / "config.json").write_text(content)
  with pytest.raises(WorkdirError, match=r"; remove this file, for results\.json hol"):
    experiment.run(config_of(base), run)
  (run / "config.json").unlink()
  assert experiment.run(config_of(base), run) == read_results(base / "run")


@pytest.mark.parametrize("results", [None, "{"])
def test_a_damaged_configuration_alone_is_one(base, run, results):
  (run / "config.json").write_text("{")
  (run / "results.json").unlink()
  if results is not None:
    (run / "results.json").write_text(results)
  with pytest.raises(
    WorkdirError, match="; remove the workdir and start the run again"
  ):
    experiment.run(config_of(base), run)


# ---- results ----


@pytest.mark.parametrize(
  "part",
  [
    *("accuracy_matrix", "per_seed", "seeds", "class_names"),
    *("config.stream", "config.stream.tasks", "config.method", "config.objective"),
    "average_accuracy.mean",
  ],
)
def test_results_with_a_part_less_are_told(base, run, part, capsys):
  """To who wants their page, and to who starts the run again."""
  results = read_results(run)
  *groups, name = part.split(".")
  branch = results
  for group in groups:
    branch = branch[group]
  del branch[name]
  (run / "results.json").write_text(json.dumps(results))
  assert report([str(run)]) == 1
  told = capsys.readouterr().err
  sentence = f"{run / 'results.json'} is not the results of a run; remove this file, an"
  assert told.startswith(f"ebmjax: {sentence}") and told.count("\n") == 1
  with pytest.raises(WorkdirError, match="is not the results of a run; remove this"):
    experiment.run(config_of(base), run)
  (run / "results.json").unlink()
  experiment.run(config_of(base), run)
  assert report([str(run)]) == 0


@pytest.mark.parametrize(
  "changes",
  [
    *({"per_seed": scores} for scores in ([], [1.0, 2.0], ["a"], [float("nan")])),
    *({"seeds": seeds} for seeds in ([], ["a"], [0, 1])),
    {"seeds": [], "per_seed": []},
    *({"config": config} for config in ({}, {"stream": 3}, {"data": 3})),
    {"facts": FACTS | {"environment": 3}},
  ],
  ids=str,
)
def test_a_bad_run_does_not_take_the_ledger_down(run, changes, caplog):
  good = Path(shutil.copytree(run, run.with_name("good")))
  change_results(run, **changes)
  (entry,) = store.find(run.parent, [])
  assert entry.accuracies == read_results(good)["per_seed"]
  assert f"{run} is left out: its results cannot be read" in caplog.text
  assert reproduce.main(["--table=alternative_objective", f"--runs={run.parent}"]) == 0
