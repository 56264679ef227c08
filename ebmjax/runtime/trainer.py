"""From a configuration and a data set to the parts that a run is made of."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from ml_collections import ConfigDict

from ebmjax import methods, networks, objectives, streams
from ebmjax.data import DATASETS
from ebmjax.method_rules import require_negatives, require_period
from ebmjax.networks.seeded import start_from_seeds
from ebmjax.runtime import divergence, evaluation, scan
from ebmjax.runtime.plan import Stop, tasks_to_evaluate
from ebmjax.runtime.sharding import Layout, make_layout
from ebmjax.streams.augmentation import AUGMENTATIONS
from ebmjax.traits import traits
from ebmjax.types import Dataset, Evaluation, Learner, Problem, PyTree, num_params


class Setup(NamedTuple):
  """All that a run needs and that does not change while it runs."""

  config: ConfigDict
  seeds: list[int]
  stream: streams.Stream  # stacked: leading axis [R]
  tables: scan.SeedTables
  train_images: scan.Images
  test_images: scan.Images
  learner: Learner
  driver: str
  layout: Layout
  options: scan.CompilerOptions
  class_names: tuple[str, ...]


def make_setup(config: ConfigDict, dataset: Dataset, driver: str) -> Setup:
  """Returns the run's parts: streams of all seeds, arrays on the device, learner."""
  seeds = list(range(config.seed, config.seed + config.seeds))
  layout = make_layout(config, len(seeds), driver)
  spec = config.stream
  stream = streams.stack(
    [streams.build(spec, dataset.train_y, dataset.test_y, seed=seed) for seed in seeds]
  )
  require_period(config, stream.rows.shape[-2])
  train_x, test_x = (
    _inputs(config, images) for images in (dataset.train_x, dataset.test_x)
  )
  tasks = streams.make_tasks(spec, num_raw=dataset.num_classes, seed=config.seed)
  require_negatives(config, int(tasks.classes.sum(axis=1).max()))
  tables = scan.seed_tables(stream, seeds, test_multiple=_block(config, stream))
  return Setup(
    config=config,
    seeds=seeds,
    stream=stream,
    tables=tables,
    train_images=scan.Images(*layout.put_shared((train_x, dataset.train_y))),
    test_images=scan.Images(*layout.put_shared((test_x, dataset.test_y))),
    learner=make_learner(
      config,
      jax.ShapeDtypeStruct(train_x.shape[1:], train_x.dtype),
      tasks.classes,
      jax.vmap(scan.init_key)(tables.key),
    ),
    driver=driver,
    layout=layout,
    options=networks.compiler_options(config.network),
    class_names=tasks.names,
  )


def make_learner(
  config: ConfigDict, row: jax.ShapeDtypeStruct, classes: np.ndarray, keys: Array
) -> Learner:
  """Returns the learner that the configuration names.

  `row` is one input, classes [T, C] are the labels of each task, and `keys` [R] those
  that `init` will get.
  """
  network = networks.make(
    config.network,
    input_shape=row.shape,
    num_classes=classes.shape[1],
    num_tasks=classes.shape[0],
    normalise=_normalise(config),
    init_keys=keys,
    max_labels=_max_labels(config, classes),
  )
  if config.network.init == "pytorch_seed":
    seeds = range(config.seed, config.seed + config.seeds)
    network = start_from_seeds(network, keys, seeds)
  objective = objectives.make(config.objective, config.negatives)
  tx = _optimiser(config.optimiser)
  augment = AUGMENTATIONS[config.data.augment]
  problem = Problem(network, objective, tx, row, classes.shape[0], augment)
  return methods.METHODS[config.method.name](problem, config.method)


def _block(config: ConfigDict, stream: streams.Stream) -> int:
  """Returns how many test images are evaluated at a time, no more than a task has."""
  return min(int(config.eval.batch_size), stream.test_rows.shape[-1])


def _optimiser(config: ConfigDict) -> optax.GradientTransformation:
  if config.name == "sgd":
    return optax.sgd(config.learning_rate)
  return optax.adam(config.learning_rate, config.b1, config.b2)


def _inputs(config: ConfigDict, images: np.ndarray) -> np.ndarray:
  """Returns what the network is shown: images, or a frozen trunk's features of them."""
  shown = streams.shown_images(config.stream, images)
  if networks.caches_features(config.network):
    return networks.compute_features(config.network, shown, _normalise(config))
  return shown


