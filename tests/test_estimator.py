"""The estimator: scikit-learn's conventions, new classes at any time, the same bits."""

import json
import os
import re

import jax
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ebmjax
from ebmjax import EnergyClassifier, data, methods, streams
from ebmjax.config import default, with_settings
from ebmjax.errors import ConfigError, DataError, DivergenceError, UserError
from ebmjax.models import learning, loading, parameters
from ebmjax.models.model import in_blocks, power_of_two
from ebmjax.models.rejection import Reservoir
from ebmjax.networks import conv5
from ebmjax.tools.bench.cases import write_trunk
from tests.helpers import write_idx

FEW = {"network.num_features": 32}
CENTRES = np.random.default_rng(5).normal(size=(24, 12))


def draw(classes, rows=32, seed=0):
  """Returns rows [N, 12] around the centres of classes, each in turn."""
  rng = np.random.default_rng(seed)
  y = np.resize(classes, rows)
  return (CENTRES[y] + 0.2 * rng.normal(size=(rows, 12))).astype(np.float32), y


def small(method: str, **more) -> EnergyClassifier:
  """Returns an estimator of a few units, whatever the method."""
  spec = methods.find(method)
  keys = {f"method.{key}": value for key, value in spec.small.items()}
  network = {"raw": "fourier", "": "ebm"}.get(spec.network, spec.network)
  network = "sbc" if spec.own_objective and not spec.network else network
  keys |= {f"network.{k}": v for k, v in ebmjax.networks.find(network).small.items()}
  return EnergyClassifier(
    method, network, settings=keys | more, batch_size=16, calibration_rows=50
  )


@pytest.mark.parametrize(
  ("method", "precision"),
  [("finetune", "auto"), ("finetune", "bfloat16"), ("pec", "auto")],
)
def test_the_same_batches_give_the_same_bits_as_a_run(
  method, precision, tmp_path, no_plots
):
  fourier = method == "pec"
  settings = {
    "data.source": "files",
    "data.dir": str(write_idx(tmp_path / "data")),
    "method.name": method,
    "network.name": "fourier" if fourier else "ebm",
    **{f"method.{k}": v for k, v in methods.find(method).small.items()},
    **({"network.num_features": 16, "network.gamma": 0.01} if fourier else {}),
    **({} if fourier else {"network.hidden": 16}),
    **{"stream.tasks": 2, "stream.iterations": 3, "runner.chunk": 1},
    "runner.precision": precision,
  }
  config = with_settings(default(), settings)
  run = tmp_path / "run"
  ebmjax.run(config, run)
  trained = loading.restore(loading.read_run(run)).states
  mnist = data.load(config.data)
  mean, std = data.find("mnist").mean, data.find("mnist").std
  groups = ("network.", "method.", "runner.precision")
  keys = {k: v for k, v in settings.items() if k.startswith(groups)}
  keys = {k: v for k, v in keys.items() if not k.endswith(".name")}
  model = EnergyClassifier(
    method,
    settings["network.name"],
    settings=keys | {"data.mean": mean, "data.std": std, "stream.tasks": 2},
    boundaries="manual",
  )
  stream = streams.build(config.stream, mnist.train_y, mnist.test_y, seed=0)
  for step, rows in enumerate(stream.rows):
    model.partial_fit(mnist.train_x[rows], mnist.train_y[rows], classes=range(10))
    if step == 2:
      model.end_task()
  for ours, theirs in zip(
    *map(jax.tree.leaves, (model._learner.states, trained)), strict=True
  ):
    np.testing.assert_array_equal(ours, theirs)
  x = mnist.test_x[:16]
  for loaded in (EnergyClassifier.load(run), ebmjax.load(run)):
    np.testing.assert_array_equal(loaded.energies(x), model.energies(x))


def assert_same_states(one: EnergyClassifier, other: EnergyClassifier) -> None:
  trees = (one._learner.states, other._learner.states)
  for ours, theirs in zip(*map(jax.tree.leaves, trees), strict=True):
    np.testing.assert_array_equal(ours, theirs)


