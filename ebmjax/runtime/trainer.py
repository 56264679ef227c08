"""Builds the parts of a run from its configuration, and trains with them."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from ml_collections import ConfigDict

from ebmjax import data, methods, networks, objectives, streams
from ebmjax.config.constraints import (
  require_classes,
  require_period,
  require_shape,
)
from ebmjax.errors import DivergenceError
from ebmjax.methods import optimisers
from ebmjax.networks.normalisation import Preparation
from ebmjax.runtime import divergence, evaluation, feeding, precision, scan, varied
from ebmjax.runtime.features import Features
from ebmjax.runtime.plan import Milestone, meets_new_classes, tasks_to_evaluate
from ebmjax.runtime.sharding import SeedSharding, make_sharding
from ebmjax.streams.augmentation import AUGMENTATIONS
from ebmjax.types import (
  Dataset,
  Evaluation,
  Learner,
  Network,
  Problem,
  PyTree,
  num_params,
  trace_once,
)

_log = logging.getLogger("ebmjax")


class RunSpec(NamedTuple):
  """Everything that a run needs and that stays constant while it runs."""

  configs: tuple[ConfigDict, ...]  # [P], of settings that are trained together
  seeds: list[int]  # of each setting
  stream: streams.Stream  # stacked: leading axis of the seeds, the same in all settings
  tables: scan.SeedTables
  train_images: scan.Images
  test_images: scan.Images
  network: Network
  learner: Learner
  driver: str
  sharding: SeedSharding
  options: scan.CompilerOptions
  class_names: tuple[str, ...]
  vary: Callable[[], Learner] | None = None  # builds that of all settings, if several

  @property
  def config(self) -> ConfigDict:
    """Returns the first setting's configuration, which has all that they share."""
    return self.configs[0]

  def block(self, point: int) -> slice:
    """Returns where a setting's seeds lie among all R runs."""
    return slice(point * len(self.seeds), (point + 1) * len(self.seeds))

  def of_settings(self, tree: PyTree) -> PyTree:
    """Returns leaves [R, ...]: those of the seeds, once for each setting."""
    count = len(self.configs)
    return tree if count == 1 else jax.tree.map(lambda a: _repeated(a, count), tree)


def _repeated(leaf: Any, count: int) -> Any:
  return (np if isinstance(leaf, np.ndarray) else jnp).concatenate([leaf] * count)


def make_run_spec(
  config: ConfigDict | Sequence[ConfigDict], dataset: Dataset, driver: str
) -> RunSpec:
  """Builds the run's parts: streams of all seeds, arrays on the device, learner.

  Of several configurations, which differ in traced keys alone, it is one run.
  """
  configs = (config,) if isinstance(config, ConfigDict) else tuple(config)
  config = configs[0]
  seeds = list(range(config.seed, config.seed + config.seeds))
  sharding = make_sharding(config, len(seeds) * len(configs), driver)
  shown, shape = config.stream, dataset.shape
  labels = dataset.train_y, dataset.test_y
  stream = streams.stack(
    [streams.build(shown, *labels, seed=seed, shape=shape) for seed in seeds]
  )
  require_shape(config, shape)
  require_period(config, stream.rows.shape[-2])
  tasks = streams.make_tasks(
    shown,
    num_raw=dataset.num_classes,
    seed=config.seed,
    shape=shape,
    class_names=dataset.class_names,
  )
  require_classes(config, tasks.classes.sum(axis=1))
  prepare = preparation(config, dataset)
  train, test = _shown_sets(config, dataset, prepare)
  tables = scan.seed_tables(stream, seeds, test_multiple=_block(config, stream))
  train_images, test_images = feeding.place((train, test), config, sharding)
  row = jax.ShapeDtypeStruct(train.x.shape[1:], train.x.dtype)
  keys = jax.vmap(scan.init_key)(tables.key)
  problem = make_problem(config, row, tasks.classes, keys, prepare)
  values = varied.values_of(configs) if len(configs) > 1 else {}

  def with_values(values: varied.Values) -> Learner:
    return trace_once(make_learner(config, problem, values))

  return RunSpec(
    configs=configs,
    seeds=seeds,
    stream=stream,
    tables=tables,
    train_images=train_images,
    test_images=test_images,
    network=problem.network,
    learner=with_values({}),
    driver=driver,
    sharding=sharding,
    options=networks.find(config.network.name).compiler_options(config.network),
    class_names=tasks.names,
    vary=(lambda: varied.learner_of(with_values, values)) if values else None,
  )


