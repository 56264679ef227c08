"""`from_arrays`: any labels, types and ranges; `statistics`; sets of other packages."""

import sys
from types import ModuleType

import jax.numpy as jnp
import numpy as np
import pytest

from ebmjax import data
from ebmjax.data import idx
from ebmjax.data.spec import DatasetSpec
from ebmjax.errors import ConfigError, DataError

RANDOM = np.random.default_rng(1)
DIGITS = RANDOM.integers(0, 17, (40, 8, 8))  # as scikit-learn's: from 0 to 16
PHOTOS = RANDOM.integers(0, 256, (40, 6, 5, 3))
LABELS = np.arange(40) % 4
ROWS = RANDOM.normal(3, 2, (40, 7))


@pytest.mark.parametrize(
  "dtype", [np.uint8, np.int32, np.int64, np.float16, np.float32, np.float64]
)
@pytest.mark.parametrize("given", [(), (0, 16)])
def test_integers_and_floats_mean_the_same_image(dtype, given):
  dataset = data.from_arrays(DIGITS.astype(dtype), LABELS, range=given)
  reference = data.from_arrays(DIGITS, LABELS, range=given)
  assert data.digest(dataset) == data.digest(reference)
  assert dataset.source == reference.source
  if given:  # sixteenths are no whole 255ths
    assert dataset.train_x.dtype == np.float32
    assert dataset.train_x.max() == 1
    assert "pixels from 0 to 16 scaled to 0..1" in dataset.source
    assert dataset.range == (0, 16)
  else:
    assert dataset.train_x.dtype == np.uint8
    assert dataset.train_x.max() == 16
    assert "pixels from 0 to 255 scaled to 0..1 (none exceeds 16)" in dataset.source


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_from_0_to_1_that_were_bytes_are_bytes_again(dtype):
  expected = data.from_arrays(PHOTOS, LABELS)
  assert expected.train_x.dtype == np.uint8
  scaled = (PHOTOS / 255).astype(dtype)
  dataset = data.from_arrays(scaled, LABELS)
  assert data.digest(dataset) == data.digest(expected)
  assert "pixels from 0 to 1 " in dataset.source
  around = data.from_arrays(2 * scaled - 1, LABELS, range=(-1, 1))
  assert data.digest(around) == data.digest(expected)


def test_floats_between_the_levels_are_kept():
  x = RANDOM.random((40, 5, 5))
  dataset = data.from_arrays(255 * x, LABELS)
  assert dataset.train_x.dtype == np.float32
  held = data.from_arrays(x, LABELS)
  np.testing.assert_allclose(dataset.train_x, held.train_x, atol=1e-6)


def test_images_to_predict_are_converted_like_the_training_images():
  dataset = data.from_arrays(PHOTOS / 255, LABELS, PHOTOS / 255, LABELS)
  convert = data.pixels.convert
  again = convert(PHOTOS / 255, dataset.range, dataset.train_x.dtype)
  np.testing.assert_array_equal(again, dataset.train_x)
  for wrong in (PHOTOS, PHOTOS / 255 - 0.1, PHOTOS * np.nan):
    with pytest.raises(DataError, match="not within 0 to 1, the range of the training"):
      convert(wrong, dataset.range, dataset.train_x.dtype)


def test_both_parts_have_one_range_and_type():
  """The test images alone would be taken for images from 0 to 1."""
  dark = np.zeros((4, 8, 8), np.float64)
  dark[:, 0, 0] = 0.5
  dataset = data.from_arrays(DIGITS, LABELS, dark, range(4))
  assert dataset.train_x.dtype == dataset.test_x.dtype == np.float32
  np.testing.assert_allclose(dataset.test_x.max(), 0.5 / 255)