def test_many_batches_in_a_call_give_the_same_bits_as_a_call_each():
  x, y = draw(range(4), 34 * 16 + 5)
  whole, parts = (small("finetune").partial_fit(x[:16], y[:16]) for _ in range(2))
  whole.partial_fit(x, y)
  for start in range(0, len(y), 16):
    parts.partial_fit(x[start : start + 16], y[start : start + 16])
  assert_same_states(whole, parts)


def test_a_callers_array_may_be_written_to_at_once():
  """Aligned, since only then does JAX read the array itself."""
  room = np.zeros(128 * 784 + 64, np.uint8)
  start = -room.ctypes.data % 64
  reused = room[start : start + 128 * 784].reshape(128, 28, 28)
  rng, y = np.random.default_rng(0), np.arange(128) % 10
  batches = [rng.integers(0, 256, reused.shape, np.uint8) for _ in range(10)]
  given = {"data.mean": (0.1,), "data.std": (0.3,)}
  kept, written = (EnergyClassifier("finetune", settings=given) for _ in range(2))
  for batch in batches:
    kept.partial_fit(batch, y)
    reused[...] = batch
    written.partial_fit(reused, y)
    reused[...] = 0
  assert_same_states(kept, written)


def test_a_step_copies_no_weights():
  model = EnergyClassifier("finetune", boundaries="manual")
  rng, y = np.random.default_rng(0), np.arange(16) % 2
  model.partial_fit(rng.integers(0, 256, (16, 28, 28), np.uint8), y)
  learner = model._learner
  x = np.zeros((128, 784), np.uint8)
  batches = learning._images(x, np.zeros((1, 128), np.int32))
  place = np.zeros(2, np.int32)
  program = learner._programs.train.lower(
    learner.states, learner._tables(), batches, place
  )
  copied = re.findall(r"= f32\[([\d,]+)\]\S* copy\(", program.compile().as_text())
  sizes = [np.prod([int(side) for side in shape.split(",")]) for shape in copied]
  assert max(sizes, default=0) < 784 * 400


def test_a_loss_that_is_not_finite_is_found_within_some_calls():
  x, y = draw(range(3), 16)
  model = small("finetune").partial_fit(x, y)
  learner = model._learner
  learner.states = jax.tree.map(
    lambda leaf: leaf * np.float32("nan") if leaf.dtype == np.float32 else leaf,
    learner.states,
  )
  with pytest.raises(DivergenceError, match="lower the learning rate"):
    for _ in range(3 * learning._LATE):
      model.partial_fit(x, y)
  with pytest.raises(DivergenceError, match="lower the learning rate"):
    model.predict(x)


def test_a_frozen_trunk_is_read_and_compiled_once(tmp_path, monkeypatch):
  reads, read = [], conv5.load_trunk

  def counted(path):
    reads.append(path)
    return read(path)

  monkeypatch.setattr(conv5, "load_trunk", counted)
  frozen = {
    "network.backbone_mode": "fixed_statistics",
    "network.pretrained": str(write_trunk(tmp_path)),
    "network.hidden": 8,
  }
  model = EnergyClassifier("finetune", "ebm_conv5", settings=frozen, batch_size=8)
  rng, y = np.random.default_rng(0), np.arange(16) % 2
  x = rng.integers(0, 256, (16, 32, 32, 3), np.uint8)
  model.partial_fit(x, y).predict(x)
  first = len(reads)
  model.partial_fit(x, y).predict(x)
  assert first and len(reads) == first


@pytest.mark.parametrize("rows", [1, 3, 1024, 1025, 2400])
def test_blocks_have_few_sizes(rows):
  sizes, x = [], np.arange(2.0 * rows).reshape(rows, 2)

  def function(block):
    sizes.append(len(block))
    return block[None]

  np.testing.assert_array_equal(in_blocks(function, x), x[None])
  assert all(size == power_of_two(size) <= 1024 for size in sizes)