def make_learner(
  config: ConfigDict, problem: Problem, values: varied.Values | None = None
) -> Learner:
  """Builds the method that the configuration names over a problem, in its precision.

  `values` replace those of dotted keys.
  """

  def group(name: str) -> dict[str, Any]:
    given, start = values or {}, f"{name}."
    own = {k.removeprefix(start): given[k] for k in given if k.startswith(start)}
    return dict(config[name]) | own

  settings = group("method")
  if values:
    problem = problem._replace(tx=optimisers.make(group("optimiser")))
  learner = methods.make(settings.pop("name"), problem, **settings)
  return precision.with_precision(learner, config.runner.precision)


def make_problem(
  config: ConfigDict,
  row: jax.ShapeDtypeStruct,
  classes: np.ndarray,
  keys: Array,
  prepare: Preparation | None = None,
) -> Problem:
  """Builds the network, objective and optimiser that the configuration names.

  `row` is one input, classes [T, C] are the labels of each task, `keys` [R] those that
  `init` will get, and `prepare` what an input goes through before the network.
  """
  network = networks.make(
    config.network,
    input_shape=row.shape,
    num_classes=classes.shape[1],
    num_tasks=classes.shape[0],
    normalise=prepare or preparation(config),
    init_keys=keys,
    seeds=range(config.seed, config.seed + config.seeds),
    max_labels=_max_labels(config, classes),
  )
  objective = objectives.make(config.objective, config.negatives)
  tx = optimisers.make(config.optimiser)
  augment = AUGMENTATIONS[config.data.augment]
  return Problem(network, objective, tx, row, classes.shape[0], augment)


def _block(config: ConfigDict, stream: streams.Stream) -> int:
  """Returns how many test images are evaluated at a time, no more than a task has."""
  return min(int(config.eval.batch_size), stream.test_rows.shape[-1])


def _shown_sets(
  config: ConfigDict, dataset: Dataset, prepare: Preparation
) -> list[scan.Images]:
  """Returns training and test images as `shown_inputs` does, features on demand."""
  sets = ((dataset.train_x, dataset.train_y), (dataset.test_x, dataset.test_y))
  shape, trunk = shown_images(config), frozen_trunk(config, prepare)
  if trunk is None:
    return [scan.Images(shape(x), y) for x, y in sets]
  _log.info("The frozen trunk computes features once, of each task when it comes.")
  return [scan.Images(Features(trunk, shape(x), y), y) for x, y in sets]


def shown_inputs(
  config: ConfigDict, prepare: Preparation
) -> Callable[[np.ndarray], np.ndarray]:
  """Returns f(images [N, ...]) -> what the network is shown.

  These are the images, or a frozen trunk's features of them. The trunk is read and
  compiled once for all calls of f.
  """
  shape, trunk = shown_images(config), frozen_trunk(config, prepare)
  if trunk is None:
    return shape
  features = networks.feature_function(trunk)
  return lambda images: features(shape(images))


def shown_images(config: ConfigDict) -> Callable[[Any], Any]:
  """Returns f(images [N, ...]) -> images as the network or its trunk takes them."""
  stream, takes_rows = config.stream, networks.find(config.network.name).takes_rows

  def shown(images: Any) -> Any:
    if images.ndim == 3 and not takes_rows:
      return images[..., None]  # one channel
    return streams.shown_images(stream, images)

  return shown


def frozen_trunk(
  config: ConfigDict, prepare: Preparation
) -> Callable[[Array], Array] | None:
  """Returns what is computed once of every image; None where nothing is."""
  make = networks.find(config.network.name).cached_trunk(config.network)
  return make and make(prepare)


def _max_labels(config: ConfigDict, classes: np.ndarray) -> int:
  """Returns how many distinct labels one batch's candidates can hold.

  Negatives of the batch or of its task: a batch shows one task, or two while they fade
  into each other. Replay brings the older classes in.
  """
  per_task, in_all = int(classes.sum(axis=1).max()), classes.shape[1]
  older = config.negatives in ("all_seen", "all_classes")
  if older or methods.find(config.method.name).mixes_tasks:
    return in_all
  shown = {"boundary_aware": 1, "boundary_free": 2, "joint": len(classes)}
  return min(shown[config.stream.setting] * per_task, in_all)


