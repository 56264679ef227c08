"""The form of inputs: from arrays as a user has them to what a learner is shown."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from ml_collections import ConfigDict

from ebmjax import data, networks, streams
from ebmjax.data import pixels
from ebmjax.errors import DataError
from ebmjax.networks.normalisation import Preparation
from ebmjax.runtime import scan
from ebmjax.runtime.trainer import (
  frozen_trunk,
  make_learner,
  make_problem,
  preparation,
  shown_images,
  shown_inputs,
)
from ebmjax.types import Dataset, Learner, Problem

Label = int | str
Shown = Callable[[np.ndarray], np.ndarray]  # what batches hold of accepted inputs
_LEAST = 10  # rows to estimate a normalisation from


class InputForm(NamedTuple):
  """What is known of a data set's inputs and labels once the set itself is gone."""

  shape: tuple[int, ...]  # of one image or row
  dtype: str  # in which it is stored: "uint8" or "float32"
  range: tuple[float, float]  # of the pixels as the user has them
  mean: tuple[float, ...]
  std: tuple[float, ...]
  labels: tuple[Label, ...]  # the user's label of each class

  @property
  def prepare(self) -> Preparation:
    """Returns the normalisation in front of a network."""
    return networks.Normalise(self.mean, self.std)

  def accept(self, x: Any) -> np.ndarray:
    """Returns x [N, ...] as the training inputs are stored, or raises DataError."""
    found = pixels.check_shape(np.asarray(x), "x")
    if found.shape[1:] != self.shape:
      raise DataError(
        f"x holds inputs of shape {found.shape[1:]}, but the model was trained on "
        f"inputs of shape {self.shape}: give inputs of that shape."
      )
    if len(self.shape) == 1:
      return pixels.to_rows(found, "x")
    return pixels.convert(found, self.range, np.dtype(self.dtype))

  def shown(self, config: ConfigDict) -> Shown:
    """Returns f(accepted inputs) -> what batches hold: rows, images, or features."""
    return shown_inputs(config, self.prepare)

  def traced(self, config: ConfigDict, x: Array) -> Array:
    """Returns inputs x [N, ...] float32 of the user's range as batches hold them.

    For programs that JAX traces: shapes are as for `accept`, values are not checked.
    """
    if len(self.shape) > 1:
      low, high = self.range
      levels = (x - low) * (255 / (high - low))
      as_bytes = self.dtype == "uint8"
      x = jnp.rint(levels).astype(jnp.uint8) if as_bytes else levels / 255
    shown: Array = shown_images(config)(x)
    trunk = frozen_trunk(config, self.prepare)
    return shown if trunk is None else trunk(shown)


def learner_of(
  config: ConfigDict, form: InputForm, classes: np.ndarray, keys: Array
) -> tuple[Problem, Learner, Shown]:
  """Returns what a learner is built over, the learner, and what brings inputs to it.

  classes [T, C] are the labels of each task, and keys [R] those of the seeds.
  """
  shown = form.shown(config)
  blank = shown(np.zeros((1, *form.shape), form.dtype))
  row = jax.ShapeDtypeStruct(blank.shape[1:], blank.dtype)
  init_keys = jax.vmap(scan.init_key)(keys)
  problem = make_problem(config, row, classes, init_keys, form.prepare)
  return problem, make_learner(config, problem), shown


def form_of(config: ConfigDict, dataset: Dataset) -> InputForm | None:
  """Returns the form of a data set's inputs; None where a program makes them."""
  normalise = preparation(config, dataset)
  if not isinstance(normalise, networks.Normalise):
    return None
  return InputForm(
    dataset.shape,
    str(dataset.train_x.dtype),
    dataset.range,
    normalise.mean,
    normalise.std,
    dataset.labels or tuple(range(dataset.num_classes)),
  )


def estimate(
  x: np.ndarray, value_range: Sequence[float], config: ConfigDict
) -> InputForm:
  """Returns the form of inputs x [N, ...], the first of many; no labels are known.

  Pixels are stored as bytes where they come as bytes, since later ones may not be whole
  levels; mean and deviation are the configuration's, or those of x.
  """
  x = pixels.check_shape(x, "x")
  given = tuple(config.data.mean) and tuple(config.data.std)
  if not given and len(x) < _LEAST:
    raise DataError(
      f"inputs are normalised by the mean and deviation of the first call, which has "
      f"{len(x)} rows: give at least {_LEAST} at first, or settings={{'data.mean': "
      "(...), 'data.std': (...)}."
    )
  scale, dtype = (0.0, 1.0), "float32"
  if x.ndim > 2:
    _, scale, _ = pixels.to_images([x], value_range, "x")
    if x.dtype == np.uint8 and scale == (0.0, 255.0):
      dtype = "uint8"
  form = InputForm(x.shape[1:], dtype, scale, (0.0,), (1.0,), ())
  if given:
    return form._replace(mean=tuple(config.data.mean), std=tuple(config.data.std))
  mean, std = data.statistics(form.accept(x))
  return form._replace(mean=mean, std=std)


def to_json(form: InputForm) -> dict[str, Any]:
  """Returns the form as JSON holds it."""
  return {
    key: list(v) if isinstance(v, tuple) else v for key, v in form._asdict().items()
  }


def from_json(stored: Mapping[str, Any]) -> InputForm:
  """Returns the form that `to_json` was given; ValueError where it is no such thing."""
  try:
    values = {key: stored[key] for key in InputForm._fields}
    form = InputForm(
      tuple(int(side) for side in values["shape"]),
      np.dtype(values["dtype"]).name,
      (float(values["range"][0]), float(values["range"][1])),
      tuple(map(float, values["mean"])),
      tuple(map(float, values["std"])),
      tuple(
        label if isinstance(label, str) else int(label) for label in values["labels"]
      ),
    )
  except (KeyError, TypeError, IndexError) as error:
    raise ValueError("not the form of inputs") from error
  if not form.shape or form.dtype not in ("uint8", "float32"):
    raise ValueError("not the form of inputs")
  return form


def known_form(config: ConfigDict) -> InputForm | None:
  """Returns the form of a registered set, for runs that did not store it."""
  spec = data.find(config.data.name)
  if spec.image_shape is None or spec.num_classes is None or spec.generated:
    return None
  mean, std = tuple(config.data.mean) or spec.mean, tuple(config.data.std) or spec.std
  labels = tuple(range(spec.num_classes))
  return InputForm(
    *(spec.image_shape, "uint8", (0.0, 255.0)), mean or (0.0,), std or (1.0,), labels
  )


def outputs_of(
  config: ConfigDict, form: InputForm, seed: int
) -> tuple[Sequence[Label], streams.TaskSet]:
  """Returns the label of each output of a seed's network, and the seed's tasks."""
  tasks = streams.make_tasks(
    config.stream, num_raw=len(form.labels), seed=seed, shape=form.shape
  )
  if config.stream.scenario == "domain" or config.stream.name == "permuted":
    return tasks.names, tasks
  raw_of = {
    int(label): raw
    for row in tasks.labels
    for raw, label in enumerate(row)
    if label >= 0
  }
  return [form.labels[raw_of[label]] for label in sorted(raw_of)], tasks