def test_a_method_that_looks_back_is_shown_the_rows_of_its_task():
  model = small("er", **{"stream.tasks": 2, "method.budget": 10})
  first, then = draw([0, 1], seed=1), draw([2, 3], seed=2)
  model.partial_fit(*first).partial_fit(*then)  # which ends the task before
  buffer = jax.tree.map(lambda leaf: np.asarray(leaf[0]), model._learner.states.own)
  stored = {row.tobytes() for row in buffer.x[: buffer.taken]}
  assert stored and stored <= {row.tobytes() for row in first[0]}


# One for each kind of state that grows: beside the network's weights a buffer or an old
# copy, sums over classes, and a model of each class.
@pytest.mark.parametrize("announced", [None, range(4)])
def test_a_call_of_new_classes_begins_a_task_announced_or_not(announced):
  model = small("finetune", **{"stream.tasks": 2})
  for classes in ([0, 1], [0, 1], [2, 3], [2, 0]):
    model.partial_fit(*draw(classes), classes=announced)
  assert model._learner.task == 1


GROWING = ["er", "lwf", "ridge", "sqda", "pec", "generative"]


@pytest.mark.parametrize("method", GROWING)
def test_new_classes_and_tasks_come_at_any_time(method):
  model = small(method, **{"stream.tasks": 2})
  for classes in (range(4), range(4, 8), range(8, 10)):  # at first room for eight
    model.partial_fit(*draw(classes))
  x, _ = draw(range(10), 20)
  assert model.classes_.tolist() == list(range(10))
  assert model.energies(x).shape == (20, 10)


def test_growing_leaves_what_was_learned():
  model = small("finetune").partial_fit(*draw(range(8)))
  x, _ = draw(range(8), 16)
  before = model.energies(x)
  model._learner.make_room(tasks=5, classes=16)
  model._model = None
  np.testing.assert_allclose(model.energies(x), before, rtol=1e-5)


def test_a_method_that_cannot_grow_says_so_and_stays_usable():
  model = small("pgma").partial_fit(*draw(range(8)))
  x, _ = draw(range(8), 8)
  before = model.energies(x)
  with pytest.raises(ConfigError, match="announce all classes in the first call"):
    model.partial_fit(*draw([8]))
  np.testing.assert_allclose(model.energies(x), before, rtol=1e-5)
  with pytest.raises(ConfigError, match="tasks of as many classes each"):
    small("icarl").partial_fit(*draw(range(8)))


def test_digits_that_come_late_are_named_and_the_old_ones_too():
  """The default's evidence: eight and nine after the others, among all ten."""
  x, y = load_digits(return_X_y=True)
  train, late = np.arange(len(y)) % 4 > 0, y >= 8
  shown = EnergyClassifier().partial_fit(x[train & ~late], y[train & ~late])
  shown.partial_fit(x[train & late], y[train & late])
  for part in (late, ~late):
    assert shown.score(x[~train & part], y[~train & part]) > 0.85


@pytest.mark.parametrize(
  ("method", "network"),
  [("slda", "fourier"), ("pec", "raw"), ("generative", "raw"), ("er", "ebm")],
)
def test_each_method_has_a_usual_network(method, network):
  params = EnergyClassifier(method).get_params()
  assert parameters.configuration(params, 12).network.name == network


def test_conventions_of_scikit_learn():
  x, y = draw(range(3), 60)
  model = EnergyClassifier(settings=FEW, batch_size=16)
  assert clone(model).get_params() == model.get_params()
  assert model.set_params(batch_size=8).batch_size == 8
  with pytest.raises(ValueError, match="no parameter 'batch'"):
    model.set_params(batch=3)
  piped = make_pipeline(StandardScaler(), clone(model)).fit(x, y)
  assert piped.score(x, y) > 0.9 and piped.predict_proba(x).shape == (60, 3)
  assert cross_val_score(model, x, y, cv=2).mean() > 0.9
  assert "slda" in repr(model)


