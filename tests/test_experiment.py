"""Every shipped experiment and variant, made small, from its files to its report."""

import csv
import html
import json
import shlex
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from ebmjax import experiment, main, methods
from ebmjax.config import default, loading, with_settings
from ebmjax.config.validation import resolve
from ebmjax.errors import DivergenceError
from ebmjax.methods.finetune import FINETUNE, finetune
from ebmjax.runtime import divergence, json_files, trainer
from ebmjax.runtime.plan import Milestone
from tests.helpers import (
  PERMUTED,
  SPLIT,
  assert_same_bits,
  make_config,
  overrides,
  read_results,
  write_idx,
)

UNTRAINED = Milestone(0, -1, ends_task=False, evaluate=True)
PNG = b"\x89PNG\r\n\x1a\n"
SOURCE = (
  "mnist, not the official set: 600 training and 200 test images of the user's own "
  "idx files"
)


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory) -> Path:
  return write_idx(tmp_path_factory.mktemp("data"))


def evaluations_of(workdir: Path) -> dict[int, dict[str, np.ndarray]]:
  found = {}
  for path in sorted((workdir / "evaluations").glob("*.npz")):
    with np.load(path) as file:
      found[int(path.stem)] = dict(file)
  return found


def scalars_of(workdir: Path) -> list[dict[str, Any]]:
  lines = (workdir / "scalars.jsonl").read_text().splitlines()
  return [json.loads(line) for line in lines]


def check_run(workdir: Path, steps: int, classes: int) -> dict[str, Any]:
  """Returns the results of a run of two seeds and two tasks, after checking them."""
  results = read_results(workdir)
  average = results["average_accuracy"]
  assert average.keys() == {"mean", "sem", "n", "per_seed"}
  assert average["per_seed"] == results["per_seed"]
  assert average["n"] == 2
  assert 0 <= average["mean"] <= 100
  assert results["seeds"] == [0, 1]
  assert np.shape(results["accuracy_matrix"]) == (2, 2, 2)
  last = np.array(results["accuracy_matrix"], float)[:, -1]
  np.testing.assert_allclose(results["per_seed"], last.mean(axis=1), atol=1e-5)
  np.testing.assert_allclose(average["mean"], last.mean(), atol=1e-5)
  assert len(results["class_names"]) == classes
  facts = results["facts"]
  assert (facts["data_source"], facts["data_full"]) == (SOURCE, False)
  assert (facts["driver"], facts["steps"]) == ("map", steps)
  assert facts["environment"]["backend"] == "cpu"
  assert json_files.read(workdir / "config.json", {}, "") == results["config"]
  check_records(workdir, steps, classes)
  return results


def check_records(workdir: Path, steps: int, classes: int) -> None:
  found = evaluations_of(workdir)
  last = found[steps]
  assert last["accuracy"].shape == (2, 2)
  assert last["confusion"].shape == last["energies"].shape == (2, classes, classes)
  # Permuted tasks have every image each, split ones share the images out.
  tested = 400 if workdir.name == "permuted" else 200
  np.testing.assert_array_equal(last["confusion"].sum(axis=(1, 2)), tested)
  hits = np.trace(last["confusion"], axis1=1, axis2=2) / tested
  np.testing.assert_allclose(last["accuracy"].mean(axis=1), hits)
  losses = scalars_of(workdir)
  assert {line["seed"] for line in losses} == {0, 1}
  assert losses[-1]["step"] == steps
  assert np.isfinite([line["loss"] for line in losses]).all()
  assert any((workdir / "tensorboard").glob("events.out.tfevents.*"))
  assert (workdir / "checkpoints" / str(steps)).is_dir()


def rows_of(path: Path) -> list[dict[str, str]]:
  with path.open() as file:
    return list(csv.DictReader(file))


@pytest.mark.usefixtures("no_plots")
@pytest.mark.parametrize("variants", ["", "sbc", "joint_pairs", "boundary_free"])
def test_split(variants, data_dir, tmp_path: Path):
  workdir = tmp_path / "split"
  config = make_config(f"{SPLIT}:smoke,{variants}", data_dir, seeds=2)
  experiment.run(config, workdir)
  # Boundary-free: one epoch of two tasks of 300 images, 18 full batches each.
  free = "boundary_free" in variants
  results = check_run(workdir, steps=36 if free else 24, classes=10)
  assert results["class_names"] == list("0123456789")
  unseen = [matrix[0][1] for matrix in results["accuracy_matrix"]]
  assert (unseen == [None, None]) is not free
  assert sorted(evaluations_of(workdir)) == ([0, 18, 36] if free else [0, 12, 24])
  assert len(rows_of(workdir / "accuracy_matrix.csv")) == 2 * 2 * 2