@pytest.mark.parametrize("shape", [(8, 8, 1), (8, 8)])
def test_one_channel_is_grey(shape):
  dataset = data.from_arrays(DIGITS.reshape(40, *shape), LABELS)
  assert dataset.shape == (8, 8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_rows_stay_as_they_are(dtype):
  rows = (100 * ROWS).astype(dtype)
  dataset = data.from_arrays(rows, LABELS, rows, LABELS)
  assert dataset.train_x.dtype == np.float32
  np.testing.assert_array_equal(dataset.train_x, rows.astype(np.float32))
  assert dataset.source == (
    "own, arrays: 40 training and 40 test rows of 7 features in 4 classes"
  )


@pytest.mark.parametrize(
  ("labels", "names"),
  [
    ([10, -3, 7, 2], ("-3", "2", "7", "10")),
    ([10.0, -3.0, 7.0, 2.0], ("-3", "2", "7", "10")),
    (["d", "a", "ç", "b"], ("a", "b", "d", "ç")),
    ([b"d", b"a", b"c", b"b"], ("a", "b", "c", "d")),
    (["10", "1", "9", "2"], ("1", "2", "9", "10")),
    ([True, False, False, True], ("0", "1")),
  ],
)
def test_labels_of_any_kind(labels, names):
  y = np.array(labels)[LABELS]
  dataset = data.from_arrays(DIGITS, y, DIGITS, y)
  assert dataset.class_names == names
  assert dataset.train_y.dtype == np.int32
  assert dataset.num_classes == len(names)
  for given, found in zip(y, dataset.test_y, strict=True):
    shown = given.decode() if isinstance(given, bytes) else given
    shown = int(shown) if not isinstance(shown, str) else shown
    assert str(shown) == names[found]


def test_arrays_of_jax_and_lists():
  expected = data.digest(data.from_arrays(DIGITS, LABELS))
  assert data.digest(data.from_arrays(jnp.array(DIGITS), jnp.array(LABELS))) == expected
  assert data.digest(data.from_arrays(DIGITS.tolist(), LABELS.tolist())) == expected


def test_names_of_classes_can_be_given():
  names = ("w", "x", "y", "z")
  assert data.from_arrays(DIGITS, LABELS, class_names=names).class_names == names
  with pytest.raises(DataError, match="has 3 names, but the training labels have 4"):
    data.from_arrays(DIGITS, LABELS, class_names=names[:3])


def test_a_share_of_each_class_is_held_out_and_fewer_are_a_subset():
  y = np.repeat([0, 1, 2], [30, 8, 2])
  x = np.arange(40, dtype=np.float32)[:, None]
  few, many = (data.from_arrays(x, y, test_share=s) for s in (0.1, 0.5))
  np.testing.assert_array_equal(np.bincount(few.test_y), [3, 1, 1])
  np.testing.assert_array_equal(np.bincount(many.test_y), [15, 4, 1])
  assert set(few.test_x[:, 0]) < set(many.test_x[:, 0])
  assert not set(few.test_x[:, 0]) & set(few.train_x[:, 0])
  assert (np.diff(few.train_x[:, 0]) > 0).all()


NAN = np.where(np.arange(40) == 5, np.nan, LABELS)
ONE_ALONE = np.where(np.arange(40) == 5, 9, LABELS)


@pytest.mark.parametrize(
  ("arguments", "options", "problem"),
  [
    ((DIGITS, LABELS[:39]), {}, "y_train holds 39 labels for 40 rows"),
    ((DIGITS, NAN), {}, "the label nan, which is not an integer"),
    ((DIGITS, LABELS + 0.5), {}, "the label 0.5, which is not an integer"),
    ((DIGITS, np.eye(4)[LABELS]), {}, "one label per row, but has shape (40, 4)"),
    ((DIGITS, np.array([None] * 40)), {}, "labels of type object"),
    ((DIGITS, ONE_ALONE), {}, "class '9' has one example only"),
    ((DIGITS, LABELS, DIGITS, ONE_ALONE), {}, "class '9', which the training"),
    ((DIGITS, ONE_ALONE, DIGITS, LABELS), {}, "have none of class '9'"),
    ((DIGITS, LABELS, DIGITS, LABELS.astype(str)), {}, "strings in one and numbers"),
    ((DIGITS, LABELS, DIGITS), {}, "x_test and y_test belong together"),
    ((DIGITS, LABELS, PHOTOS, LABELS), {}, "(8, 8), but x_test of shape (6, 5, 3)"),
    ((PHOTOS.transpose(0, 3, 1, 2), LABELS), {}, "with the channels last"),
    ((DIGITS[:0], LABELS[:0]), {}, "is empty"),
    ((DIGITS, 0 * LABELS), {}, "has only the class '0'"),
    ((DIGITS.astype(str), LABELS), {}, "values of type <U"),
    (([[1, 2], [3]], [0, 1]), {}, "cannot be converted to arrays"),
    ((DIGITS - 1, LABELS), {}, "from -1 to 15, neither within 0 to 1 nor"),
    ((DIGITS * 100, LABELS), {}, "config.data.range=(low, high)"),
    ((DIGITS, LABELS), {"range": (0, 15)}, "from 0 to 16, but config.data.range is"),
    ((DIGITS, LABELS), {"range": (16, 0)}, "is not a valid range"),
    ((DIGITS, LABELS), {"test_share": 1.0}, "must lie between 0 and 1"),
    ((np.where(ROWS > 4, np.inf, ROWS), LABELS), {}, "NaN or infinite"),
    ((np.where(DIGITS > 9, np.nan, DIGITS), LABELS), {}, "NaN or infinite"),
    ((np.where(ROWS > 4, 1e39, ROWS), LABELS), {}, "NaN or infinite as float32"),
  ],
)
def test_bad_arrays_raise_one_sentence(arguments, options, problem, sentence):
  with pytest.raises(DataError) as caught:
    data.from_arrays(*arguments, **options)
  assert problem in sentence(caught)
  assert "delete" not in sentence(caught)


@pytest.mark.parametrize(("x", "axes"), [(DIGITS, (0, 1, 2)), (PHOTOS, (0, 1, 2))])
def test_statistics_of_images(x, axes):
  dataset = data.from_arrays(x, LABELS)
  scaled = dataset.train_x / 255
  mean, std = data.statistics(dataset.train_x)
  assert len(mean) == len(std) == (3 if x.ndim == 4 else 1)
  np.testing.assert_allclose(mean, np.atleast_1d(scaled.mean(axis=axes)))
  np.testing.assert_allclose(std, np.atleast_1d(scaled.std(axis=axes)))


def test_statistics_of_rows(monkeypatch):
  monkeypatch.setattr(data.pixels, "_BLOCK", 7)
  rows = ROWS.copy()
  rows[:, 2] = 5  # never varies
  rows[:, 3] += 1e4
  dataset = data.from_arrays(rows, LABELS)
  mean, std = data.statistics(dataset.train_x)
  expected = dataset.train_x.astype(np.float64).std(axis=0)
  expected[2] = 1
  np.testing.assert_allclose(mean, dataset.train_x.astype(np.float64).mean(axis=0))
  np.testing.assert_allclose(std, expected, rtol=1e-6)
  mean, std = data.statistics(dataset.train_x, by_feature=False)
  np.testing.assert_allclose(mean, [dataset.train_x.astype(np.float64).mean()])


def load_shapes(*, dots: int = 2, bright: int = 255):
  y = np.arange(70) % 7
  x = np.zeros((70, 12, 20), np.uint8)
  x[:, :dots] = bright
  return x[:35], y[:35], x[35:], y[35:]


SHAPES = DatasetSpec("shapes", "Shapes", (12, 20), 7, load=load_shapes)


@pytest.fixture
def outside(monkeypatch, config):
  """Makes a module of another package, and returns a loader of its sets."""
  module = ModuleType("outside_package")
  wrong = SHAPES._replace(num_classes=8)
  files = SHAPES._replace(load=None, layouts=(idx.LAYOUT,), sources=("files",))
  nothing = SHAPES._replace(load=None)
  whole = data.from_arrays(*load_shapes())._replace(class_names=())
  named = SHAPES._replace(load=lambda: whole, class_names=tuple("abcdefg"))
  vars(module).update(SHAPES=SHAPES, WRONG=wrong, FILES=files, NOTHING=nothing, other=1)
  vars(module).update(NAMED=named)
  monkeypatch.setitem(sys.modules, "outside_package", module)

  def load(name: str, **changes):
    return data.load(config("auto", name=f"outside_package:{name}", **changes))

  return load


def test_a_set_of_another_package(outside):
  dataset = outside("SHAPES", dots=2, bright=9)
  assert dataset.name == "shapes"
  assert dataset.train_x.sum() == 35 * 2 * 20 * 9
  assert (dataset.shape, dataset.num_classes) == ((12, 20), 7)
  assert data.find("outside_package:SHAPES") is SHAPES
  assert outside("NAMED").class_names == tuple("abcdefg")


def test_faults_of_other_packages(outside, sentence):
  problems = {
    "WRONG": (DataError, "states num_classes=8, but its load returns 7"),
    "other": (ConfigError, "is of type int, not DatasetSpec; give the import path of"),
    "absent": (ConfigError, "has no absent; give package.module:NAME"),
    "NOTHING": (DataError, "has neither load nor layouts"),
    "FILES": (DataError, "put train-images-idx3-ubyte, train-labels-idx1-ubyte"),
  }
  for name, (error, problem) in problems.items():
    with pytest.raises(error) as caught:
      outside(name, dots=2)
    assert problem in sentence(caught)
  with pytest.raises(DataError) as caught:
    outside("SHAPES", dots=2, images=14, require_full=True)
  assert "the first 14 training images: set config.data.require" in sentence(caught)
  with pytest.raises(ConfigError, match="cannot be imported"):
    data.find("no_such_package:SPEC")


def test_names_of_official_classes():
  for name, spec in data.DATASETS.items():
    if spec.downloads:
      assert len(set(spec.class_names)) == spec.num_classes, name
  assert data.DATASETS["mnist"].class_names == tuple("0123456789")