def test_strings_and_jax_arrays():
  x, y = draw(range(3), 60)
  names = np.array(["ant", "bee", "cow"])[y]
  model = EnergyClassifier(settings=FEW).fit(jax.numpy.asarray(x), names)
  assert model.classes_.tolist() == ["ant", "bee", "cow"]
  assert model.score(x, names) > 0.9


def test_pixels_of_any_range_are_rejected_alike():
  rng = np.random.default_rng(0)
  y = np.resize([0, 1], 60)
  x = np.where(y[:, None, None] == 1, 12, 3) + rng.integers(0, 3, (60, 8, 8))
  models = [
    EnergyClassifier(settings=FEW, range=(0, top)).fit(x * scale, y)
    for top, scale in ((16, 1), (160, 10))
  ]
  one, other = (
    m.predict(x * k, reject=0.8) for m, k in zip(models, (1, 10), strict=True)
  )
  np.testing.assert_array_equal(one, other)
  assert (one == -1).any()


def test_inputs_unlike_all_others_are_rejected():
  x, y = draw(range(3), 300)
  model = EnergyClassifier(settings=FEW).fit(x, y)
  found = model.predict(x, reject=0.9)
  assert 0.8 < np.mean(found >= 0) < 1
  assert (model.predict(20 + 50 * x[:10], reject=0.9) == -1).mean() > 0.5
  names = np.array(["a", "b", "c"])[y]
  model = EnergyClassifier(settings=FEW).fit(x, names)
  assert None in model.predict(x, reject=0.5).tolist()
  for share in (0, 1, -2, 95, "0.9"):
    with pytest.raises(ConfigError, match="between 0 and 1"):
      model.predict(x, reject=share)


def test_a_saved_model_learns_on_with_the_same_bits(tmp_path):
  model = small("online_ewc").partial_fit(*draw(range(3), 70))
  model.set_params(calibration_rows=10)  # for the next fit: 50 rows are kept
  model.save(tmp_path / "model.npz")
  loaded = EnergyClassifier.load(tmp_path / "model.npz")
  for each in (model, loaded):
    each.partial_fit(*draw([3, 4], 60, seed=1))  # which ends the task before
  assert_same_states(model, loaded)
  x, _ = draw(range(5), 10)
  np.testing.assert_array_equal(
    model.predict(x, reject=0.5), loaded.predict(x, reject=0.5)
  )
  np.testing.assert_array_equal(model._reservoir.rows(), loaded._reservoir.rows())


@pytest.mark.parametrize("changes", [{"size": 10**15}, {"seen": 10**15, "size": 90}])
def test_a_file_whose_sample_does_not_fit_its_header_is_refused(changes, tmp_path):
  path = tmp_path / "model.npz"
  small("ncm").partial_fit(*draw(range(3))).save(path)
  arrays = dict(np.load(path))
  header = json.loads(arrays["header"].tobytes())
  header["reservoir"] |= changes
  arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
  np.savez(path, **arrays)
  with pytest.raises(DataError, match="damaged, or not a model"):
    EnergyClassifier.load(path)


def test_rows_kept_for_calibration_are_a_uniform_sample():
  rows, size, draws = np.arange(12), 3, 2000
  counts = np.zeros(len(rows))
  for seed in range(draws):
    kept = Reservoir(size, seed=seed)
    for part in np.split(rows, [2, 7]):
      kept.add(part)
    np.add.at(counts, kept.rows(), 1)
  # Standard deviation 0.0097 of each share.
  np.testing.assert_allclose(counts / draws, size / len(rows), atol=0.04)
  nothing = Reservoir(0, seed=0)
  nothing.add(rows)
  assert nothing.seen == len(rows)


