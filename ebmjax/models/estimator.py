"""A classifier that follows scikit-learn's conventions and accepts new classes."""

import inspect
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ebmjax.config.constraints import require_shape
from ebmjax.data import labels as labelling
from ebmjax.errors import ConfigError, DataError
from ebmjax.models import files
from ebmjax.models import form as forms
from ebmjax.models.form import InputForm, Label
from ebmjax.models.learning import OnlineLearner
from ebmjax.models.model import Model, make_outputs, power_of_two, probabilities
from ebmjax.models.parameters import configuration, require_even
from ebmjax.models.rejection import Reservoir
from ebmjax.paths import expand

_ROOM = 8  # classes at first, where they are not announced


class EnergyClassifier:
  """Learns from rows or images as they arrive, with new classes at any time.

  >>> import numpy as np
  >>> from ebmjax import EnergyClassifier
  >>> rng = np.random.default_rng(0)
  >>> centres = {"cat": -2.0, "dog": 0.0, "emu": 2.0}
  >>> def draw(name):
  ...   return rng.normal(centres[name], 0.3, (50, 4)), [name] * 50
  >>> model = EnergyClassifier()
  >>> for name in centres:
  ...   model = model.partial_fit(*draw(name))
  >>> model.predict([[2.0] * 4, [-2.0] * 4]).tolist()
  ['emu', 'cat']

  Parameters: `method` is a method of `ebmjax.methods` and `network` a network of
  `ebmjax.networks`, by name or import path. The network "auto" is a layer of random
  Fourier features for closed-form methods, the raw inputs for `pec` and `generative`,
  and the paper's energy network for all others, so method="finetune" is the paper's
  EBM. `settings` are further configuration keys, such as {"method.strength": 10.0,
  "network.hidden": 400}.

  `boundaries` says when a task ends, for methods that consolidate at that point:
  "auto", before a call whose classes are all new; "manual", at `end_task()`; "none",
  never.

  The batches of a run give exactly the numbers of that run (`boundaries="manual"`).
  Methods that look back at a finished task, such as `er` or `online_ewc`, are an
  exception: they see the rows passed since the previous boundary, in order and with
  repetitions, while a run shows them each row of the task once. They then draw other
  rows, and later numbers differ.

  `range` gives the values of black and white (by default 0 to 1 or 0 to 255, whichever
  contains the values of the first call). Inputs are normalised by the mean and standard
  deviation of the first call, unless settings have "data.mean" and "data.std".
  `calibration_rows` rows are kept to estimate which energies are usual
  (`predict(x, reject=0.95)`); they are never trained on.
  """

  _estimator_type = "classifier"

  def __init__(
    self,
    method: str = "slda",
    network: str = "auto",
    *,
    settings: Mapping[str, Any] | None = None,
    boundaries: Literal["auto", "manual", "none"] = "auto",
    batch_size: int = 128,
    epochs: int = 1,
    range: Sequence[float] = (),
    calibration_rows: int = 1000,
    random_state: int = 0,
  ) -> None:
    self.method, self.network, self.settings = method, network, settings
    self.boundaries, self.batch_size, self.epochs = boundaries, batch_size, epochs
    self.range, self.calibration_rows = range, calibration_rows
    self.random_state = random_state
    self._model: Model | None = None  # of what was learned, once it is asked for

  def fit(self, x: Any, y: Any) -> "EnergyClassifier":
    """Starts from scratch and makes `epochs` passes over x [N, ...] in random order."""
    x, y = _as_pair(x, y)
    if self.epochs < 1:
      raise ConfigError(f"epochs={self.epochs} learns nothing: give 1 or more.")
    rng = np.random.default_rng(self.random_state)
    for epoch in range(self.epochs):
      order = rng.permutation(len(y))
      first = epoch == 0
      rows, labels = x[order], y[order]
      self._learn(rows, labels, np.unique(y), afresh=first, remember=first)
    return self

  def partial_fit(
    self, x: Any, y: Any, classes: Sequence[Label] | None = None
  ) -> "EnergyClassifier":
    """Makes one pass, in order, over images or rows x [N, ...] with labels y [N].

    Labels may be new. If all classes are known at the first call, passing them as
    `classes` saves memory.
    """
    x, y = _as_pair(x, y)
    self._learn(x, y, None if classes is None else np.unique(np.asarray(classes)))
    return self

  def end_task(self) -> "EnergyClassifier":
    """Ends a task: the method consolidates, and later rows belong to the next task."""
    self._require_fitted()
    self._learner.end_task()
    self._model = None
    return self

  def _learn(
    self,
    x: np.ndarray,
    y: np.ndarray,
    announced: Any,
    *,
    afresh: bool = False,
    remember: bool = True,
  ) -> None:
    if afresh or not self._is_fitted():
      self._begin(x, y, announced)
    stored = self._form.accept(x)
    _require_kind(y, self._number)
    given = y.tolist()
    labels = set(given)
    found = sorted(labels - self._number.keys())
    ends = self.boundaries == "auto" and not labels & self._learned()
    self._make_room(len(found), ends and self._learner.begun)
    self._model = None
    if ends:
      self._learner.end_task()
    self._number |= {label: len(self._number) + i for i, label in enumerate(found)}
    numbers = np.fromiter(map(self._number.__getitem__, given), np.int32, len(given))
    self._learner.learn(self._learner.compiled.shown(stored), numbers)
    if remember:
      self._reservoir.add(stored)

  def _learned(self) -> set[Label]:
    """Returns the labels of the rows so far, which announced ones need not have."""
    seen = np.asarray(self._learner.classes.any(axis=0))
    return {label for label, number in self._number.items() if seen[number]}

  def _make_room(self, more: int, another_task: bool) -> None:
    """Makes room for more classes and the task that is to be learned."""
    learner = self._learner
    tasks = learner.task + 1 + another_task
    learner.make_room(tasks=tasks, classes=len(self._number) + more)

  def _begin(self, x: np.ndarray, y: np.ndarray, announced: Any) -> None:
    """Decides what the first call decides: inputs, room for classes, the network."""
    labelling.check(y, len(x), "y")
    config = configuration(self.get_params(), math.prod(x.shape[1:]))
    form = forms.estimate(x, self.range, config)
    require_shape(config, form.shape)
    count = len(np.unique(y) if announced is None else announced)
    room = power_of_two(max(_ROOM, count)) if announced is None else count
    require_even(config, announced)
    learner = OnlineLearner(config, form, classes=room, tasks=int(config.stream.tasks))
    reservoir = Reservoir(self.calibration_rows, seed=self.random_state)
    known = [] if announced is None else announced.tolist()
    self._adopt(form, learner, known, reservoir)

  def _adopt(
    self,
    form: InputForm,
    learner: OnlineLearner,
    labels: Sequence[Label],
    reservoir: Reservoir,
  ) -> None:
    """Takes over what was learned, or the start of it; labels [K] in their order."""
    self._form, self._learner, self._reservoir = form, learner, reservoir
    self._number = {label: place for place, label in enumerate(labels)}
    self._model = None

  @property
  def _labels(self) -> list[Label]:
    return list(self._number)

  @property
  def classes_(self) -> np.ndarray:
    """Returns the labels [K] seen or announced so far, sorted."""
    return self.model_.classes

  @property
  def model_(self) -> Model:
    """Returns a model of what has been learned so far."""
    self._require_fitted()
    self._learner.require_finite()
    learner = self._learner
    self._model = self._model or Model(
      learner.config,
      self._form,
      (learner.problem.network, learner.compiled),
      learner.states,
      make_outputs([self._labels]),
      self._reservoir.rows,
    )
    return self._model

  def energies(self, x: Any) -> np.ndarray:
    """Returns energies [N, K] of x [N, ...] for `classes_`; lower is better."""
    return self.model_.energies(x)

  def predict(self, x: Any, reject: float | None = None) -> np.ndarray:
    """Returns the label [N] of lowest energy; see `Model.predict` for `reject`."""
    return self.model_.predict(x, reject)

  def predict_proba(self, x: Any) -> np.ndarray:
    """Returns [N, K]: the softmax of the negated energies, ordered as `classes_`."""
    return probabilities(self.energies(x))

  def score(self, x: Any, y: Any) -> float:
    """Returns the share of x [N, ...] whose predicted label is that of y [N]."""
    x, y = _as_pair(x, y)
    return float(np.mean(self.predict(x) == y))

  def save(self, path: str | Path) -> None:
    """Writes the model to one file; an existing file is replaced at the end."""
    self._require_fitted()
    files.save(self, expand(path))

  @classmethod
  def load(cls, path: str | Path, seed: int | None = None) -> "EnergyClassifier":
    """Returns a model, from a file or the workdir of a finished run, to keep training.

    `seed` chooses one of a run's seeds, by default the first.
    """
    return files.load(cls, expand(path), seed)

  def get_params(self, deep: bool = True) -> dict[str, Any]:
    """Returns the constructor's arguments."""
    del deep
    return {name: getattr(self, name) for name in _parameters(type(self))}

  def set_params(self, **params: Any) -> "EnergyClassifier":
    """Sets arguments of the constructor, which the next `fit` uses."""
    known = _parameters(type(self))
    for name, value in params.items():
      if name not in known:
        raise ValueError(f"EnergyClassifier has no parameter {name!r}: see {known}.")
      setattr(self, name, value)
    return self

  def __repr__(self) -> str:
    given = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
    return f"{type(self).__name__}({given})"

  def __sklearn_tags__(self) -> Any:
    """Says to scikit-learn, which alone asks, what this estimator is."""
    from sklearn.utils import (
      ClassifierTags,
      InputTags,
      Tags,
      TargetTags,
    )

    return Tags(
      estimator_type="classifier",
      target_tags=TargetTags(required=True),
      classifier_tags=ClassifierTags(),
      input_tags=InputTags(three_d_array=True),
    )

  def _is_fitted(self) -> bool:
    return hasattr(self, "_learner")

  def __sklearn_is_fitted__(self) -> bool:
    return self._is_fitted()

  def _require_fitted(self) -> None:
    if not self._is_fitted():
      raise DataError(
        "this classifier has learned nothing yet: call fit or partial_fit."
      )


def _as_pair(x: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
  """Returns inputs and labels as arrays, checked against each other."""
  try:
    inputs, labels = np.asarray(x), np.asarray(y)
  except ValueError as error:  # rows of different lengths
    raise DataError(
      f"x and y cannot be converted to arrays ({error}): give all rows the same shape."
    ) from None
  if not inputs.ndim or not len(inputs):
    raise DataError("x holds no rows: give at least one.")
  return inputs, labelling.check(labels, len(inputs), "y")


def _require_kind(y: np.ndarray, known: Mapping[Label, int]) -> None:
  """Raises where strings follow numbers, or numbers strings."""
  first = next(iter(known), None)
  if first is not None and isinstance(first, str) != (y.dtype.kind == "U"):
    raise DataError(
      f"y holds labels of type {y.dtype}, but the classes so far are like {first!r}: "
      "give all labels as numbers, or all as strings."
    )


def _parameters(kind: type) -> list[str]:
  return [name for name in inspect.signature(kind).parameters]
