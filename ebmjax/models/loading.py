"""Loads a finished run as a model."""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from ebmjax import data
from ebmjax.config.upgrade import upgrade
from ebmjax.config.validation import resolve
from ebmjax.errors import ConfigError, DataError, WorkdirError
from ebmjax.models.form import (
  InputForm,
  Shown,
  from_json,
  known_form,
  learner_of,
  outputs_of,
)
from ebmjax.models.model import Compiled, Model, compiler_options, make_outputs
from ebmjax.paths import expand
from ebmjax.runtime import environment, scan
from ebmjax.runtime.checkpoints import Checkpoints
from ebmjax.runtime.workdir import Workdir
from ebmjax.streams import TaskSet
from ebmjax.types import Learner, Problem, PyTree

_KNOWN = 1000  # training inputs to know the usual energies from


class FinishedRun(NamedTuple):
  """What the folder of a finished run holds."""

  path: Path
  results: dict[str, Any]
  config: ConfigDict
  form: InputForm
  seeds: list[int]


class Trained(NamedTuple):
  """The learner of a run and the states [R, ...] that its last checkpoint holds."""

  problem: Problem
  learner: Learner
  shown: Shown
  states: PyTree
  step: int


def load(run: str | Path, seed: int | None = 0) -> Model:
  """Returns the trained model of a finished run.

  `run` is its workdir and `seed` one of its seeds; None loads all of them as an
  ensemble, which averages their energies.

  model = ebmjax.load("runs/ebm")
  model.predict(x)  # x [N, 28, 28], labels [N]
  """
  found = read_run(expand(run))
  chosen = found.seeds if seed is None else [seed]
  trained = restore(found)
  columns, tasks = outputs(found, chosen)
  places = np.array([found.seeds.index(each) for each in chosen])
  states = jax.tree.map(lambda leaf: leaf[places], trained.states)
  orders = np.stack([each.permutation for each in tasks])
  compiled = Compiled(trained.learner, trained.shown, compiler_options(found.config))
  return Model(
    found.config,
    found.form,
    (trained.problem.network, compiled),
    states,
    make_outputs(columns, orders if orders.shape[2] else None),
    lambda: _training_inputs(found),
  )


def _training_inputs(found: FinishedRun) -> np.ndarray:
  """Returns some of the inputs [N, ...] that a run was trained on, as stored."""
  try:
    dataset = data.load(found.config.data)
  except DataError as error:
    raise DataError(
      f"the training data of {found.path} are needed to know which energies are usual: "
      f"{error}"
    ) from error
  if data.digest(dataset) != found.results["facts"].get("data_digest"):
    raise DataError(
      f"the data that config.data of {found.path} names are not those that it was "
      "trained on, which are needed to know which energies are usual: put them back, "
      "or leave reject out."
    )
  every = -(-len(dataset.train_x) // _KNOWN)
  return dataset.train_x[::every]


def outputs(found: FinishedRun, seeds: list[int]) -> tuple[list[Any], list[TaskSet]]:
  """Returns, for each seed, the labels of its network's outputs and its tasks."""
  for seed in seeds:
    if seed not in found.seeds:
      raise WorkdirError(
        f"{found.path} has no seed {seed}; its seeds are {found.seeds}."
      )
  pairs = [outputs_of(found.config, found.form, seed) for seed in seeds]
  return [labels for labels, _ in pairs], [tasks for _, tasks in pairs]


def read_run(path: Path) -> FinishedRun:
  """Returns what results.json says of a finished run, of this version or before."""
  results = Workdir(path).results()  # not entered: a mistyped folder is not made
  if results is None:
    raise WorkdirError(
      f"{path} holds no finished run; give the --workdir of a run that has ended."
    )
  try:
    config = resolve(ConfigDict(upgrade(results["config"])))
    stored = results["facts"].get("inputs")
    form = from_json(stored) if stored else known_form(config)
  except (AttributeError, KeyError, TypeError, ValueError, ConfigError) as error:
    raise WorkdirError(
      f"{path / 'results.json'} is not the results of a run that this version can load "
      f"({error}); give the --workdir of another run."
    ) from error
  if form is None:
    raise WorkdirError(
      f"{path} does not say which inputs it was trained on, or draws them itself; run "
      "it again, on your own data or a registered set."
    )
  return FinishedRun(path, results, config, form, list(results["seeds"]))


def restore(found: FinishedRun) -> Trained:
  """Returns the learner of a run with the states of its last checkpoint."""
  environment.require_usual()
  folder = found.path / "checkpoints"
  if not folder.is_dir():  # which would be made
    raise _no_checkpoints(found.path)
  config, form = found.config, found.form
  keys = jnp.stack([jax.random.key(seed) for seed in found.seeds])
  _, (tasks, *_) = outputs(found, found.seeds)
  problem, learner, shown = learner_of(config, form, tasks.classes, keys)
  like = scan.make_init(learner)(keys)
  with Checkpoints(folder, config.checkpoint.keep) as keeper:
    restored = keeper.restore(like)
  if restored is None:
    raise _no_checkpoints(found.path)
  step, states = restored
  return Trained(problem, learner, shown, states, step)


def _no_checkpoints(path: Path) -> WorkdirError:
  return WorkdirError(
    f"{path} has no checkpoints; put them back, or run it again in another --workdir."
  )