@pytest.mark.usefixtures("no_plots")
@pytest.mark.parametrize("variants", ["", "contrastive,sbc", "boundary_free,sbc"])
def test_permuted(variants, data_dir, tmp_path: Path):
  workdir = tmp_path / "permuted"
  config = make_config(f"{PERMUTED}:smoke,{variants}", data_dir, seeds=2)
  experiment.run(config, workdir)
  free = "boundary_free" in variants
  results = check_run(workdir, steps=74 if free else 24, classes=20)
  assert results["class_names"][9:11] == ["1:9", "2:0"]
  assert sorted(evaluations_of(workdir)) == ([74] if free else [0, 12, 24])


OTHERS: dict[str, tuple[str, dict[str, Any], int, int]] = {
  "domain-incremental, softmax gate": (
    f"{SPLIT}:smoke",
    {"stream__scenario": "domain", "network__gate": "softmax"},
    24,
    5,
  ),
  "random class order, no gate's norm": (
    f"{SPLIT}:smoke",
    {"stream__class_order": "random", "network__gate": "none", "network__skip": False},
    24,
    10,
  ),
  "domain-incremental permuted": (
    f"{PERMUTED}:smoke,sbc",
    {"stream__scenario": "domain"},
    24,
    10,
  ),
}


@pytest.mark.usefixtures("no_plots")
def test_a_task_told_is_told_at_test_time(data_dir, tmp_path: Path):
  """Only its own classes are candidates: what a class-incremental run states beside."""
  changes = {"stream__scenario": "task", "network__embedding": "fixed", "seeds": 2}
  config = make_config(f"{SPLIT}:smoke", data_dir, **changes)
  experiment.run(config, tmp_path / "run")
  results = check_run(tmp_path / "run", steps=24, classes=10)
  told = results["task_incremental_accuracy"]["mean"]
  assert results["average_accuracy"]["mean"] == pytest.approx(told)
  confusion = evaluations_of(tmp_path / "run")[24]["confusion"][0]
  assert confusion[:5, 5:].sum() == confusion[5:, :5].sum() == 0


@pytest.mark.usefixtures("no_plots")
@pytest.mark.parametrize(
  ("chosen", "changes", "steps", "classes"), OTHERS.values(), ids=OTHERS.keys()
)
def test_other_parts(chosen, changes, steps, classes, data_dir, tmp_path: Path):
  workdir = tmp_path / ("permuted" if chosen.startswith(PERMUTED) else "split")
  config = make_config(chosen, data_dir, seeds=2, **changes)
  experiment.run(config, workdir)
  check_run(workdir, steps, classes)


def test_the_command_leaves_everything_and_learns(data_dir, tmp_path: Path, capsys):
  """Ten clear patterns, one task: a run that does not learn them is broken."""
  workdir = tmp_path / "run"
  changes = {
    "seeds": 2,
    "stream.tasks": 1,
    "stream.iterations": 60,
    "network.hidden": 32,
    "optimiser.learning_rate": 0.01,
  }
  flags = overrides(data_dir, **{k.replace(".", "__"): v for k, v in changes.items()})
  arguments = [f"--config={SPLIT}:smoke,sbc", *flags, f"--workdir={workdir}"]
  assert main.main(arguments) == 0
  results = read_results(workdir)
  assert results["average_accuracy"]["mean"] > 95
  losses = [line["loss"] for line in scalars_of(workdir)]
  assert losses[-1] < 0.1 < losses[0]
  present = {str(path.relative_to(workdir)) for path in workdir.rglob("*")}
  assert present >= {
    "results.json",
    "report.html",
    "config.json",
    "run.json",
    "scalars.jsonl",
    "accuracy_matrix.csv",
    "eval_results.csv",
    "evaluations/000000060.npz",
    "plots/confusion.png",
    "plots/energies.png",
    "plots/loss.png",
    "checkpoints/60",
  }
  for path in (workdir / "plots").glob("*.png"):
    assert path.read_bytes().startswith(PNG)
  command = results["facts"]["command"]
  assert command in html.unescape((workdir / "report.html").read_text("utf-8"))
  again, _ = loading.parse(shlex.split(command)[2:])
  assert json.loads(json.dumps(resolve(again).to_dict())) == results["config"]
  out = capsys.readouterr().out
  # The table breaks long lines.
  assert " ".join(out.split()).count(SOURCE) == 1
  assert f"Results, tables and figures: {workdir}" in out
  assert f"{results['average_accuracy']['mean']:.2f} +- " in out