def preparation(config: ConfigDict, dataset: Dataset | None = None) -> Preparation:
  """Returns what an input goes through before the network: usually normalisation.

  Its mean and deviation are the configuration's, the data set's own, or those of the
  training part of `dataset`.
  """
  spec = data.find(config.data.name)
  if spec.generated:
    return networks.Noise(spec.image_shape)
  mean, std = tuple(config.data.mean) or spec.mean, tuple(config.data.std) or spec.std
  if dataset is not None and (mean is None or std is None):
    by_feature = config.stream.name != "permuted"
    found_mean, found_std = data.statistics(dataset.train_x, by_feature=by_feature)
    mean, std = mean or found_mean, std or found_std
  return networks.Normalise(mean or (0.0,), std or (1.0,))


def batch_view(config: ConfigDict) -> scan.BatchView:
  """Returns how the configuration's setting shows the batches to a learner."""
  return scan.BatchView(
    config.stream.setting != "boundary_aware",
    own_task_only=config.stream.scenario == "task",
    augment=config.data.augment,
  )


class Trainer:
  """Compiles the functions of a run and applies them to its states [R, ...]."""

  def __init__(self, spec: RunSpec) -> None:
    config, sharding = spec.config, spec.sharding
    learner = spec.vary() if spec.vary else spec.learner
    compiler = scan.Compiler(spec.driver, sharding, spec.options)
    self._spec = spec
    self._tables = sharding.shard_seeds(spec.of_settings(spec.tables))
    self._hides_task = config.stream.setting != "boundary_aware"
    self._train = scan.make_train(learner, batch_view(config), compiler)
    self._consolidate = scan.make_consolidate(learner, batch_view(config), compiler)
    self._prepare = evaluation.make_prepare(learner, compiler)
    block = _block(config, spec.stream)
    self._evaluate = evaluation.make_evaluate(learner, block, compiler)
    self._train_feed = feeding.Feed(spec.train_images, sharding)
    self._test_feed = feeding.Feed(spec.test_images, sharding)
    self._points = sharding.shard_seeds(
      [np.repeat(np.arange(len(spec.configs), dtype=np.int32), len(spec.seeds))]
    )
    more = self._points if spec.vary else []
    init = scan.make_init(learner, compiler._replace(options=None))
    self._untrained: Callable[[], PyTree] = partial(init, self._tables.key, *more)
    self.states = self._untrained()
    # Of settings that are trained with others: why their numbers are not finite.
    self.diverged: dict[int, DivergenceError] = {}

  def prepare_images(self, chunk: scan.Chunk) -> None:
    """Makes the images of a chunk ready, so that training on it finds them so."""
    self._train_feed.prepare(chunk.rows)

  def train(self, chunk: scan.Chunk) -> np.ndarray:
    """Trains on a chunk and returns the losses [R, S] of its active steps.

    Raises DivergenceError where no setting is left with finite numbers.
    """
    spec = self._spec
    rows, tasks, horizon = spec.of_settings((chunk.rows, chunk.tasks, chunk.horizon))
    images, places = self._train_feed.take(rows)
    rows, tasks, horizon = spec.sharding.shard_seeds((places, tasks, horizon))
    placed = chunk._replace(rows=rows, tasks=tasks, horizon=horizon)
    self.states, metrics = self._train(self.states, self._tables, images, placed)
    losses = np.asarray(spec.sharding.gather(metrics["loss"]))[:, chunk.active]
    first = int(chunk.step[0])
    self._check(
      lambda config, block: divergence.check_losses(
        config, spec.seeds, losses[block], first
      )
    )
    return losses

  def _check(self, check: Callable[[ConfigDict, slice], None]) -> None:
    """Makes a note of the settings that have diverged; raises the last one's error."""
    for point, config in enumerate(self._spec.configs):
      if point in self.diverged:
        continue
      try:
        check(config, self._spec.block(point))
      except DivergenceError as error:
        self.diverged[point] = error
        if len(self.diverged) == len(self._spec.configs):
          raise

  def consolidate(self, task: int) -> None:
    """Consolidates a finished task, where the learners know that it has ended."""
    spec = self._spec
    if spec.learner.consolidates and not self._hides_task:
      images, tables = self._of_task(self._train_feed, "train_rows", task)
      self.states = self._consolidate(self.states, tables, images, np.int32(task))

  def _of_task(
    self, feed: feeding.Feed, name: str, task: int
  ) -> tuple[scan.Images, scan.SeedTables]:
    """Returns images that hold a task's rows, and the tables that say where."""
    table = np.asarray(getattr(self._spec.tables, name))
    rows = self._spec.of_settings(table)  # [R, T, M]
    images, places = feed.take(rows[:, task])
    if not feed.in_parts:
      return images, self._tables
    only = np.full_like(rows, -1)
    only[:, task] = places
    sharded = self._spec.sharding.shard_seeds(only)
    return images, self._tables._replace(**{name: sharded})

  def evaluate(self, milestone: Milestone) -> Evaluation:
    """Evaluates all seeds on the test sets of the tasks that a milestone asks for.

    That of step 0 may come after steps: it makes the untrained states again.
    """
    spec = self._spec
    states = self.states if milestone.step else self._untrained()
    num_tasks = spec.stream.labels.shape[1]
    asked = tasks_to_evaluate(milestone, num_tasks, spec.config.stream)
    horizon = num_tasks - 1 if self._hides_task else milestone.task
    prepared = self._prepare(states)
    counts = {task: self._count(prepared, task, horizon) for task in asked}
    sums = [np.asarray(found["energy_sum"]) for found in counts.values()]
    self._check(
      lambda config, block: divergence.check_energies(
        config, spec.seeds, [{"energy_sum": s[block]} for s in sums], milestone.step
      )
    )
    if self.diverged:  # nobody reads them, but they must not be in the way
      counts = jax.tree.map(np.nan_to_num, counts)
    scored = {task for task in asked if milestone.step > 0 and task <= horizon}
    new = meets_new_classes(milestone, spec.config.stream)
    outside = {task for task in asked if new and task > horizon}
    return evaluation.collect(counts, num_tasks, scored, outside)

  def _count(self, prepared: PyTree, task: int, horizon: int) -> evaluation.Counts:
    """Returns the counts of a task's test images, of all seeds."""
    images, tables = self._of_task(self._test_feed, "test_rows", task)
    sharding = self._spec.sharding
    candidates = sharding.replicate(self._candidates(task, horizon))
    return sharding.gather(
      self._evaluate(prepared, tables, images, np.int32(task), candidates)
    )

  def _candidates(self, task: int, horizon: int) -> Array:
    """Returns [C] bool: the classes that an image of `task` may be taken for."""
    # Labels are numbered in the order of tasks, so all seeds have the same classes.
    classes = self._spec.tables.classes[0]
    if batch_view(self._spec.config).own_task_only:
      return classes[task]
    return scan.seen_classes(classes, jnp.int32(horizon))

  def saved(self, point: int = 0) -> PyTree:
    """Returns a setting's states as a checkpoint holds them, whatever the devices.

    They are those of the same run alone.
    """
    whole = self._spec.sharding.gather(self.states)
    if not self._spec.vary:
      return whole
    block = self._spec.block(point)
    return jax.tree.map(lambda leaf: leaf[block], whole.state)

  def like_saved(self) -> PyTree:
    """Returns shapes, types and placement of `saved()`."""
    if self._spec.vary:
      return self.saved()
    return self._spec.sharding.like_gathered(self.states)

  def load(self, saved: Sequence[PyTree]) -> None:
    """Continues from the states of checkpoints, one of each setting."""
    whole = saved[0]
    if self._spec.vary:
      parts = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *saved)
      whole = varied.Varied(self._points[0], parts)
    self.states = self._spec.sharding.shard_seeds(whole)


def describe_parts(spec: RunSpec) -> dict[str, Any]:
  """Returns the sizes that every output of a run states."""
  state = jax.eval_shape(spec.learner.init, spec.tables.key[0])
  solver = getattr(state, "solver", state)  # beside a generator
  count = num_params(getattr(solver, "params", None))
  steps = int(spec.stream.rows.shape[1])
  return {"parameters": count, "steps": steps, "placement": spec.sharding.describe()}