def test_a_file_is_whole_or_refused(tmp_path, monkeypatch):
  path = tmp_path / "model.npz"
  model = EnergyClassifier(settings=FEW).fit(*draw(range(3)))
  model.save(path)
  whole = path.read_bytes()

  def killed(*_):
    raise OSError(28, "No space left on device")

  with monkeypatch.context() as patch:
    patch.setattr(os, "replace", killed)
    with pytest.raises(UserError, match="cannot be written"):
      model.save(path)
  assert path.read_bytes() == whole and list(tmp_path.iterdir()) == [path]
  for damage in (whole[:-100], b"", b"PK" + whole[2:500], b"no model"):
    path.write_bytes(damage)
    with pytest.raises(DataError, match=r"damaged npz .* give another file") as caught:
      EnergyClassifier.load(path)
    assert "pickle" not in str(caught.value)
  np.savez(path, header=np.array([{"a": 1}], object))
  with pytest.raises(DataError, match="holds Python objects, which are never"):
    EnergyClassifier.load(path)
  os.mkfifo(tmp_path / "pipe.npz")
  for name in ("none.npz", "pipe.npz"):
    with pytest.raises(DataError, match="does not exist"):
      EnergyClassifier.load(tmp_path / name)


@pytest.mark.parametrize(
  ("x", "y", "sentence"),
  [
    (np.zeros((20, 3)), np.arange(19) % 2, "label each row"),
    (np.zeros((20, 3)), np.full(20, 0.5), "not an integer"),
    (np.zeros((20, 3)), np.full(20, np.nan), "not an integer"),
    (np.full((20, 3), np.nan), np.arange(20) % 2, "NaN or infinite"),
    (np.zeros((20, 3), object), np.arange(20) % 2, "integers or floats"),
    (np.zeros((5, 3)), np.arange(5) % 2, "at least 10 at first"),
    (np.zeros((0, 3)), np.zeros(0), "at least one"),
    ([[1.0], [1.0, 2.0]], [0, 1], "the same shape"),
  ],
)
def test_bad_rows_are_refused_in_a_sentence(x, y, sentence):
  model = EnergyClassifier(settings=FEW)
  with pytest.raises(DataError, match=sentence):
    model.partial_fit(x, y)
  with pytest.raises(DataError, match="learned nothing"):
    model.predict(np.zeros((2, 3)))


def test_bad_calls_after_the_first_lose_nothing():
  x, y = draw(range(3), 40)
  model = EnergyClassifier(settings=FEW).fit(x, y)
  before = model.energies(x)
  with pytest.raises(DataError, match="trained on inputs of shape"):
    model.partial_fit(x[:, :5], y)
  with pytest.raises(DataError, match="trained on inputs of shape"):
    model.predict(x[:, :5])
  with pytest.raises(DataError, match="NaN or infinite"):
    model.fit(np.full_like(x, np.nan), y)
  with pytest.raises(DataError, match="all as strings"):
    model.partial_fit(x, y.astype(str))
  with pytest.raises(DataError, match="label each row"):
    model.score(x, y[1:])
  np.testing.assert_array_equal(model.energies(x), before)


@pytest.mark.parametrize(
  ("given", "sentence"),
  [
    ({"method": "sldaa"}, "slda"),
    ({"settings": {"method.shrinkage": -1.0}}, "shrinkage"),
    ({"settings": {"method.strength": 1.0}}, "is a key of"),
    ({"boundaries": "sometimes"}, "none of auto, manual and none"),
    ({"settings": ["method.strength"]}, "no mapping of keys to values"),
    ({"network": methods.find("slda")}, "network is of type MethodSpec: give a name"),
    ({"network": "ebm_conv4"}, "takes images of at least 8 x 8 pixels"),
  ],
)
def test_wrong_parameters_are_refused_in_a_sentence(given, sentence):
  with pytest.raises(ConfigError, match=sentence):
    EnergyClassifier(**given).partial_fit(*draw(range(2)))
  with pytest.raises(ConfigError, match="epochs=0 learns nothing"):
    EnergyClassifier(epochs=0).fit(*draw(range(2)))