@pytest.mark.usefixtures("no_plots")
def test_divergence_names_the_seed_and_the_step(
  data_dir, tmp_path: Path, capsys, monkeypatch
):
  """The run stops, without results, at a loss that is not a number; twice alike."""
  poison_loss(monkeypatch, seed=4, step=16)
  workdir = tmp_path / "run"
  flags = overrides(data_dir, seed=3, seeds=2)
  arguments = [f"--config={SPLIT}:smoke", *flags, f"--workdir={workdir}"]
  for _ in range(2):
    assert main.main(arguments) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith(
      "ebmjax: the loss of finetune with seed 4 is not finite at step 16; lower "
      "config.optimiser.learning_rate (now 0.0001)"
    )
    assert not (workdir / "results.json").exists()
    assert [p.name for p in (workdir / "checkpoints").iterdir()] == ["12"]
    assert sorted(evaluations_of(workdir)) == [0, 12]


def test_what_the_last_step_ruined_is_no_result():
  """Its loss was finite: it is taken before the weights move."""
  config, fine = default(), np.ones((2, 3, 3))
  divergence.check_energies(config, [4, 5], [{"energy_sum": fine}], 7)
  bad = fine.copy()
  bad[1, 0, 2] = np.inf
  with pytest.raises(
    DivergenceError,
    match="an energy of finetune with seed 5 is not finite after step 7",
  ):
    divergence.check_energies(
      config, [4, 5], [{"energy_sum": fine}, {"energy_sum": bad}], 7
    )


def test_training_does_not_wait_for_the_untrained_network_s_evaluation(
  data_dir, tmp_path: Path, no_plots, monkeypatch
):
  """It follows the first chunk, and finds what it would have found before it."""
  done: list[Any] = []
  found: list[Any] = []
  train, evaluate = trainer.Trainer.train, trainer.Trainer.evaluate

  def spy_train(machine, chunk):
    if not done:
      found.append(evaluate(machine, UNTRAINED))
    done.append(int(chunk.step[0]))
    return train(machine, chunk)

  def spy_evaluate(machine, milestone):
    done.append(milestone)
    found.append(evaluate(machine, milestone))
    return found[-1]

  monkeypatch.setattr(trainer.Trainer, "train", spy_train)
  monkeypatch.setattr(trainer.Trainer, "evaluate", spy_evaluate)
  config = make_config(f"{SPLIT}:smoke", data_dir, runner__chunk=3)
  experiment.run(config, tmp_path)
  assert done[:3] == [0, UNTRAINED, 3]
  assert_same_bits(*(each._asdict() for each in found[:2]))
  assert 0 in evaluations_of(tmp_path)


def test_a_run_whose_energies_are_infinite_fails(data_dir, tmp_path, monkeypatch):
  def poisoned(*parts):
    learner = finetune(*parts)
    return learner._replace(energies=lambda *asked: np.inf * learner.energies(*asked))

  monkeypatch.setitem(methods.METHODS, "finetune", FINETUNE._replace(make=poisoned))
  with pytest.raises(DivergenceError, match="an energy of finetune with seed 0"):
    experiment.run(make_config(f"{SPLIT}:smoke", data_dir), tmp_path)
  assert not (tmp_path / "results.json").exists()


def poison_loss(monkeypatch, seed: int, step: int) -> None:
  """Makes the loss of one seed NaN from one step on."""
  own = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), 1), step)

  def poisoned(*parts):
    learner = finetune(*parts)

    def stepped(state, key, batch):
      state, metrics = learner.step(state, key, batch)
      hit = (jax.random.key_data(key) == jax.random.key_data(own)).all()
      return state, {"loss": jax.numpy.where(hit, jax.numpy.nan, metrics["loss"])}

    return learner._replace(step=stepped)

  monkeypatch.setitem(methods.METHODS, "finetune", FINETUNE._replace(make=poisoned))


@pytest.mark.parametrize(
  ("method", "keys"),
  [
    ("finetune", ["optimiser.learning_rate"]),
    ("ewc", ["optimiser.learning_rate", "method.strength"]),
    ("bgd", ["method.std_init", "method.step_size"]),
  ],
)
def test_what_to_lower_is_what_the_method_has(method, keys):
  config = with_settings(default(), {"method.name": method})
  told = divergence.what_diverges(config)
  assert [part.split(" ")[0] for part in told.split(" or ")] == [
    f"config.{key}" for key in keys
  ]


def test_a_run_traces_each_function_of_its_learner_once(
  data_dir, tmp_path, no_plots, monkeypatch
):
  """Its programs and the count of its operations share one trace."""
  traced = dict.fromkeys(("init", "step", "consolidate", "energies"), 0)
  make = trainer.make_learner

  def counted(name, function):
    def call(*arguments):
      traced[name] += 1
      return function(*arguments)

    return call

  def make_counted(*arguments):
    learner = make(*arguments)
    parts = {name: counted(name, getattr(learner, name)) for name in traced}
    return learner._replace(**parts)

  monkeypatch.setattr(trainer, "make_learner", make_counted)
  experiment.run(make_config(f"{SPLIT}:ewc,sbc,smoke", data_dir), tmp_path)
  assert set(traced.values()) == {1}, traced