def _max_labels(config: ConfigDict, classes: np.ndarray) -> int:
  """Returns how many distinct labels one batch's candidates can hold.

  Negatives of the batch or of its task: a batch shows one task, or two while they fade
  into each other. Replay brings the older classes in.
  """
  per_task, in_all = int(classes.sum(axis=1).max()), classes.shape[1]
  older = config.negatives in ("all_seen", "all_classes")
  if older or traits(config.method.name).mixes:
    return in_all
  shown = {"boundary_aware": 1, "boundary_free": 2, "joint": len(classes)}
  return min(shown[config.stream.setting] * per_task, in_all)


def _normalise(config: ConfigDict) -> networks.Normalise | networks.Noise:
  info = DATASETS[config.data.name]
  if info.generated:
    return networks.Noise(info.image_shape)
  mean, std = tuple(config.data.mean), tuple(config.data.std)
  return networks.Normalise(mean or info.mean, std or info.std)


def make_view(config: ConfigDict) -> scan.View:
  """Returns how the configuration's setting shows the batches to a learner."""
  return scan.View(
    config.stream.setting != "boundary_aware",
    own_task_only=config.stream.scenario == "task",
    augment=config.data.augment,
  )


class Machine:
  """The compiled functions of a setup, and the states [R, ...] they move on."""

  def __init__(self, setup: Setup) -> None:
    config, learner, driver = setup.config, setup.learner, setup.driver
    layout, options = setup.layout, setup.options
    self._setup, self._tables = setup, layout.put_seeds(setup.tables)
    self._hides_task = config.stream.setting != "boundary_aware"
    self._train = scan.make_train(learner, make_view(config), driver, layout, options)
    self._consolidate = scan.make_consolidate(
      learner, make_view(config), driver, layout, options
    )
    self._evaluate = evaluation.make_evaluate(
      learner, driver, _block(config, setup.stream), layout, options
    )
    self.states: PyTree = scan.make_init(learner, driver, layout)(self._tables.key)

  def train(self, chunk: scan.Chunk) -> np.ndarray:
    """Returns losses [R, S] of the chunk's active steps, after training on it."""
    setup = self._setup
    rows, tasks, horizon = setup.layout.put_seeds(chunk[:3])
    placed = chunk._replace(rows=rows, tasks=tasks, horizon=horizon)
    self.states, metrics = self._train(
      self.states, self._tables, setup.train_images, placed
    )
    losses = np.asarray(setup.layout.whole(metrics["loss"]))[:, chunk.active]
    divergence.check_losses(setup.config, setup.seeds, losses, int(chunk.step[0]))
    return losses

  def consolidate(self, task: int) -> None:
    """Lets the learners consolidate a finished task, where its end is known."""
    setup = self._setup
    if setup.learner.consolidates and not self._hides_task:
      self.states = self._consolidate(
        self.states, self._tables, setup.train_images, np.int32(task)
      )

  def evaluate(self, stop: Stop) -> Evaluation:
    """Returns what the whole test set says of all runs at a stop."""
    setup = self._setup
    num_tasks = setup.stream.labels.shape[1]
    asked = tasks_to_evaluate(stop, num_tasks, self._hides_task)
    horizon = num_tasks - 1 if self._hides_task else stop.task
    counts = {
      task: setup.layout.whole(
        self._evaluate(
          self.states,
          self._tables,
          setup.test_images,
          np.int32(task),
          setup.layout.put_shared(self._candidates(task, horizon)),
        )
      )
      for task in asked
    }
    divergence.check_energies(setup.config, setup.seeds, counts.values(), stop.step)
    scored = {task for task in asked if stop.step > 0 and task <= horizon}
    return evaluation.collect(counts, num_tasks, scored)

  def _candidates(self, task: int, horizon: int) -> Array:
    """Returns [C] bool: the classes that an image of `task` may be taken for."""
    # Labels are numbered in the order of tasks, so all seeds have the same classes.
    classes = self._setup.tables.classes[0]
    if make_view(self._setup.config).own_task_only:
      return classes[task]
    return scan.seen_classes(classes, jnp.int32(horizon))

  def saved(self) -> PyTree:
    """Returns the states [R, ...] as a checkpoint holds them, whatever the devices."""
    return self._setup.layout.whole(self.states)

  def like_saved(self) -> PyTree:
    """Returns shapes, types and placement of `saved()`."""
    return self._setup.layout.like_whole(self.states)

  def load(self, saved: PyTree) -> None:
    """Goes on from the states of a checkpoint."""
    self.states = self._setup.layout.put_seeds(saved)


def describe_parts(setup: Setup) -> dict[str, Any]:
  """Returns the sizes that every output of a run states."""
  state = jax.eval_shape(setup.learner.init, setup.tables.key[0])
  count = num_params(getattr(state, "params", None))
  steps = int(setup.stream.rows.shape[1])
  return {"parameters": count, "steps": steps, "placement": setup.layout.describe()}
